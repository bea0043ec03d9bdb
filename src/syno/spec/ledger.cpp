#include "syno/spec/ledger.h"

#include <algorithm>

#include "syno/spec/legality.h"
#include "syno/spec/size_values.h"
#include "syno/support/error.h"
#include "syno/support/text.h"

namespace syno {
namespace {

// A ledger that a step is entered in.
class LedgerAccount {
 public:
  using Extent = const SizeValues*;

  LedgerAccount(const Specification& spec, SizeTable& table, const Ledger& ledger)
      : spec_(spec), table_(table), ledger_(ledger) {}

  Extent extent(const Size& size) const { return &table_.at(spec_, size); }
  Extent times(Extent a, Extent b) const { return extent(a->size * b->size); }
  Extent over(Extent a, Extent b) const { return extent(a->size / b->size); }
  static bool legal(Extent e) { return e->legal; }
  static FitMask fit(Extent e) { return e->fit; }
  static const Size& size(Extent e) { return e->size; }
  static double value(Extent e, std::size_t b) { return e->values[b]; }
  FitMask odd_fit(Extent window) const {
    return spec_.limits().even_windows ? spec_.full_fit() : window->odd;
  }
  FitMask window_fit(Extent window) const {
    return window->at_most(static_cast<double>(spec_.limits().max_window), spec_.bindings().size());
  }
  FitMask slide_fit(Extent extent, Extent window) const {
    FitMask wide = 0;
    for (std::size_t b = 0; b < spec_.bindings().size(); ++b) {
      const double least = spec_.limits().min_unfold_ratio * window->values[b];
      wide |= FitMask{extent->values[b] >= least} << b;
    }
    return wide;
  }
  int add_step() { return ++ledger_.depth; }
  int add(Primitive primitive) { return ++ledger_.counts[static_cast<std::size_t>(primitive)]; }
  bool pay(std::size_t v, int charge) {
    ledger_.charges[v] = static_cast<std::int16_t>(ledger_.charges[v] + charge);
    return ledger_.charges[v] <= spec_.variable(v).budget;
  }
  FitMask& fit_left() { return ledger_.fit; }
  Extent add_reduction(Extent e) {
    return extent(ledger_.reductions = ledger_.reductions * e->size);
  }
  Extent add_repeat(Extent e) { return extent(ledger_.repeats = ledger_.repeats * e->size); }
  Extent input() const { return extent(input_elements(spec_)); }

  const Ledger& ledger() const { return ledger_; }

 private:
  const Specification& spec_;
  SizeTable& table_;
  Ledger ledger_;
};

}  // namespace

Size input_elements(const Specification& spec) {
  Size product;
  for (std::size_t d = 0; d < spec.input().size(); ++d) {
    if (!spec.passes_input(static_cast<int>(d))) product = product * spec.input()[d].size;
  }
  return product;
}

Ledger start_ledger(const Specification& spec) {
  Ledger ledger;
  ledger.fit = spec.full_fit();
  return ledger;
}

Charges step_charges(const Specification& spec, const Graph& graph, const Step& step) {
  const PrimitiveInfo& info = step.info();
  Charges charges{};
  for (std::size_t v = 0; v < spec.variables()->count(); ++v) {
    int charge = 0;
    if (info.charge == Charge::kWeightDims) {
      if (!spec.variable(v).primary) continue;
      for (const WeightDim& dim : step.dims)
        charge += charge_of(info.charge, graph.extent(dim.coordinate).power(v), 0);
    } else {
      const int extent = info.consumes > 0 ? graph.extent(step.in[0]).power(v) : 0;
      charge = charge_of(info.charge, extent, step.size.power(v));
    }
    charges[v] = static_cast<std::int16_t>(charge);
  }
  return charges;
}

Reason admit(const Specification& spec, const Graph& graph, const Step& step, Ledger& ledger) {
  SizeTable& table = SizeTable::of(spec);
  table.tidy();
  LedgerAccount account(spec, table, ledger);
  const auto passes = [&](CoordinateId id) {
    return graph.is_iterator(id) && spec.passes_output(graph.coordinate(id).index);
  };
  StepRequest<LedgerAccount::Extent> request{.info = step.info()};
  for (std::size_t j = 0; j < static_cast<std::size_t>(request.info.consumes); ++j) {
    const Coordinate& from = graph.coordinate(step.in[j]);
    request.in[j] = account.extent(from.extent);
    request.on_passed = request.on_passed || passes(step.in[j]);
    if (step.is_view()) request.chain = std::max(request.chain, from.chain + 1);
  }
  if (takes_size(request.info.argument)) request.size = account.extent(step.size);
  request.amount = step.amount;
  request.causal = step.causal;
  if (request.info.consumes > 0) request.on_causal = graph.coordinate(step.in[0]).causal;
  InlineVector<TakenDim<LedgerAccount::Extent>, 8> taken;
  for (const WeightDim& dim : step.dims) {
    request.on_passed = request.on_passed || passes(dim.coordinate);
    taken.push_back({account.extent(graph.extent(dim.coordinate)), dim.role != WeightRole::kKeep,
                     graph.reductions_only(dim.coordinate)});
  }
  request.taken = {taken.begin(), taken.end()};
  if (const Reason why = decide(spec, account, request); !why.empty()) return why;
  ledger = account.ledger();
  return reason::kNone;
}

std::string describe_rejection(const Specification& spec, const Graph& graph, const Step& step,
                               Reason why) {
  const Variables& variables = *spec.variables();
  const PrimitiveInfo& info = step.info();
  const std::string name(info.name);
  const auto limit = [&](std::string_view option) {
    return std::string(option) + "=" + digits_text(limit_option(option).get(spec.limits()));
  };
  const auto not_whole = [&](const Size& size) -> std::string {
    if (spec.fit(size) == 0) return " is a positive integer under no binding";
    return " is not a positive integer under enough bindings (" + limit("min_fit") + ")";
  };
  std::vector<std::string> operands;
  for (int j = 0; j < info.consumes; ++j) {
    const CoordinateId id = step.in[static_cast<std::size_t>(j)];
    operands.push_back("'" + graph.name(id) + "' (extent " + graph.extent(id).text(variables) +
                       ")");
  }
  for (const WeightDim& dim : step.dims)
    operands.push_back("'" + graph.name(dim.coordinate) + "' (extent " +
                       graph.extent(dim.coordinate).text(variables) + ")");
  std::string what = "cannot " + name + " " + join(operands, ", ");
  if (takes_size(info.argument))
    what = "cannot " + name + (info.consumes > 0 ? " " + join(operands, ", ") + " with" : " over") +
           " size " + step.size.text(variables);

  if (why == reason::kIllegalSize || why == reason::kFit) {
    const std::array<Size, 2> out = graph.extents_made(step);
    for (int i = 0; i < info.produces; ++i) {
      const Size& size = out[static_cast<std::size_t>(i)];
      const std::string illegal = spec.why_illegal(size);
      if (!illegal.empty()) return what + ": " + illegal;
      if (!spec.fit_suffices(spec.fit(size))) {
        return what + ": " + size.text(variables) + not_whole(size);
      }
    }
    if (info.argument == Argument::kFactor && !spec.fit_suffices(spec.fit(step.size))) {
      return what + ": the factor " + step.size.text(variables) + not_whole(step.size);
    }
    return what + ": the remaining layers cover less than " + limit("min_fit");
  }
  if (why == reason::kBudget) {
    const Charges charges = step_charges(spec, graph, step);
    std::vector<std::string> parts;
    for (std::size_t v = 0; v < variables.count(); ++v) {
      if (charges[v] > 0)
        parts.push_back(std::to_string(charges[v]) + " of " + variables.name(v) + " (budget " +
                        std::to_string(spec.variable(v).budget) + ")");
    }
    return what + ": a budget is exhausted; the step uses " + join(parts, ", ");
  }
  if (why == reason::kPassedThrough) return what + ": no step may use a passed-through dimension";
  if (why == reason::kElementWise)
    return what + ": a weight that keeps all its coordinates needs element_wise_weights";
  if (why == reason::kCap) return what + ": " + limit(info.limit) + " is reached";
  if (why == reason::kCausal)
    return what + ": windows are causal on a causal dimension and centered on other dimensions";
  if (why == reason::kShiftAmount)
    return what + " by " + std::to_string(step.amount) + ": " + limit("max_shift_amount") + ", " +
           limit("negative_shifts");
  return what + ": " + limit(why);
}

Ledger replay(const Specification& spec, const Graph& graph) {
  Ledger ledger = start_ledger(spec);
  Graph prefix(graph.variables(), graph.output());
  for (const Step& step : graph.steps()) {
    const Reason why = admit(spec, prefix, step, ledger);
    if (!why.empty()) {
      throw Complaint(describe_rejection(spec, prefix, step, why))
          .where("specification \"" + spec.text() + "\", step " +
                 std::to_string(prefix.steps().size() + 1) + " of " +
                 std::to_string(graph.steps().size()) + " (" + std::string(step.info().name) + ")")
          .error();
    }
    prefix.apply(step);
  }
  return ledger;
}

}  // namespace syno
