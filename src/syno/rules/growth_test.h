// Random partial graphs of small specifications, for tests that take every rule.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "syno/graph/graph.h"
#include "syno/rules/catalogue.h"
#include "syno/support/random.h"

namespace syno::growth {

inline constexpr std::int64_t kMaxTerms = 700;
// Spaces that allow as many are about repeats.
inline constexpr std::int64_t kManyRepeats = 64;

struct Space {
  std::string name;
  SpecificationSource source;
  /// Sizes that Reduce, Merge and Stride are sampled from.
  std::vector<std::string> sizes;
  /// Random graphs that a test takes.
  std::uint64_t graphs = 160;
  /// Primitives that most graphs take in this order, among others; none: at random.
  std::vector<Primitive> pattern = {};
};

inline std::vector<Space> spaces() {
  std::vector<Space> list;
  SpecificationSource channels;
  channels.input = "[C, H]";
  channels.output = "[C: unordered, H]";
  channels.primary = {"C: 3", "H: 2"};
  channels.coefficient = {"s=2: 3", "k=2: 2"};
  channels.bindings = {Binding({{"C", 4}, {"H", 4}}), Binding({{"C", 6}, {"H", 6}, {"k", 3}})};
  channels.limits.max_depth = 8;
  channels.limits.max_merges = 3;
  channels.limits.max_strides = 1;
  channels.limits.even_windows = true;
  channels.limits.element_wise_weights = true;
  channels.limits.min_unfold_ratio = 1;
  channels.limits.max_repeat = 16;
  list.push_back({"channels", channels, {"s", "k", "s*k", "C", "s^-1*C", "H", "k^-1*H", "s^2"}});

  // Views alone can move: nothing is left of the budget that a contraction charges, or of its cap.
  SpecificationSource views = channels;
  views.output = "[C, H, s]";
  views.primary = {"C: 0", "H: 0"};
  views.limits.max_merges = 2;
  views.limits.max_chain_length = 3;
  list.push_back({"views", views, {"s", "k", "s*k", "s^2", "k^-1*H", "s^-1*H"}});

  // One layer in which s divides nothing: a rule may not fire where what it keeps does not fit the rejected graph's layers.
  SpecificationSource layers = channels;
  layers.output = "[C: unordered, H: unordered, s]";
  layers.bindings = {Binding({{"C", 4}, {"H", 4}}), Binding({{"C", 3}, {"H", 5}})};
  layers.limits.min_fit = 0.2;
  layers.limits.max_weights = 1;
  layers.limits.max_merges = 2;
  list.push_back({"layers", layers, {"s", "k", "s^2", "C", "s^-1*C", "H"}});

  SpecificationSource sequence = channels;
  sequence.input = "[T, C]";
  sequence.output = "[T: causal, C: unordered]";
  sequence.primary = {"T: 1", "C: 2"};
  sequence.bindings = {Binding({{"T", 4}, {"C", 4}})};
  sequence.limits.max_chain_length = 4;
  sequence.limits.negative_shifts = true;
  list.push_back({"sequence", sequence, {"s", "k", "s^2", "C", "T", "s^-1*T", "s^-1*C"}});

  // Strides above Strides, and repeats of what Merges cut.
  SpecificationSource repeats = channels;
  repeats.coefficient = {"s=2: 4", "k=2: 2"};
  repeats.bindings = {Binding({{"C", 4}, {"H", 8}})};
  repeats.limits.max_strides = 3;
  repeats.limits.max_repeat = kManyRepeats;
  list.push_back({"repeats", repeats, {"s", "k", "s^2", "s^-1*H"}, 260});
  return list;
}

inline std::int64_t terms(const Graph& graph, const Values& values, std::int64_t most = kMaxTerms) {
  std::int64_t product = 1;
  for (std::size_t id = 0; id < graph.coordinates().size(); ++id) {
    const auto coordinate = static_cast<CoordinateId>(id);
    if (graph.is_iterator(coordinate) || graph.is_reduction(coordinate))
      product *= graph.extent(coordinate).extent(values).value_or(most + 1);
    if (product > most) return product;
  }
  return product;
}

// The steps that may follow a graph, before the specification is asked.
class Steps {
 public:
  Steps(const Specification& spec, const std::vector<std::string>& sizes) : spec_(spec) {
    for (const std::string& text : sizes) sizes_.push_back(Size::parse(text, *spec.variables()));
  }

  /// All views and reductions.
  std::vector<Step> views(const Graph& graph, bool reductions) const {
    std::vector<Step> steps;
    for (const CoordinateId i : graph.frontier()) {
      const bool causal =
          graph.is_iterator(i) && graph.output()[static_cast<std::size_t>(i)].causal;
      for (const CoordinateId j : graph.frontier()) {
        if (i == j) continue;
        steps.push_back(Step::split(i, j));
        steps.push_back(Step::unfold(i, j, causal));
      }
      for (const Size& size : sizes_) {
        if (graph.extent(i) != size) steps.push_back(Step::merge(i, size));
        steps.push_back(Step::stride(i, size));
      }
      for (const int amount : {1, -1}) steps.push_back(Step::shift(i, amount));
      steps.push_back(Step::expand(i));
    }
    for (const Size& size : sizes_) {
      if (reductions) steps.push_back(Step::reduce(size));
    }
    return steps;
  }

  /// A contraction of a random part of the frontier.
  static std::optional<Step> contraction(const Graph& graph, CounterRandom& random) {
    std::vector<WeightDim> dims;
    for (const CoordinateId id : graph.frontier()) {
      // The second piece of a Merge often does what the first does: rules look for pairs.
      const Step* maker = graph.producer(id);
      if (maker != nullptr && maker->primitive == Primitive::kMerge && maker->out[1] == id &&
          random.below(2) == 0) {
        const WeightDim first = dims.empty() ? WeightDim() : dims.back();
        if (first.coordinate == maker->out[0]) dims.push_back(leaving(graph, id, first.role));
        continue;
      }
      const std::uint64_t choice = random.below(3);
      if (choice == 0) continue;
      dims.push_back(leaving(graph, id, choice == 1 ? WeightRole::kKeep : WeightRole::kDrop));
    }
    if (dims.empty()) return std::nullopt;
    return Step::contract(std::move(dims));
  }

 private:
  static WeightDim leaving(const Graph& graph, CoordinateId id, WeightRole role) {
    if (role == WeightRole::kKeep) return {id, role};
    return {id, graph.weight_count(id) > 0 ? WeightRole::kJoin : WeightRole::kDrop};
  }

  const Specification& spec_;
  std::vector<Size> sizes_;
};

// Restrictions that count: those of the catalogue, or none when a search switches them off.
using Restrictions = std::vector<const Rule*>;

inline const Rule* restricted(const Restrictions& restrictions, const RuleContext& context) {
  for (const Rule* rule : restrictions) {
    if (rule->steps.holds(context.step.primitive) && rule->matches(context)) return rule;
  }
  return nullptr;
}

inline std::string step_text(const Graph& graph, const Step& step) {
  std::string text(primitive_info(step.primitive).name);
  for (const CoordinateId id : step.in) {
    if (id != kNoCoordinate) text += " " + graph.name(id);
  }
  for (const WeightDim& dim : step.dims)
    text += " " + graph.name(dim.coordinate) + ":" + std::string(role_name(dim.role));
  if (!step.size.is_one()) text += " " + step.size.text(*graph.variables());
  if (step.amount != 0) text += " " + std::to_string(step.amount);
  return text + "\n";
}

inline std::string text_of(const Graph& graph) {
  std::string text = "out " + shape_text(graph.output(), *graph.variables()) + "\n";
  for (const Step& step : graph.steps()) text += "  " + step_text(graph, step);
  return text;
}

inline bool small_enough(const Specification& spec, const Graph& graph, FitMask fit,
                         std::int64_t most) {
  for (std::size_t b = 0; b < spec.bindings().size(); ++b) {
    if ((fit >> b & 1) && terms(graph, spec.bindings()[b], most) <= most) return true;
  }
  return false;
}

// Grows one random graph. visit(graph, ledger, step) is called for every step that may be taken on the way. Three steps of
// four are the next of `pattern`, while there is one.
using Visit = std::function<void(const Graph&, const Ledger&, const Step&)>;
inline void grow(const Specification& spec, const Steps& steps, const Restrictions& restrictions,
                 std::uint64_t seed, const Visit& visit, std::int64_t most = kMaxTerms,
                 const std::vector<Primitive>& pattern = {}) {
  CounterRandom random(seed, 0);
  std::size_t next_of_pattern = 0;
  Graph graph(spec.variables(), spec.output());
  Ledger ledger = start_ledger(spec);
  for (int tries = 0; tries < 60 && ledger.depth + 1 < spec.limits().max_depth; ++tries) {
    std::vector<Step> candidates = steps.views(graph, graph.depth() < 4);
    for (int i = 0; i < 12; ++i) {
      if (auto step = Steps::contraction(graph, random)) candidates.push_back(*std::move(step));
    }
    std::erase_if(candidates, [&](const Step& step) {
      if (restricted(restrictions, {spec, graph, step}) != nullptr) return true;
      Ledger next = ledger;
      if (!admit(spec, graph, step, next).empty()) return true;
      Graph longer = graph;
      longer.apply(step);
      return !small_enough(spec, longer, next.fit, most);
    });
    if (candidates.empty()) return;
    for (const Step& step : candidates) visit(graph, ledger, step);
    if (next_of_pattern < pattern.size() && random.below(4) > 0) {
      const auto wanted = std::partition(
          candidates.begin(), candidates.end(),
          [&](const Step& candidate) { return candidate.primitive == pattern[next_of_pattern]; });
      if (wanted == candidates.begin()) return;
      candidates.erase(wanted, candidates.end());
      ++next_of_pattern;
    }
    // Half of the graphs start with reductions, which few of the candidates are.
    if (pattern.empty() && seed % 4 < 2 && graph.depth() < 2) {
      const auto reductions =
          std::partition(candidates.begin(), candidates.end(),
                         [](const Step& step) { return step.primitive == Primitive::kReduce; });
      if (reductions != candidates.begin()) candidates.erase(reductions, candidates.end());
    }
    // Repeats of a piece alone are rare otherwise.
    if (spec.limits().max_repeat >= kManyRepeats && random.below(4) > 0) {
      const auto pieces =
          std::partition(candidates.begin(), candidates.end(), [&](const Step& candidate) {
            if (candidate.primitive != Primitive::kExpand) return false;
            const Step* maker = graph.producer(candidate.in[0]);
            return maker != nullptr && maker->primitive == Primitive::kMerge;
          });
      if (pieces != candidates.begin()) {
        const Step step =
            candidates[random.below(static_cast<std::uint64_t>(pieces - candidates.begin()))];
        admit(spec, graph, step, ledger);
        graph.apply(step);
        continue;
      }
    }
    const Step step = candidates[random.below(candidates.size())];
    // What cannot be followed by much is sampled less often.
    if ((step.primitive == Primitive::kExpand || step.primitive == Primitive::kUnfold) &&
        random.below(3) > 0)
      continue;
    admit(spec, graph, step, ledger);
    graph.apply(step);
  }
}

}  // namespace syno::growth
