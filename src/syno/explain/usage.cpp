#include "syno/explain/usage.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <string_view>

#include "syno/quality/wasted.h"
#include "syno/space/accept.h"
#include "syno/spec/ledger.h"
#include "syno/spec/limits.h"
#include "syno/support/error.h"
#include "syno/support/text.h"

namespace syno {
namespace {

class Reader {
 public:
  Reader(const Operator& op, const Specification& spec)
      : op_(op.in_table(spec.variables())), graph_(op_.graph()), spec_(spec) {
    for (std::size_t b = 0; b < spec.bindings().size(); ++b) {
      if (fits(b)) layers_.push_back(b);
    }
  }

  Usage read() {
    budgets();
    counts();
    sizes();
    steps();
    costs();
    for (const Option<Limits>& option : limit_options()) {
      const auto place = used_.find(option.name);
      if (place == used_.end()) continue;
      result_.limits.push_back(compared(option, place->second));
    }
    return std::move(result_);
  }

 private:
  using Least = std::numeric_limits<double>;

  bool fits(std::size_t b) {
    const Values& values = spec_.bindings()[b];
    std::vector<Size> sizes;
    for (const Coordinate& coordinate : graph_.coordinates()) sizes.push_back(coordinate.extent);
    for (const Step& step : graph_.steps()) {
      // K times S may be an integer where the factor S is none.
      if (step.info().argument == Argument::kFactor) sizes.push_back(step.size);
    }
    const auto wrong = std::find_if(sizes.begin(), sizes.end(),
                                    [&](const Size& size) { return !size.extent(values); });
    if (wrong == sizes.end()) return true;
    std::vector<std::string> parts;
    for (std::size_t v = 0; v < values.size(); ++v)
      parts.push_back(spec_.variables()->name(v) + "=" + std::to_string(values[v]));
    result_.misfits.push_back({join(parts, ","), wrong->text(*spec_.variables())});
    return false;
  }

  LimitUse compared(const Option<Limits>& option, double used) const {
    LimitUse use{std::string(option.name), used, option.get(spec_.limits()), true};
    const std::string_view name = option.name;
    // Windows of costs are open where they are 0.
    const bool window = name.ends_with("_macs") || name.ends_with("_params");
    if (window && name != "min_weight_params" && use.allowed == 0) return use;
    use.within = name.starts_with("min_") ? used >= use.allowed - 1e-9 : used <= use.allowed + 1e-9;
    return use;
  }

  void raise(std::string_view limit, double value) {
    const auto [place, is_new] = used_.try_emplace(limit, value);
    if (!is_new) place->second = std::max(place->second, value);
  }
  void lower(std::string_view limit, double value) {
    const auto [place, is_new] = used_.try_emplace(limit, value);
    if (!is_new) place->second = std::min(place->second, value);
  }
  // The largest or smallest value of a size over the layers.
  double most(const Size& size) const {
    double value = 0;
    for (const std::size_t b : layers_)
      value = std::max(value, static_cast<double>(size.evaluate(spec_.bindings()[b]).value_or(0)));
    return value;
  }
  double least(const Size& size) const {
    double value = Least::infinity();
    for (const std::size_t b : layers_)
      value = std::min(value, static_cast<double>(size.evaluate(spec_.bindings()[b]).value_or(0)));
    return layers_.empty() ? 0 : value;
  }

  void budgets() {
    std::vector<int> charged(spec_.variables()->count(), 0);
    for (const Step& step : graph_.steps()) {
      // What is charged depends on the coordinates of the step, which later steps do not change.
      const Charges charges = step_charges(spec_, graph_, step);
      for (std::size_t v = 0; v < charged.size(); ++v) charged[v] += charges[v];
    }
    for (std::size_t v = 0; v < charged.size(); ++v)
      result_.budgets.push_back({spec_.variables()->name(v), charged[v], spec_.variable(v).budget});
  }

  void counts() {
    raise("max_depth", graph_.depth());
    for (std::size_t p = 0; p < kPrimitiveCount; ++p) {
      const PrimitiveInfo& info = primitive_info(static_cast<Primitive>(p));
      if (info.kind != StepKind::kRepetition) raise(info.limit, graph_.count(info.primitive));
    }
    for (const Coordinate& coordinate : graph_.coordinates())
      raise("max_chain_length", coordinate.chain);
  }

  void sizes() {
    for (const Coordinate& coordinate : graph_.coordinates()) {
      if (coordinate.step < 0) continue;  // the output's own sizes are given
      raise("max_size_variables", coordinate.extent.variable_count());
      raise("max_size_power", coordinate.extent.total_power());
    }
    lower("min_fit", share_that_fits());
  }

  // The share of the MACs in layers that the operator fits, to the thousandth below.
  double share_that_fits() const {
    FitMask mask = 0;
    for (const std::size_t b : layers_) mask |= FitMask{1} << b;
    if (mask == spec_.full_fit()) return 1;
    int low = 0;
    int high = 1000;
    while (low + 1 < high) {
      const int middle = (low + high) / 2;
      SpecificationSource source = spec_.source();
      source.limits.min_fit = middle / 1000.0;
      (Specification(source).fit_suffices(mask) ? low : high) = middle;
    }
    return mask == 0 ? 0 : low / 1000.0;
  }

  void steps() {
    Size reductions;
    Size repeats;
    bool negative = false;
    bool even = false;
    bool element_wise = false;
    for (const Step& step : graph_.steps()) {
      const Argument argument = step.info().argument;
      if (argument == Argument::kAmount) {
        raise("max_shift_amount", std::abs(step.amount));
        negative = negative || step.amount < 0;
      }
      if (argument == Argument::kCausal) even = window(step) || even;
      if (step.is_repetition()) repeats = repeats * graph_.extent(step.in[0]);
      if (step.is_reduction()) reductions = reductions * step.size;
      if (step.is_contraction()) element_wise = contraction(step) || element_wise;
    }
    raise("negative_shifts", negative ? 1 : 0);
    raise("even_windows", even ? 1 : 0);
    raise("element_wise_weights", element_wise ? 1 : 0);
    raise("max_repeat", repeats.is_one() ? 1 : most(repeats));
    const Size elements = input_elements(spec_);
    for (const std::size_t b : layers_) {
      const Values& values = spec_.bindings()[b];
      raise("max_reduction_ratio", static_cast<double>(reductions.evaluate(values).value_or(0)) /
                                       static_cast<double>(elements.evaluate(values).value_or(1)));
    }
    const Size pooled = pooling_size(op_);
    result_.pooling = pooled.is_one() ? 1 : static_cast<std::int64_t>(most(pooled));
    raise("max_pooling", static_cast<double>(result_.pooling));
  }

  // Whether it is even somewhere.
  bool window(const Step& step) {
    const Size& extent = graph_.extent(step.in[0]);
    const Size& window = graph_.extent(step.in[1]);
    raise("max_window", most(window));
    bool even = false;
    for (const std::size_t b : layers_) {
      const Values& values = spec_.bindings()[b];
      const std::int64_t wide = window.evaluate(values).value_or(1);
      even = even || wide % 2 == 0;
      lower("min_unfold_ratio",
            static_cast<double>(extent.evaluate(values).value_or(0)) / static_cast<double>(wide));
    }
    return even;
  }

  // Whether it keeps all its coordinates.
  bool contraction(const Step& step) {
    Size weight;
    Size dropped;
    Size joined;
    bool all_kept = true;
    for (const WeightDim& dim : step.dims) {
      const Size& extent = graph_.extent(dim.coordinate);
      weight = weight * extent;
      if (dim.role == WeightRole::kKeep) continue;
      all_kept = false;
      Size& leaving = graph_.reductions_only(dim.coordinate) ? joined : dropped;
      leaving = leaving * extent;
    }
    lower("min_weight_params", least(weight));
    raise("max_dropped", dropped.is_one() ? 1 : most(dropped));
    raise("max_joined", joined.is_one() ? 1 : most(joined));
    return all_kept;
  }

  void costs() {
    if (layers_.empty()) return;
    result_.macs = total_macs(op_, spec_);
    result_.params = total_params(op_, spec_);
    for (const char* name : {"min_macs", "max_macs"})
      raise(name, static_cast<double>(result_.macs));
    for (const char* name : {"min_params", "max_params"})
      raise(name, static_cast<double>(result_.params));
  }

  Operator op_;
  const Graph& graph_;
  const Specification& spec_;
  /// Bindings under which all sizes are positive integers.
  std::vector<std::size_t> layers_;
  std::map<std::string_view, double> used_;
  Usage result_;
};

}  // namespace

Usage usage(const Operator& op, const Specification& spec) {
  return Reader(op, spec).read();
}

}  // namespace syno
