#include "syno/spec/ledger.h"

#include <algorithm>
#include <cstdlib>

#include "syno/spec/size_values.h"
#include "syno/support/error.h"
#include "syno/support/text.h"

namespace syno {
namespace {

std::int64_t cap(const Limits& limits, Primitive primitive) {
  switch (primitive) {
    case Primitive::kSplit: return limits.max_splits;
    case Primitive::kMerge: return limits.max_merges;
    case Primitive::kShift: return limits.max_shifts;
    case Primitive::kExpand: return limits.max_repeat > 1 ? limits.max_depth : 0;
    case Primitive::kUnfold: return limits.max_unfolds;
    case Primitive::kStride: return limits.max_strides;
    case Primitive::kReduce: return limits.max_reductions;
    case Primitive::kShare: return limits.max_weights;
  }
  throw InternalError("cap: not a primitive");
}

// The product of the coordinates that leave the frontier in a contraction: reductions (indices only weights share) or the
// others (outer indices).
Size leaving(const Graph& graph, const Step& step, bool reductions) {
  Size product;
  for (const SharedDim& dim : step.dims) {
    if (dim.role != ShareRole::kKeep && graph.reductions_only(dim.coordinate) == reductions) {
      product = product * graph.extent(dim.coordinate);
    }
  }
  return product;
}

Size weight_size(const Graph& graph, const Step& step) {
  Size product;
  for (const SharedDim& dim : step.dims) product = product * graph.extent(dim.coordinate);
  return product;
}

// Conditions that hold or not under each binding; each narrows the fit and has its own name.
class FitNarrowing {
 public:
  FitNarrowing(const Specification& spec, FitMask fit) : spec_(spec), fit_(fit) {}
  void require(Reason name, FitMask where) {
    if (!failed_.empty()) return;
    fit_ &= where;
    if (!spec_.fit_suffices(fit_)) failed_ = name;
  }
  Reason failed() const { return failed_; }
  FitMask fit() const { return fit_; }

 private:
  const Specification& spec_;
  FitMask fit_;
  Reason failed_ = reason::kNone;
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

int chain_length(const Graph& graph, CoordinateId id) {
  return graph.coordinate(id).chain;
}

Charges step_charges(const Specification& spec, const Graph& graph, const Step& step) {
  Charges charges{};
  const std::size_t count = spec.variables()->count();
  for (std::size_t v = 0; v < count; ++v) {
    int charge = 0;
    switch (step.primitive) {
      case Primitive::kReduce:
      case Primitive::kStride: charge = std::abs(step.size.power(v)); break;
      case Primitive::kMerge: {
        const int whole = graph.extent(step.in[0]).power(v);
        const int block = step.size.power(v);
        charge = (std::abs(whole - block) + std::abs(block) - std::abs(whole)) / 2;
        break;
      }
      case Primitive::kShare:
        if (!spec.variable(v).primary) break;
        for (const SharedDim& dim : step.dims)
          charge += std::abs(graph.extent(dim.coordinate).power(v));
        break;
      case Primitive::kSplit:
      case Primitive::kUnfold:
      case Primitive::kShift:
      case Primitive::kExpand: break;
    }
    charges[v] = static_cast<std::int16_t>(charge);
  }
  return charges;
}

Reason admit(const Specification& spec, const Graph& graph, const Step& step, Ledger& ledger) {
  const Limits& limits = spec.limits();
  const PrimitiveInfo& info = primitive_info(step.primitive);
  Ledger next = ledger;
  if (++next.depth > limits.max_depth) return reason::kDepth;
  if (++next.counts[static_cast<std::size_t>(step.primitive)] > cap(limits, step.primitive)) {
    return step.primitive == Primitive::kShare ? reason::kWeights : reason::kCap;
  }
  const auto passes = [&](CoordinateId id) {
    return graph.is_iterator(id) && spec.passes_output(graph.coordinate(id).index);
  };
  for (int j = 0; j < info.consumes; ++j) {
    if (passes(step.in[static_cast<std::size_t>(j)])) return reason::kPassedThrough;
  }
  for (const SharedDim& dim : step.dims) {
    if (passes(dim.coordinate)) return reason::kPassedThrough;
  }
  if (info.consumes > 0 && info.produces > 0) {
    int longest = 0;
    for (int j = 0; j < info.consumes; ++j)
      longest = std::max(longest, chain_length(graph, step.in[static_cast<std::size_t>(j)]));
    if (longest + 1 > limits.max_chain_length) return reason::kChain;
  }

  const Charges charges = step_charges(spec, graph, step);
  for (std::size_t v = 0; v < spec.variables()->count(); ++v) {
    if (charges[v] == 0) continue;
    next.charges[v] = static_cast<std::int16_t>(next.charges[v] + charges[v]);
    if (next.charges[v] > spec.variable(v).budget) return reason::kBudget;
  }

  SizeTable& table = SizeTable::of(spec);
  table.tidy();
  const auto values = [&](const Size& size) -> const SizeValues& { return table.at(spec, size); };
  const std::size_t bindings = spec.bindings().size();
  std::array<Size, 2> in;
  for (int j = 0; j < info.consumes; ++j)
    in[static_cast<std::size_t>(j)] = graph.extent(step.in[static_cast<std::size_t>(j)]);
  const std::array<Size, 2> out =
      info.extents(step, {in.data(), static_cast<std::size_t>(info.consumes)});
  FitMask fits = spec.full_fit();
  for (int i = 0; i < info.produces; ++i) {
    const SizeValues& extent = values(out[static_cast<std::size_t>(i)]);
    if (!extent.legal) return reason::kIllegalSize;
    fits &= extent.fit;
  }
  // K times S may be an integer where the factor S is none.
  if (step.primitive == Primitive::kStride) fits &= values(step.size).fit;
  FitNarrowing narrowing(spec, next.fit);
  if (info.produces > 0) narrowing.require(reason::kFit, fits);

  switch (step.primitive) {
    case Primitive::kShift:
      if (std::abs(step.amount) > limits.max_shift_amount ||
          (step.amount < 0 && !limits.negative_shifts))
        return reason::kShiftAmount;
      break;
    case Primitive::kExpand:
      next.repeats = next.repeats * in[0];
      narrowing.require(
          reason::kRepeat,
          values(next.repeats).at_most(static_cast<double>(limits.max_repeat), bindings));
      break;
    case Primitive::kUnfold: {
      if (step.causal != graph.coordinate(step.in[0]).causal) return reason::kCausal;
      const SizeValues& window = values(in[1]);
      if (!limits.even_windows) narrowing.require(reason::kEvenWindow, window.odd);
      narrowing.require(reason::kWindow,
                        window.at_most(static_cast<double>(limits.max_window), bindings));
      const SizeValues& extent = values(in[0]);
      FitMask wide = 0;
      for (std::size_t b = 0; b < bindings; ++b) {
        wide |= FitMask{extent.values[b] >= limits.min_unfold_ratio * window.values[b]} << b;
      }
      narrowing.require(reason::kUnfoldRatio, wide);
      break;
    }
    case Primitive::kReduce: {
      next.reductions = next.reductions * step.size;
      const SizeValues& reductions = values(next.reductions);
      const SizeValues& elements = values(input_elements(spec));
      FitMask few = 0;
      for (std::size_t b = 0; b < bindings; ++b) {
        few |= FitMask{reductions.values[b] <= limits.max_reduction_ratio * elements.values[b]}
               << b;
      }
      narrowing.require(reason::kReductionRatio, few);
      break;
    }
    case Primitive::kShare: {
      const bool all_kept =
          std::all_of(step.dims.begin(), step.dims.end(),
                      [](const SharedDim& dim) { return dim.role == ShareRole::kKeep; });
      if (all_kept && !limits.element_wise_weights) return reason::kElementWise;
      narrowing.require(reason::kWeightParams,
                        values(weight_size(graph, step))
                            .at_least(static_cast<double>(limits.min_weight_params), bindings));
      narrowing.require(reason::kDropped,
                        values(leaving(graph, step, false))
                            .at_most(static_cast<double>(limits.max_dropped), bindings));
      narrowing.require(reason::kJoined,
                        values(leaving(graph, step, true))
                            .at_most(static_cast<double>(limits.max_joined), bindings));
      break;
    }
    case Primitive::kSplit:
    case Primitive::kMerge:
    case Primitive::kStride: break;
  }
  if (!narrowing.failed().empty()) return narrowing.failed();
  next.fit = narrowing.fit();
  ledger = next;
  return reason::kNone;
}

std::string describe_refusal(const Specification& spec, const Graph& graph, const Step& step,
                             Reason why) {
  const Variables& variables = *spec.variables();
  const PrimitiveInfo& info = primitive_info(step.primitive);
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
  for (const SharedDim& dim : step.dims)
    operands.push_back("'" + graph.name(dim.coordinate) + "' (extent " +
                       graph.extent(dim.coordinate).text(variables) + ")");
  std::string what = "cannot " + name + " " + join(operands, ", ");
  if (step.primitive == Primitive::kMerge || step.primitive == Primitive::kStride)
    what += " with size " + step.size.text(variables);
  if (step.primitive == Primitive::kReduce)
    what = "cannot reduce over size " + step.size.text(variables);

  if (why == reason::kIllegalSize || why == reason::kFit) {
    std::array<Size, 2> in;
    for (int j = 0; j < info.consumes; ++j)
      in[static_cast<std::size_t>(j)] = graph.extent(step.in[static_cast<std::size_t>(j)]);
    const auto out = info.extents(step, {in.data(), static_cast<std::size_t>(info.consumes)});
    for (int i = 0; i < info.produces; ++i) {
      const Size& size = out[static_cast<std::size_t>(i)];
      const std::string illegal = spec.why_illegal(size);
      if (!illegal.empty()) return what + ": " + illegal;
      if (!spec.fit_suffices(spec.fit(size))) {
        return what + ": " + size.text(variables) + not_whole(size);
      }
    }
    if (step.primitive == Primitive::kStride && !spec.fit_suffices(spec.fit(step.size))) {
      return what + ": the factor " + step.size.text(variables) + not_whole(step.size);
    }
    return what + ": the layers left cover less than " + limit("min_fit");
  }
  if (why == reason::kBudget) {
    const Charges charges = step_charges(spec, graph, step);
    std::vector<std::string> parts;
    for (std::size_t v = 0; v < variables.count(); ++v) {
      if (charges[v] > 0)
        parts.push_back(std::to_string(charges[v]) + " of " + variables.name(v) + " (budget " +
                        std::to_string(spec.variable(v).budget) + ")");
    }
    return what + ": a budget is used up; the step charges " + join(parts, ", ");
  }
  if (why == reason::kPassedThrough) return what + ": a passed-through dimension is not touched";
  if (why == reason::kElementWise)
    return what + ": a weight that keeps all its coordinates needs element_wise_weights";
  if (why == reason::kCap) {
    const std::string plural =
        step.primitive == Primitive::kExpand ? "max_repeat" : "max_" + name + "s";
    const std::string option = step.primitive == Primitive::kReduce ? "max_reductions" : plural;
    return what + ": " + limit(option) + " is reached";
  }
  if (why == reason::kCausal)
    return what + ": a causal dimension takes causal windows, and others take centred ones";
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
      throw Complaint(describe_refusal(spec, prefix, step, why))
          .where("specification \"" + spec.text() + "\", step " +
                 std::to_string(prefix.steps().size() + 1) + " of " +
                 std::to_string(graph.steps().size()) + " (" +
                 std::string(primitive_info(step.primitive).name) + ")")
          .error();
    }
    prefix.apply(step);
  }
  return ledger;
}

}  // namespace syno
