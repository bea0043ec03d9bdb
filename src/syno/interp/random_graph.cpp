#include "syno/interp/random_graph.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>

#include "syno/support/error.h"
#include "syno/support/random.h"

namespace syno {
namespace {

constexpr int kMaxAttempts = 1000;
constexpr int kMaxTotalPower = 8;
constexpr std::uint64_t kIntegerStream = 1'000'001;
constexpr std::array<const char*, 5> kPrimaries{"N", "C_in", "C_out", "H", "W"};
constexpr std::array<const char*, 4> kCoefficients{"g", "k", "k_2", "s"};

class Draw {
 public:
  Draw(std::uint64_t seed, std::uint64_t attempt, const RandomOptions& options)
      : random_(seed, attempt), options_(options) {
    std::vector<std::string> names(kPrimaries.begin(), kPrimaries.end());
    names.insert(names.end(), kCoefficients.begin(), kCoefficients.end());
    variables_ = Variables::make(std::move(names));
  }

  std::optional<RandomOperator> operator_or_nothing() {
    binding_ = sample_binding();
    values_ = binding_.resolve(*variables_);
    graph_ = Graph(variables_, sample_output());
    const int steps = options_.min_steps + below(options_.max_steps - options_.min_steps + 1);
    for (int tries = 0; graph_.depth() < steps && tries < 8 * steps; ++tries) take_step();
    while (static_cast<int>(graph_.weights().size()) < options_.min_weights) {
      if (!contract()) return std::nullopt;
    }
    if (graph_.depth() < options_.min_steps || !affordable(values_)) return std::nullopt;
    if (graph_.frontier().empty() && !options_.scalar_input) return std::nullopt;

    std::vector<CoordinateId> match = graph_.frontier();
    shuffle(match, options_.batch ? 1 : 0);
    Shape input;
    for (const CoordinateId id : match) input.push_back({graph_.extent(id), mark(), false});
    if (options_.batch) input[0].unordered = false;

    RandomOperator result;
    result.op = Operator(graph_, std::move(input), std::move(match));
    result.binding = binding_;
    result.values = binding_.resolve(*result.op.variables());
    result.bindings = {binding_};
    for (int tries = 0; static_cast<int>(result.bindings.size()) < options_.bindings && tries < 50;
         ++tries) {
      const Binding other = sample_binding();
      if (affordable(other.resolve(*variables_)) &&
          std::find(result.bindings.begin(), result.bindings.end(), other) ==
              result.bindings.end()) {
        result.bindings.push_back(other);
      }
    }
    return result;
  }

 private:
  int below(int bound) {
    return bound <= 0 ? 0 : static_cast<int>(random_.below(static_cast<std::uint64_t>(bound)));
  }
  bool chance(double share) { return random_.uniform() < share; }
  bool mark() { return options_.unordered > 0 && chance(options_.unordered); }
  template <class T>
  const T& one_of(const std::vector<T>& from) {
    return from[static_cast<std::size_t>(below(static_cast<int>(from.size())))];
  }
  void shuffle(std::vector<CoordinateId>& ids, std::size_t first) {
    for (std::size_t i = ids.size(); i > first + 1; --i) {
      const auto j = first + static_cast<std::size_t>(below(static_cast<int>(i - first)));
      std::swap(ids[i - 1], ids[j]);
    }
  }
  Size variable(const char* name) const { return Size::variable(variables_->index(name)); }
  std::int64_t value(CoordinateId id) const { return *graph_.extent(id).evaluate(values_); }

  Binding sample_binding() {
    std::map<std::string, std::int64_t> values;
    values["s"] = 2 + below(2);
    values["g"] = 2 + below(2);
    for (const char* window : {"k", "k_2"}) {
      std::vector<std::int64_t> sizes;
      for (const std::int64_t extent : options_.extents) {
        if (extent <= 7 && (options_.even_windows || extent % 2 == 1)) sizes.push_back(extent);
      }
      if (sizes.empty()) sizes = {3};
      values[window] = one_of(sizes);
    }
    for (const char* name : kPrimaries) {
      std::int64_t extent = one_of(options_.extents);
      for (const char* divisor : {"s", "g"}) {
        if (chance(0.5) && extent * values[divisor] <= options_.max_extent)
          extent *= values[divisor];
      }
      values[name] = extent;
    }
    return Binding(std::move(values));
  }

  Shape sample_output() {
    Shape output;
    if (options_.batch) output.push_back({variable("N"), false, false});
    const int rank = 1 + below(options_.max_output_rank - (options_.batch ? 1 : 0));
    for (int d = 0; d < rank; ++d) {
      Size size = variable(kPrimaries[static_cast<std::size_t>(1 + below(4))]);
      if (chance(0.2)) size = size * variable(kCoefficients[static_cast<std::size_t>(below(4))]);
      output.push_back({size, mark(), false});
    }
    return output;
  }

  // A size that a reduction, a block or a stride may have.
  Size sample_size() {
    const bool small = chance(0.6);
    Size size = small ? variable(kCoefficients[static_cast<std::size_t>(below(4))])
                      : variable(kPrimaries[static_cast<std::size_t>(1 + below(4))]);
    if (chance(0.2)) {
      const Size other = variable(kCoefficients[static_cast<std::size_t>(below(4))]);
      size = !small && chance(0.5) ? size / other : size * other;
    }
    return size;
  }

  bool legal(const Size& size) const { return legal(size, values_); }
  bool legal(const Size& size, const Values& values) const {
    for (const char* name : kPrimaries) {
      if (size.power(variables_->index(name)) < 0) return false;
    }
    return !size.is_one() && size.total_power() <= kMaxTotalPower &&
           size.evaluate(values).has_value();
  }

  // Every coordinate is legal, and terms, data and weights are within the bounds.
  bool affordable(const Values& values) const {
    const auto within = [&](const std::vector<CoordinateId>& ids, std::int64_t bound) {
      std::int64_t product = 1;
      for (const CoordinateId id : ids) {
        const std::int64_t extent = *graph_.extent(id).evaluate(values);
        if (extent > bound || product > bound / extent) return false;
        product *= extent;
      }
      return true;
    };
    std::vector<CoordinateId> terms;
    for (std::size_t i = 0; i < graph_.coordinates().size(); ++i) {
      const auto id = static_cast<CoordinateId>(i);
      if (!legal(graph_.extent(id), values)) return false;
      if (graph_.is_iterator(id) || graph_.is_reduction(id)) terms.push_back(id);
    }
    for (const Weight& weight : graph_.weights()) {
      if (!within(weight.dims, options_.max_elements)) return false;
    }
    return within(terms, options_.max_terms) && within(graph_.frontier(), options_.max_elements);
  }

  std::vector<CoordinateId> takeable() const {
    std::vector<CoordinateId> ids = graph_.frontier();
    if (options_.batch) ids.erase(ids.begin());
    return ids;
  }

  // Takes the step unless it makes something illegal or unaffordable.
  bool apply(const Step& step) {
    const Graph before = graph_;
    graph_.apply(step);
    if (affordable(values_)) return true;
    graph_ = before;
    return false;
  }

  void take_step() {
    const RandomMix& mix = options_.mix;
    const std::array shares{mix.split,  mix.merge,  mix.shift,  mix.expand,
                            mix.unfold, mix.stride, mix.reduce, mix.contract};
    static_assert(std::tuple_size_v<decltype(shares)> == kPrimitiveCount);
    double total = 0;
    for (const double share : shares) total += share;
    double left = random_.uniform() * total;
    std::size_t kind = 0;
    while (kind + 1 < shares.size() && (shares[kind] <= 0 || left >= shares[kind]))
      left -= shares[kind++];
    const auto primitive = static_cast<Primitive>(kind);

    if (primitive == Primitive::kReduce) {
      if (graph_.count(Primitive::kReduce) >= options_.max_reductions) return;
      const Size extent = sample_size();
      if (legal(extent)) apply(Step::reduce(extent));
      return;
    }
    if (primitive == Primitive::kContraction) {
      if (static_cast<int>(graph_.weights().size()) < options_.max_weights) contract();
      return;
    }
    std::vector<CoordinateId> ids = takeable();
    if (ids.empty()) return;
    shuffle(ids, 0);
    switch (primitive) {
      case Primitive::kSplit:
        if (ids.size() >= 2) apply(Step::split(ids[0], ids[1]));
        return;
      case Primitive::kMerge: {
        const Size block = sample_size();
        if (legal(block) && legal(graph_.extent(ids[0]) / block)) apply(Step::merge(ids[0], block));
        return;
      }
      case Primitive::kShift: shift(ids); return;
      case Primitive::kExpand:
        if (ids.size() >= 2 || options_.scalar_input) apply(Step::expand(ids[0]));
        return;
      case Primitive::kUnfold:
        if (ids.size() >= 2) unfold(ids[0], ids[1]);
        return;
      case Primitive::kStride: {
        const Size factor = sample_size();
        if (legal(factor)) apply(Step::stride(ids[0], factor));
        return;
      }
      case Primitive::kReduce:
      case Primitive::kContraction: return;
    }
  }

  void shift(const std::vector<CoordinateId>& ids) {
    CoordinateId id = ids[0];
    if (chance(options_.shift_after_window)) {
      for (const CoordinateId other : ids) {
        const Step* producer = graph_.producer(other);
        if (producer != nullptr && producer->primitive == Primitive::kUnfold) id = other;
      }
    }
    const int amount = 1 + below(options_.max_shift);
    apply(Step::shift(id, chance(0.3) ? -amount : amount));
  }

  void unfold(CoordinateId a, CoordinateId b) {
    if (value(b) > value(a) && !chance(options_.wide_windows)) std::swap(a, b);
    if (!options_.even_windows && value(b) % 2 == 0) std::swap(a, b);
    if (!options_.even_windows && value(b) % 2 == 0) return;
    apply(Step::unfold(a, b, options_.causal_windows > 0 && chance(options_.causal_windows)));
  }

  bool contract() {
    std::vector<CoordinateId> ids = takeable();
    if (ids.empty()) return false;
    shuffle(ids, 0);
    const int rank = 1 + below(std::min(options_.max_weight_rank, static_cast<int>(ids.size())));
    WeightDims dims;
    std::size_t kept = ids.size() - static_cast<std::size_t>(rank);
    for (int i = 0; i < rank; ++i) {
      const CoordinateId id = ids[static_cast<std::size_t>(i)];
      const bool held = graph_.weight_count(id) > 0;
      // A bare reduction that left the frontier would only add up the weight.
      bool leaves = chance(0.5) && (held || !graph_.is_reduction(id));
      // The input keeps a dimension.
      if (leaves && i + 1 == rank && kept == 0 && !options_.scalar_input && !options_.batch)
        leaves = false;
      kept += !leaves;
      dims.push_back({id, !leaves ? WeightRole::kKeep
                          : held  ? WeightRole::kJoin
                                  : WeightRole::kDrop});
    }
    return apply(Step::contract(dims));
  }

  CounterRandom random_;
  const RandomOptions& options_;
  VariablesPtr variables_;
  Binding binding_;
  Values values_;
  Graph graph_;
};

}  // namespace

RandomOperator random_operator(std::uint64_t seed, const RandomOptions& options) {
  if (options.extents.empty()) throw UserError("random_operator: 'extents' is empty");
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    Draw sample(seed, static_cast<std::uint64_t>(attempt), options);
    if (auto result = sample.operator_or_nothing()) return *std::move(result);
  }
  throw UserError("random_operator: nothing found in " + std::to_string(kMaxAttempts) +
                  " attempts; the options are too narrow");
}

Tensor<std::int64_t> random_integers(std::vector<std::int64_t> shape, std::uint64_t seed,
                                     std::int64_t limit) {
  auto tensor = zeros<std::int64_t>(std::move(shape));
  CounterRandom random(seed, kIntegerStream);
  for (std::int64_t& element : tensor.data) {
    element =
        static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(2 * limit + 1))) - limit;
  }
  return tensor;
}

}  // namespace syno
