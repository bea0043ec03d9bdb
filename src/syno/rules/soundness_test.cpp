// Soundness of the exact rules by brute force. Random graphs are built from steps that a small specification admits. On
// top of each, every step that a rule refuses is compared with what the rule keeps instead:
//   1. both graphs, read as operators of their own frontier, are the same operator, term by term (E1 to E4);
//   2. what comes after the refused step can come after what is kept: random further steps that the specification and
//      the restrictions admit on one are admitted on the other.
// A failure prints the rule, the seed and the smallest case that still fails.
#include <algorithm>
#include <gtest/gtest.h>
#include <iostream>
#include <map>
#include <optional>
#include <set>

#include "syno/access/key_oracle_test.h"
#include "syno/graph/canonical.h"
#include "syno/graph/operator.h"
#include "syno/rules/catalogue.h"
#include "syno/rules/rebuild.h"
#include "syno/support/error.h"
#include "syno/support/random.h"

namespace syno {
namespace {

constexpr int kFirings = 150;
constexpr std::int64_t kMaxTerms = 700;

struct Space {
  std::string name;
  SpecificationSource source;
  /// Sizes that Reduce, Merge and Stride are drawn from.
  std::vector<std::string> sizes;
};

std::vector<Space> spaces() {
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

  // One layer in which s divides nothing: a rule may not fire where what it keeps does not fit the refused graph's layers.
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
  return list;
}

std::int64_t terms(const Graph& graph, const Values& values) {
  std::int64_t product = 1;
  for (std::size_t id = 0; id < graph.coordinates().size(); ++id) {
    const auto coordinate = static_cast<CoordinateId>(id);
    if (graph.is_iterator(coordinate) || graph.is_reduction(coordinate))
      product *= graph.extent(coordinate).extent(values).value_or(kMaxTerms + 1);
    if (product > kMaxTerms) return product;
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
    std::vector<SharedDim> dims;
    for (const CoordinateId id : graph.frontier()) {
      // The second piece of a Merge often does what the first does: rules look for pairs.
      const Step* maker = graph.producer(id);
      if (maker != nullptr && maker->primitive == Primitive::kMerge && maker->out[1] == id &&
          random.below(2) == 0) {
        const SharedDim first = dims.empty() ? SharedDim() : dims.back();
        if (first.coordinate == maker->out[0]) dims.push_back(leaving(graph, id, first.role));
        continue;
      }
      const std::uint64_t choice = random.below(3);
      if (choice == 0) continue;
      dims.push_back(leaving(graph, id, choice == 1 ? ShareRole::kKeep : ShareRole::kDrop));
    }
    if (dims.empty()) return std::nullopt;
    return Step::contract(std::move(dims));
  }

 private:
  static SharedDim leaving(const Graph& graph, CoordinateId id, ShareRole role) {
    if (role == ShareRole::kKeep) return {id, role};
    return {id, graph.share_count(id) > 0 ? ShareRole::kJoin : ShareRole::kDrop};
  }

  const Specification& spec_;
  std::vector<Size> sizes_;
};

// The operator that reads its input where the frontier of `graph` stands, in the given order.
Operator completed(const Graph& graph, const std::vector<CoordinateId>& order) {
  Shape input;
  for (const CoordinateId id : order) input.push_back({graph.extent(id), false, false});
  return Operator(graph, input, order);
}

// Every order of the frontier of `graph` in which extents are those of `extents`.
std::vector<std::vector<CoordinateId>> orders(const Graph& graph,
                                              const std::vector<Size>& extents) {
  std::vector<std::vector<CoordinateId>> found;
  std::vector<CoordinateId> order = graph.frontier();
  if (order.size() != extents.size()) return found;
  do {
    bool fits = true;
    for (std::size_t d = 0; d < order.size() && fits; ++d)
      fits = graph.extent(order[d]) == extents[d];
    if (fits) found.push_back(order);
  } while (std::next_permutation(order.begin(), order.end()));
  return found;
}

struct Firing {
  const Rule* rule;
  Graph graph;
  Step step;
  std::uint64_t seed;
};

struct Verdict {
  /// Empty when nothing is wrong.
  std::string complaint;
  /// Orders of the kept graph's frontier under which it is the refused operator.
  std::vector<std::vector<CoordinateId>> orders;
};

Verdict compare(const Specification& spec, const Graph& refused, const Graph& kept, FitMask fit) {
  std::vector<Size> extents;
  for (const CoordinateId id : refused.frontier()) extents.push_back(refused.extent(id));
  Verdict verdict;
  verdict.orders = orders(kept, extents);
  if (verdict.orders.empty()) verdict.complaint = "the frontiers have different extents";
  const Operator wanted = completed(refused, refused.frontier()).in_table(spec.variables());
  bool compared = false;
  for (std::size_t b = 0; b < spec.bindings().size(); ++b) {
    const Values& values = spec.bindings()[b];
    if ((fit >> b & 1) == 0 || terms(refused, values) > kMaxTerms) continue;
    compared = true;
    const oracle::TermSet expected = oracle::term_set(wanted, values);
    const std::uint64_t invariant = oracle::invariant(expected);
    std::erase_if(verdict.orders, [&](const std::vector<CoordinateId>& order) {
      const oracle::TermSet found =
          oracle::term_set(completed(kept, order).in_table(spec.variables()), values);
      return oracle::invariant(found) != invariant || !oracle::same_operator(expected, found);
    });
    if (verdict.orders.empty() && verdict.complaint.empty())
      verdict.complaint = "no order of what is kept is the same operator";
  }
  ensure(compared, "soundness: no binding is small enough");
  return verdict;
}

// Restrictions that count: those of the catalogue, or none when a search switches them off.
using Restrictions = std::vector<const Rule*>;

const Rule* restricted(const Restrictions& restrictions, const RuleContext& context) {
  for (const Rule* rule : restrictions) {
    if (rule->matches(context)) return rule;
  }
  return nullptr;
}

std::string step_text(const Graph& graph, const Step& step) {
  std::string text(primitive_info(step.primitive).name);
  for (const CoordinateId id : step.in) {
    if (id != kNoCoordinate) text += " " + graph.name(id);
  }
  for (const SharedDim& dim : step.dims)
    text += " " + graph.name(dim.coordinate) + ":" + std::string(role_name(dim.role));
  if (!step.size.is_one()) text += " " + step.size.text(*graph.variables());
  if (step.amount != 0) text += " " + std::to_string(step.amount);
  return text + "\n";
}

std::string text_of(const Graph& graph) {
  std::string text = "out " + shape_text(graph.output(), *graph.variables()) + "\n";
  for (const Step& step : graph.steps()) text += "  " + step_text(graph, step);
  return text;
}

// Takes random further steps on both graphs, where `order` says which coordinates of the kept one stand for those of
// the refused one's frontier. Reductions come before every other step in a search, so none follows. Returns the first
// step that only the refused graph may take, in words, or nothing.
std::string first_loss(const Specification& spec, const Steps& steps,
                       const Restrictions& restrictions, Graph refused, Graph kept,
                       const std::vector<CoordinateId>& order, CounterRandom random) {
  std::map<CoordinateId, CoordinateId> to;
  for (std::size_t d = 0; d < order.size(); ++d) to[refused.frontier()[d]] = order[d];
  Ledger refused_ledger = replay(spec, refused);
  Ledger kept_ledger = replay(spec, kept);
  std::string suffix;
  for (int tries = 0; tries < 40; ++tries) {
    std::optional<Step> step;
    if (random.below(3) == 0) {
      step = Steps::contraction(refused, random);
    } else {
      const std::vector<Step> views = steps.views(refused, false);
      if (!views.empty()) step = views[random.below(views.size())];
    }
    if (!step || restricted(restrictions, {spec, refused, *step}) != nullptr ||
        !admit(spec, refused, *step, refused_ledger).empty())
      continue;
    Step other = *step;
    for (CoordinateId& id : other.in) {
      if (id != kNoCoordinate) id = to.at(id);
    }
    for (SharedDim& dim : other.dims) {
      dim.coordinate = to.at(dim.coordinate);
      if (dim.role == ShareRole::kKeep) continue;
      dim.role = kept.share_count(dim.coordinate) > 0 ? ShareRole::kJoin : ShareRole::kDrop;
    }
    suffix += "  " + step_text(refused, *step);
    const Rule* rule = restricted(restrictions, {spec, kept, other});
    // The two pieces stand in the kept graph already, two steps cheaper: that form goes on, not this one.
    if (rule == &kMergeUndoesSplit) return "";
    if (rule != nullptr) return suffix + "    left out by " + std::string(rule->name) + "\n";
    const Reason why = admit(spec, kept, other, kept_ledger);
    if (!why.empty()) return suffix + "    refused for " + std::string(why) + "\n";
    const Step taken = refused.apply(*step);
    const Step other_taken = kept.apply(other);
    for (int i = 0; i < primitive_info(taken.primitive).produces; ++i)
      to[taken.out[static_cast<std::size_t>(i)]] = other_taken.out[static_cast<std::size_t>(i)];
  }
  return "";
}

// What is wrong with a firing; empty when nothing is.
std::string fault(const Specification& spec, const Steps& steps, const Restrictions& restrictions,
                  const Firing& firing) {
  const RuleContext context{spec, firing.graph, firing.step};
  const std::optional<Graph> kept = firing.rule->rewrite(context);
  Graph refused = firing.graph;
  refused.apply(firing.step);
  const Verdict verdict = compare(spec, refused, *kept, replay(spec, refused).fit);
  if (!verdict.complaint.empty()) return verdict.complaint;
  for (std::uint64_t stream = 0; stream < 4; ++stream) {
    std::string loss;
    for (const auto& order : verdict.orders) {
      loss = first_loss(spec, steps, restrictions, refused, *kept, order,
                        CounterRandom(firing.seed, 1 + stream));
      if (loss.empty()) break;
    }
    if (!loss.empty()) return "only the refused graph goes on with\n" + loss;
  }
  return "";
}

// The firing with as many steps taken away as still leave a fault.
Firing shrunk(const Specification& spec, const Steps& steps, const Restrictions& restrictions,
              Firing firing) {
  for (std::size_t s = firing.graph.steps().size(); s-- > 0;) {
    Rebuild rebuild(firing.graph);
    Firing smaller = firing;
    try {
      for (std::size_t other = 0; other < firing.graph.steps().size(); ++other) {
        if (other != s) rebuild.copy(other);
      }
      smaller.graph = rebuild.graph();
      smaller.step = rebuild.renamed(firing.step);
      Graph whole = smaller.graph;
      whole.apply(smaller.step);
    } catch (const UserError&) {
      continue;  // A later step needs this one.
    }
    if (refuses(*smaller.rule, {spec, smaller.graph, smaller.step}, restrictions) &&
        !fault(spec, steps, restrictions, smaller).empty())
      firing = smaller;
  }
  return firing;
}

bool small_enough(const Specification& spec, const Graph& graph, FitMask fit) {
  for (std::size_t b = 0; b < spec.bindings().size(); ++b) {
    if ((fit >> b & 1) && terms(graph, spec.bindings()[b]) <= kMaxTerms) return true;
  }
  return false;
}

class Soundness {
 public:
  explicit Soundness(const Space& space)
      : space_(space), spec_(space.source), steps_(spec_, space.sizes) {}

  /// Grows one random graph and checks every refusal met on the way.
  void grow(std::uint64_t seed, std::map<const Rule*, int>& firings) {
    CounterRandom random(seed, 0);
    restrictions_ = seed % 2 == 0 ? RuleSet::restrictions().rules() : Restrictions();
    Graph graph(spec_.variables(), spec_.output());
    Ledger ledger = start_ledger(spec_);
    for (int tries = 0; tries < 60 && ledger.depth + 1 < spec_.limits().max_depth; ++tries) {
      std::vector<Step> candidates = steps_.views(graph, graph.depth() < 4);
      for (int i = 0; i < 12; ++i) {
        if (auto step = Steps::contraction(graph, random)) candidates.push_back(*std::move(step));
      }
      std::erase_if(candidates, [&](const Step& step) {
        if (restricted(restrictions_, {spec_, graph, step}) != nullptr) return true;
        Ledger next = ledger;
        if (!admit(spec_, graph, step, next).empty()) return true;
        Graph longer = graph;
        longer.apply(step);
        return !small_enough(spec_, longer, next.fit);
      });
      if (candidates.empty()) return;
      for (const Step& step : candidates) check(seed, graph, step, firings);
      // Half of the graphs start with reductions, which few of the candidates are.
      if (seed % 4 < 2 && graph.depth() < 2) {
        const auto reductions =
            std::partition(candidates.begin(), candidates.end(),
                           [](const Step& step) { return step.primitive == Primitive::kReduce; });
        if (reductions != candidates.begin()) candidates.erase(reductions, candidates.end());
      }
      const Step step = candidates[random.below(candidates.size())];
      // What cannot be followed by much is drawn less often.
      if ((step.primitive == Primitive::kExpand || step.primitive == Primitive::kUnfold) &&
          random.below(3) > 0)
        continue;
      admit(spec_, graph, step, ledger);
      graph.apply(step);
    }
  }

 private:
  void check(std::uint64_t seed, const Graph& graph, const Step& step,
             std::map<const Rule*, int>& firings) {
    for (const Rule* rule : catalogue()) {
      if (rule->kind != RuleKind::kExact || firings[rule] >= kFirings) continue;
      const RuleContext context{spec_, graph, step};
      if (!refuses(*rule, context, restrictions_)) continue;
      Graph refused = graph;
      refused.apply(step);
      if (!seen_.insert({rule, structure_hash(refused)}).second) continue;
      ++firings[rule];
      if (failed_.contains(rule)) continue;
      const Firing firing{rule, graph, step, seed};
      if (fault(spec_, steps_, restrictions_, firing).empty()) continue;
      failed_.insert(rule);
      const Firing smallest = shrunk(spec_, steps_, restrictions_, firing);
      ADD_FAILURE() << rule->id << " " << rule->name << " in space '" << space_.name << "', seed "
                    << seed << (restrictions_.empty() ? ", restrictions off\n" : "\n")
                    << text_of(smallest.graph)
                    << "refused: " << step_text(smallest.graph, smallest.step) << "kept "
                    << text_of(*rule->rewrite({spec_, smallest.graph, smallest.step}))
                    << fault(spec_, steps_, restrictions_, smallest);
    }
  }

  const Space& space_;
  Specification spec_;
  Steps steps_;
  Restrictions restrictions_;
  std::set<std::pair<const Rule*, Hash128>> seen_;
  /// Rules with a failure; one a space is enough.
  std::set<const Rule*> failed_;
};

TEST(ExactRules, KeepTheSameOperatorAndEverythingThatCanFollow) {
  std::map<const Rule*, int> total;
  for (const Space& space : spaces()) {
    Soundness soundness(space);
    std::map<const Rule*, int> firings;
    for (std::uint64_t seed = 1; seed <= 160; ++seed) soundness.grow(seed, firings);
    std::cout << space.name << ":";
    for (const Rule* rule : catalogue()) {
      if (rule->kind != RuleKind::kExact) continue;
      std::cout << " " << rule->id << " " << firings[rule];
      total[rule] += firings[rule];
    }
    std::cout << "\n";
  }
  for (const Rule* rule : catalogue()) {
    if (rule->kind != RuleKind::kExact) continue;
    EXPECT_GE(total[rule], 100) << rule->id << " " << rule->name;
  }
}

}  // namespace
}  // namespace syno
