// Soundness of the exact rules by brute force. Random graphs are built from steps that a small specification admits. On
// top of each, every step that a rule rejects is compared with what the rule keeps instead:
//   1. both graphs, read as operators of their own frontier, are the same operator, term by term (E1 to E4);
//   2. what comes after the rejected step can come after what is kept: random further steps that the specification and
//      the restrictions admit on one are admitted on the other.
// A failure prints the rule, the seed and the smallest case that still fails.
#include <algorithm>
#include <gtest/gtest.h>
#include <iostream>
#include <map>
#include <optional>
#include <set>

#include "syno/graph/canonical.h"
#include "syno/graph/operator.h"
#include "syno/key/oracle_test.h"
#include "syno/rules/catalogue.h"
#include "syno/rules/growth_test.h"
#include "syno/rules/rebuild.h"
#include "syno/support/error.h"
#include "syno/support/random.h"

namespace syno {
namespace {

using namespace growth;

constexpr int kFirings = 150;
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
  /// Orders of the kept graph's frontier under which it is the rejected operator.
  std::vector<std::vector<CoordinateId>> orders;
};

Verdict compare(const Specification& spec, const Graph& rejected, const Graph& kept, FitMask fit) {
  std::vector<Size> extents;
  for (const CoordinateId id : rejected.frontier()) extents.push_back(rejected.extent(id));
  Verdict verdict;
  verdict.orders = orders(kept, extents);
  if (verdict.orders.empty()) verdict.complaint = "the frontiers have different extents";
  const Operator wanted = completed(rejected, rejected.frontier()).in_table(spec.variables());
  bool compared = false;
  for (std::size_t b = 0; b < spec.bindings().size(); ++b) {
    const Values& values = spec.bindings()[b];
    if ((fit >> b & 1) == 0 || terms(rejected, values) > kMaxTerms) continue;
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

// Whether the contraction `step`, which R8 leaves out on `graph`, is taken on the graph without the Shifts of what it drops:
// a weight that drops a cyclically shifted index may hold the index itself, relabelled. That form goes on, a step cheaper.
bool drops_without_rotations(const Specification& spec, const Restrictions& restrictions,
                             const Graph& graph, const Step& step) {
  std::set<std::size_t> rotations;
  for (const WeightDim& dim : step.dims) {
    if (dim.role == WeightRole::kKeep) continue;
    for (CoordinateId id = dim.coordinate; is_unshared(graph, id, Primitive::kShift);
         id = graph.producer(id)->in[0])
      rotations.insert(step_of(graph, id));
  }
  Rebuild rebuild(graph);
  for (std::size_t s = 0; s < graph.steps().size(); ++s) {
    const Step& other = graph.steps()[s];
    if (rotations.contains(s)) {
      rebuild.rename(other.out[0], rebuild.now(other.in[0]));
    } else {
      rebuild.copy(s);
    }
  }
  const Step plain = rebuild.renamed(step);
  Ledger ledger = replay(spec, rebuild.graph());
  return !rotations.empty() &&
         restricted(restrictions, {spec, rebuild.graph(), plain}) == nullptr &&
         admit(spec, rebuild.graph(), plain, ledger).empty();
}

// Takes random further steps on both graphs, where `order` says which coordinates of the kept one stand for those of
// the rejected one's frontier. Reductions come before every other step in a search, so none follows. Returns the first
// step that only the rejected graph may take, in words, or nothing.
std::string first_loss(const Specification& spec, const Steps& steps,
                       const Restrictions& restrictions, Graph rejected, Graph kept,
                       const std::vector<CoordinateId>& order, CounterRandom random) {
  std::map<CoordinateId, CoordinateId> to;
  for (std::size_t d = 0; d < order.size(); ++d) to[rejected.frontier()[d]] = order[d];
  Ledger rejected_ledger = replay(spec, rejected);
  Ledger kept_ledger = replay(spec, kept);
  std::string suffix;
  for (int tries = 0; tries < 40; ++tries) {
    std::optional<Step> step;
    if (random.below(3) == 0) {
      step = Steps::contraction(rejected, random);
    } else {
      const std::vector<Step> views = steps.views(rejected, false);
      if (!views.empty()) step = views[random.below(views.size())];
    }
    if (!step || restricted(restrictions, {spec, rejected, *step}) != nullptr ||
        !admit(spec, rejected, *step, rejected_ledger).empty())
      continue;
    Step other = *step;
    for (CoordinateId& id : other.in) {
      if (id != kNoCoordinate) id = to.at(id);
    }
    for (WeightDim& dim : other.dims) {
      dim.coordinate = to.at(dim.coordinate);
      if (dim.role == WeightRole::kKeep) continue;
      dim.role = kept.weight_count(dim.coordinate) > 0 ? WeightRole::kJoin : WeightRole::kDrop;
    }
    suffix += "  " + step_text(rejected, *step);
    const Rule* rule = restricted(restrictions, {spec, kept, other});
    // The two pieces stand in the kept graph already, two steps cheaper: that form goes on, not this one.
    if (rule == &kMergeUndoesSplit) return "";
    if (rule == &kDroppedKinds && drops_without_rotations(spec, restrictions, kept, other))
      return "";
    if (rule != nullptr) return suffix + "    left out by " + std::string(rule->name) + "\n";
    const Reason why = admit(spec, kept, other, kept_ledger);
    if (!why.empty()) return suffix + "    rejected for " + std::string(why) + "\n";
    const Step taken = rejected.apply(*step);
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
  Graph rejected = firing.graph;
  rejected.apply(firing.step);
  const Verdict verdict = compare(spec, rejected, *kept, replay(spec, rejected).fit);
  if (!verdict.complaint.empty()) return verdict.complaint;
  for (std::uint64_t stream = 0; stream < 4; ++stream) {
    std::string loss;
    for (const auto& order : verdict.orders) {
      loss = first_loss(spec, steps, restrictions, rejected, *kept, order,
                        CounterRandom(firing.seed, 1 + stream));
      if (loss.empty()) break;
    }
    if (!loss.empty()) return "only the rejected graph continues with\n" + loss;
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
    if (rejects(*smaller.rule, {spec, smaller.graph, smaller.step}, restrictions) &&
        !fault(spec, steps, restrictions, smaller).empty())
      firing = smaller;
  }
  return firing;
}

class Soundness {
 public:
  explicit Soundness(const Space& space)
      : space_(space), spec_(space.source), steps_(spec_, space.sizes) {}

  /// Grows one random graph and checks every rejection met on the way.
  void grow(std::uint64_t seed, std::map<const Rule*, int>& firings) {
    restrictions_ = seed % 2 == 0 ? RuleSet::restrictions().rules() : Restrictions();
    growth::grow(
        spec_, steps_, restrictions_, seed,
        [&](const Graph& graph, const Ledger& ledger, const Step& step) {
          check(seed, graph, ledger, step, firings);
        },
        kMaxTerms, space_.pattern);
  }

 private:
  void check(std::uint64_t seed, const Graph& graph, const Ledger& ledger, const Step& step,
             std::map<const Rule*, int>& firings) {
    for (const Rule* rule : catalogue()) {
      if (rule->kind != RuleKind::kExact || firings[rule] >= kFirings) continue;
      const RuleContext context{spec_, graph, step, &ledger};
      if (!rejects(*rule, context, restrictions_)) continue;
      Graph rejected = graph;
      rejected.apply(step);
      if (!seen_.insert({rule, structure_hash(rejected)}).second) continue;
      ++firings[rule];
      if (failed_.contains(rule)) continue;
      const Firing firing{rule, graph, step, seed};
      if (fault(spec_, steps_, restrictions_, firing).empty()) continue;
      failed_.insert(rule);
      const Firing smallest = shrunk(spec_, steps_, restrictions_, firing);
      ADD_FAILURE() << rule->id << " " << rule->name << " in space '" << space_.name << "', seed "
                    << seed << (restrictions_.empty() ? ", restrictions off\n" : "\n")
                    << text_of(smallest.graph)
                    << "rejected: " << step_text(smallest.graph, smallest.step) << "kept "
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

// A small space in which little can be done but what a rule is about: random growth seldom meets its pattern elsewhere.
struct PatternSpace {
  const Rule* rule;
  Space space;
};

std::vector<PatternSpace> pattern_spaces() {
  using enum Primitive;
  std::vector<PatternSpace> list;
  SpecificationSource source;
  source.input = "[C, H]";
  source.output = "[C: unordered, H]";
  source.primary = {"C: 5", "H: 5"};
  source.coefficient = {"s=2: 5", "k=2: 5"};
  source.bindings = {Binding({{"C", 2}, {"H", 4}}), Binding({{"C", 3}, {"H", 6}, {"k", 3}})};
  source.limits.max_depth = 8;
  source.limits.element_wise_weights = true;
  source.limits.max_splits = 0;
  source.limits.max_shifts = 0;
  source.limits.max_unfolds = 0;
  source.limits.max_merges = 0;

  SpecificationSource joined = source;
  joined.limits.max_weights = 4;
  list.push_back({&kJoinedPair,
                  {"joined pairs",
                   joined,
                   {"s", "k", "C", "s*k"},
                   3000,
                   {kReduce, kReduce, kContraction, kContraction}}});

  // Merges of quotients, whose remainders weights hold.
  SpecificationSource remainders = source;
  remainders.output = "[H, C]";
  remainders.bindings = {Binding({{"C", 3}, {"H", 8}}), Binding({{"C", 2}, {"H", 12}, {"k", 3}})};
  remainders.limits.max_merges = 3;
  remainders.limits.max_weights = 3;
  remainders.limits.max_reductions = 1;
  list.push_back(
      {&kDroppedRemainders,
       {"remainders", remainders, {"s", "k", "s*k"}, 800, {kMerge, kMerge, kContraction}}});

  // Shifts below and above a Split that a Merge cuts again.
  SpecificationSource rotations = source;
  rotations.limits.max_depth = 7;
  rotations.limits.max_weights = 1;
  rotations.limits.max_reductions = 1;
  rotations.limits.max_splits = 1;
  rotations.limits.max_shifts = 3;
  rotations.limits.max_merges = 1;
  rotations.limits.negative_shifts = true;
  list.push_back({&kRotationOfMajor,
                  {"rotations", rotations, {"s", "k"}, 2000, {kReduce, kShift, kSplit, kShift}}});

  // A part of a Split that weights hold, cut off again after a Shift.
  SpecificationSource held = rotations;
  held.limits.max_weights = 2;
  held.limits.max_shifts = 1;
  held.limits.max_reductions = 2;
  held.output = "[C: unordered, H, s]";
  list.push_back({&kHeldRemainder,
                  {"held parts", held, {"s", "k"}, 4000, {kReduce, kContraction, kSplit, kShift}}});
  return list;
}

// How often each exact rule about steps fired in the space, once for each rejected graph.
std::map<const Rule*, int> firings_in(const Space& space) {
  Soundness soundness(space);
  std::map<const Rule*, int> firings;
  for (std::uint64_t seed = 1; seed <= space.graphs; ++seed) soundness.grow(seed, firings);
  std::cout << space.name << ":";
  for (const Rule* rule : catalogue()) {
    if (firings[rule] > 0) std::cout << " " << rule->id << " " << firings[rule];
  }
  std::cout << "\n";
  return firings;
}

TEST(ExactRules, KeepTheSameOperatorAndEverythingThatCanFollow) {
  std::map<const Rule*, int> total;
  for (const Space& space : spaces()) {
    for (const auto& [rule, count] : firings_in(space)) total[rule] += count;
  }
  const std::vector<PatternSpace> patterns = pattern_spaces();
  for (const Rule* rule : catalogue()) {
    // Rules about complete graphs are proved on whole spaces (space/classes_test.cpp), rare patterns in spaces of theirs.
    const bool rare = std::any_of(patterns.begin(), patterns.end(),
                                  [&](const PatternSpace& space) { return space.rule == rule; });
    if (rule->kind != RuleKind::kExact || rule->rejects_match != nullptr || rare) continue;
    EXPECT_GE(total[rule], 100) << rule->id << " " << rule->name;
  }
}

TEST(ExactRules, AboutRarePatternsDoSoToo) {
  for (const PatternSpace& pattern : pattern_spaces()) {
    std::map<const Rule*, int> firings = firings_in(pattern.space);
    EXPECT_GE(firings[pattern.rule], 100) << pattern.rule->id << " " << pattern.rule->name;
  }
}

}  // namespace
}  // namespace syno
