#include "syno/space/bound.h"

#include <gtest/gtest.h>
#include <set>

#include "syno/space/accept.h"
#include "syno/space/orders_test.h"
#include "syno/space/reference_test.h"
#include "syno/space/small_spaces_test.h"

namespace syno {
namespace {

using namespace samples;

Space list(const Specification& spec, const RuleSet& rules, BoundMode bound,
           std::int64_t first_depth = 1) {
  EnumerateOptions made = options(rules, bound);
  made.keys = false;
  made.first_depth = first_depth;
  return enumerate_space(spec, made);
}

// With rules and without: a rule hides what the bound loses when it rejects the same graphs.
TEST(Bound, NeverLosesAnOperator) {
  for (const SmallSpace& small : small_spaces()) {
    const Specification spec(small.source);
    for (const bool ruled : {false, true}) {
      const RuleSet rules = ruled ? RuleSet() : RuleSet::restrictions();
      // Smaller depth limits are contained in the last one; without a bound they would take most of the time.
      const Space none = list(spec, rules, BoundMode::kNone, 100);
      const Space loose = list(spec, rules, BoundMode::kLoose);
      const Space full = list(spec, rules, BoundMode::kFull);
      ASSERT_TRUE(full.exhausted && loose.exhausted && none.exhausted) << small.name;
      const std::set<Hash128> wanted = structures(spec, none);
      EXPECT_GE(wanted.size(), 9U) << small.name;
      EXPECT_EQ(structures(spec, full), wanted) << small.name;
      EXPECT_EQ(structures(spec, loose), wanted) << small.name;
      EXPECT_LE(full.node_count(), loose.node_count()) << small.name;
      EXPECT_LT(full.node_count(), none.node_count()) << small.name;
    }
  }
}

// Every graph of an enumeration by definition from which an accepted operator can be reached, and every number of steps
// that suffices.
TEST(Bound, AdmitsEveryGraphThatCanBeCompletedAndEveryNumberOfSteps) {
  std::int64_t asked = 0;
  for (const SmallSpace& small : small_spaces()) {
    const Specification spec(small.source);
    const int depth = small.name == "strided" || small.name == "sequence" ? 3 : 4;
    for (const RuleSet& rules : {RuleSet::none(), RuleSet::restrictions()}) {
      const reference::Reference all(spec, rules, depth);
      StateSpace space(spec);
      for (const BoundMode mode : {BoundMode::kLoose, BoundMode::kFull}) {
        CompletionBound bound(space, rules, mode);
        for (const reference::Node& node : all.nodes()) {
          if (node.distance < 0) continue;
          const State state = space.replay(node.graph);
          const int left = depth - node.graph.depth();
          for (int steps = 0; steps <= left; ++steps) {
            if (node.distance_without_reductions >= 0 &&
                node.distance_without_reductions <= steps) {
              ++asked;
              EXPECT_TRUE(bound.may_complete(state, steps))
                  << small.name << ", " << steps << " steps\n"
                  << graph_text(node.graph);
            }
            if (node.distance <= steps && reference::only_reductions(node.graph)) {
              EXPECT_TRUE(bound.may_complete_with_more(state, steps))
                  << small.name << ", " << steps << " steps\n"
                  << graph_text(node.graph);
            }
          }
        }
      }
    }
  }
  EXPECT_GT(asked, 5000);
}

// The search counts on what rules guarantee: what it counts on goes with the rule.
TEST(Bound, CountsOnNoRuleThatIsOff) {
  for (const Rule* rule : catalogue()) {
    if (rule->guarantees == GuaranteeSet()) continue;
    RuleSet rules = RuleSet::restrictions();
    rules.set(rule->id, false);
    for (const char* name : {"linear", "channels", "sequence"}) {
      const SmallSpace small = space_of(small_spaces(), name);
      const Specification spec(small.source);
      const Space none = list(spec, rules, BoundMode::kNone, 100);
      const Space full = list(spec, rules, BoundMode::kFull);
      ASSERT_TRUE(full.exhausted && none.exhausted) << rule->id << ", " << name;
      EXPECT_EQ(structures(spec, full), structures(spec, none)) << rule->id << ", " << name;
    }
  }
}

// One contraction drops more coordinates than the bound tries subsets of.
TEST(Bound, AdmitsContractionsOfMoreThanTwentyCoordinates) {
  SpecificationSource source;
  source.input = "[H]";
  source.output = "[H";
  for (int d = 0; d < 22; ++d) source.output += ", C: unordered";
  source.output += "]";
  source.primary = {"C: 30", "H: 1"};
  source.bindings = {Binding::parse("C=2, H=5")};
  source.limits.max_depth = 1;
  source.limits.max_weights = 1;
  source.limits.max_reductions = 0;
  source.limits.max_merges = 0;
  source.limits.max_dropped = std::int64_t{1} << 22;
  const Specification spec(source);
  StateSpace space(spec);
  for (const BoundMode mode : {BoundMode::kLoose, BoundMode::kFull}) {
    CompletionBound bound(space, RuleSet(), mode);
    EXPECT_TRUE(bound.may_complete(space.root(), 1));
    EXPECT_FALSE(bound.may_complete(space.root(), 0)) << "it has no weight yet";
  }
  // The operator is one: it drops all channels.
  Graph graph(spec.variables(), spec.output());
  WeightDims dims;
  for (CoordinateId d = 1; d <= 22; ++d) dims.push_back({d, WeightRole::kDrop});
  graph.apply(Step::contract(dims));
  replay(spec, graph);
  EXPECT_TRUE(rejections(Operator(graph, spec.input(), {0}), spec, RuleSet()).empty());
}

// Every prefix of an operator, in every order of its steps that children allow.
class Prefixes {
 public:
  Prefixes(const Specification& spec, const RuleSet& rules)
      : spec_(spec), rules_(rules), space_(spec), bound_(space_, rules, BoundMode::kFull) {}

  void check(const Operator& op, const std::string& name) {
    const Orders orders(op.in_table(spec_.variables()).graph());
    std::set<std::uint64_t> done;
    visit(orders, orders.start(), space_.root(), start_ledger(spec_), done, name);
    EXPECT_TRUE(done.contains((std::uint64_t{1} << orders.goal().depth()) - 1))
        << name << ": no order is allowed\n"
        << op.text();
  }
  std::int64_t count() const { return count_; }

 private:
  void visit(const Orders& orders, const Orders::Partial& partial, const State& state,
             const Ledger& ledger, std::set<std::uint64_t>& done, const std::string& name) {
    if (!done.insert(partial.taken).second) return;
    ++count_;
    const int left = orders.goal().depth() - partial.graph.depth();
    const std::vector<std::size_t> ready = orders.ready(partial);
    const bool reduces =
        !ready.empty() && orders.goal().steps()[ready.front()].primitive == Primitive::kReduce;
    EXPECT_TRUE(reduces ? bound_.may_complete_with_more(state, left)
                        : bound_.may_complete(state, left))
        << name << ", " << left << " steps\n"
        << graph_text(partial.graph) << graph_text(orders.goal());
    for (const std::size_t s : ready) {
      const Step step = orders.step(partial, s);
      Ledger after = ledger;
      if (!admit(spec_, partial.graph, step, after).empty()) continue;
      if (rules_.rejecting_rule({spec_, partial.graph, step}) != nullptr) continue;
      State child = state;
      ASSERT_EQ(space_.advance(child, space_.move(state, step)), "")
          << name << "\n"
          << graph_text(partial.graph) << graph_text(orders.goal());
      visit(orders, orders.take(partial, s), child, after, done, name);
    }
  }

  const Specification& spec_;
  const RuleSet& rules_;
  StateSpace space_;
  CompletionBound bound_;
  std::int64_t count_ = 0;
};

TEST(Bound, AdmitsEveryPrefixOfEveryListedOperatorInEveryOrder) {
  for (const SmallSpace& small : small_and_deep_spaces()) {
    const Specification spec(small.source);
    const RuleSet rules;
    Prefixes prefixes(spec, rules);
    for_some_operators(spec, 60, [&](const Operator& op) { prefixes.check(op, small.name); });
    EXPECT_GT(prefixes.count(), 20) << small.name;
  }
}

}  // namespace
}  // namespace syno
