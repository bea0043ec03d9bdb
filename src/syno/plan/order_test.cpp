// The dynamic program against every order there is, on small operators.
#include "syno/plan/order.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <limits>
#include <set>
#include <stdexcept>

#include "syno/interp/random_graph.h"
#include "syno/interp/zoo_texts_test.h"
#include "syno/plan/plan.h"
#include "syno/support/error.h"
#include "syno/support/interrupt.h"

namespace syno {
namespace {

using Set = std::set<CoordinateId>;

// Tries every order by depth-first search, with more freedom than the planner has: any part of the reductions that are
// ready may be summed or left, and two weights may be multiplied in at once. Its tensors are plain sets of
// coordinates and share nothing with Network.
class BruteForceOrder {
 public:
  BruteForceOrder(const Operator& op, const Values& values) : graph_(op.graph()), values_(values) {
    State state;
    state.data = Set(op.match().begin(), op.match().end());
    for (const Weight& weight : graph_.weights())
      state.weights.emplace_back(weight.dims.begin(), weight.dims.end());
    state.done.assign(graph_.steps().size(), false);
    for (std::size_t s = 0; s < graph_.steps().size(); ++s)
      state.done[s] = graph_.steps()[s].primitive == Primitive::kExpand;
    state.multiplied.assign(graph_.weights().size(), false);
    visit(state, 0);
  }
  std::int64_t best() const { return best_; }
  std::int64_t visited() const { return visited_; }

 private:
  struct State {
    Set data;
    std::vector<Set> weights;
    std::vector<bool> done;
    std::vector<bool> multiplied;
  };

  std::int64_t product(const Set& dims) const {
    std::int64_t result = 1;
    for (const CoordinateId id : dims) result *= *graph_.extent(id).evaluate(values_);
    return result;
  }

  // The view that reads a coordinate from below and has not been undone yet.
  const Step* waiting_view(const State& state, CoordinateId id) const {
    for (std::size_t s = 0; s < graph_.steps().size(); ++s) {
      const Step& step = graph_.steps()[s];
      if (state.done[s] || step.primitive == Primitive::kReduce ||
          step.primitive == Primitive::kContraction) {
        continue;
      }
      if (step.in[0] == id || step.in[1] == id) return &step;
    }
    return nullptr;
  }

  void undo(Set& tensor, const Step& view, bool force) const {
    bool has = force;
    for (const CoordinateId id : view.out) has = tensor.erase(id) > 0 || has;
    if (!has) return;
    for (const CoordinateId id : view.in) {
      if (id != kNoCoordinate) tensor.insert(id);
    }
  }

  std::vector<std::size_t> ready_sums(const State& state) const {
    std::vector<std::size_t> ready;
    for (std::size_t s = 0; s < graph_.steps().size(); ++s) {
      const Step& step = graph_.steps()[s];
      if (step.primitive != Primitive::kReduce || state.done[s]) continue;
      bool free = waiting_view(state, step.out[0]) == nullptr;
      for (std::size_t w = 0; w < state.weights.size(); ++w)
        free = free && (state.multiplied[w] || !state.weights[w].contains(step.out[0]));
      if (free) ready.push_back(s);
    }
    return ready;
  }

  // Every way to sum some of the reductions that are ready; `sum` gets the state after it.
  template <class Visit>
  void with_sums(const State& state, bool of_data, Visit visit_subset) const {
    std::vector<std::size_t> ready;
    for (const std::size_t s : ready_sums(state)) {
      if (state.data.contains(graph_.steps()[s].out[0]) == of_data) ready.push_back(s);
    }
    for (std::size_t subset = 0; subset < (std::size_t{1} << ready.size()); ++subset) {
      State next = state;
      for (std::size_t i = 0; i < ready.size(); ++i) {
        if ((subset >> i & 1) == 0) continue;
        next.data.erase(graph_.steps()[ready[i]].out[0]);
        next.done[ready[i]] = true;
      }
      visit_subset(next, subset != 0);
    }
  }

  void visit(const State& state, std::int64_t cost) {
    ++visited_;
    if (cost >= best_) return;
    if (std::all_of(state.done.begin(), state.done.end(), [](bool done) { return done; })) {
      best_ = cost;
      return;
    }
    for (std::size_t s = 0; s < graph_.steps().size(); ++s) {
      const Step& step = graph_.steps()[s];
      if (state.done[s] || step.primitive == Primitive::kReduce) continue;
      if (step.primitive == Primitive::kContraction) {
        multiply(state, cost, {s});
        for (std::size_t other = s + 1; other < graph_.steps().size(); ++other) {
          if (!state.done[other] && graph_.steps()[other].primitive == Primitive::kContraction)
            multiply(state, cost, {s, other});
        }
        continue;
      }
      bool ready = true;
      for (const CoordinateId id : step.out)
        ready = ready && (id == kNoCoordinate || waiting_view(state, id) == nullptr);
      if (!ready) continue;
      State next = state;
      next.done[s] = true;
      bool anywhere = state.data.contains(step.out[0]);
      for (std::size_t w = 0; w < state.weights.size(); ++w) {
        anywhere = anywhere || (!state.multiplied[w] && state.weights[w].contains(step.out[0]));
        undo(next.weights[w], step, false);
      }
      undo(next.data, step, step.primitive == Primitive::kUnfold && !anywhere);
      visit(next, cost);
    }
    with_sums(state, true, [&](const State& next, bool any) {
      if (any) visit(next, cost + product(state.data));
    });
    with_sums(state, false, [&](const State& next, bool any) {
      if (any) visit(next, cost + product(state.data));
    });
  }

  void multiply(const State& state, std::int64_t cost, const std::vector<std::size_t>& steps) {
    State all = state;
    for (const std::size_t s : steps) {
      std::size_t w = 0;
      while (graph_.weights()[w].step != static_cast<std::int16_t>(s)) ++w;
      for (const CoordinateId id : state.weights[w]) {
        const Step* view = waiting_view(state, id);
        const bool window =
            view != nullptr && view->primitive == Primitive::kUnfold && view->in[1] == id;
        if (view != nullptr && !window) return;
        all.data.insert(id);
      }
      all.done[s] = true;
      all.multiplied[w] = true;
    }
    const std::int64_t macs = product(all.data) * static_cast<std::int64_t>(steps.size());
    with_sums(all, true, [&](const State& next, bool) { visit(next, cost + macs); });
  }

  const Graph& graph_;
  const Values& values_;
  std::int64_t best_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t visited_ = 0;
};

TEST(Order, CostsWhatTheBestOfAllOrdersCosts) {
  RandomOptions options;
  options.max_steps = 8;
  options.max_terms = 3000;
  int reordered = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const RandomOperator random = random_operator(seed, options);
    const std::int64_t planned = macs(random.op, random.values);
    const BruteForceOrder brute(random.op, random.values);
    ASSERT_EQ(planned, brute.best()) << "seed " << seed << "\n"
                                     << random.op.text() << random.binding.text();
    reordered += brute.visited() > 100;
  }
  EXPECT_GT(reordered, 200) << "most operators have one order only";
}

TEST(Order, NeverCostsMoreThanOneLoopNest) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const RandomOperator random = random_operator(seed);
    const Graph& graph = random.op.graph();
    std::int64_t terms = 1;
    bool all_reach_a_tensor = true;
    for (std::size_t i = 0; i < graph.coordinates().size(); ++i) {
      const auto id = static_cast<CoordinateId>(i);
      if (graph.is_iterator(id) || graph.is_reduction(id))
        terms *= *graph.extent(id).evaluate(random.values);
    }
    const Plan chosen = plan(random.op, random.values);
    for (const Stage& stage : chosen.stages)
      all_reach_a_tensor = all_reach_a_tensor && stage.kind != StageKind::kScale;
    // A sum of equal terms is a product with a number, which a loop nest does not need.
    if (!all_reach_a_tensor) continue;
    const auto inputs = static_cast<std::int64_t>(std::max<std::size_t>(graph.weights().size(), 1));
    EXPECT_LE(chosen.cost.macs, terms * inputs) << "seed " << seed << "\n" << random.op.text();
    EXPECT_TRUE(chosen.exact);
  }
}

TEST(Order, IsTheSameOnEveryRun) {
  for (const ZooText& zoo : kZooTexts) {
    const Operator op = Operator::parse(zoo.text);
    const Values values = Binding::parse(zoo.binding).resolve(*op.variables());
    EXPECT_EQ(plan(op, values).text(), plan(op, values).text());
  }
}

TEST(Order, ManyIndependentStepsAreStillPlanned) {
  // 24 independent cyclic shifts have 2^24 sets of executed steps: more than are followed, and all cost the same.
  std::string text = "syno operator 1\nout [H, H]\nin [H, H]\n";
  for (int i = 0; i < 12; ++i) {
    const std::string from = i == 0 ? "o0" : "c" + std::to_string(2 * i - 2);
    const std::string other = i == 0 ? "o1" : "c" + std::to_string(2 * i - 1);
    text += "shift " + from + " 1 -> c" + std::to_string(2 * i) + "\n";
    text += "shift " + other + " 1 -> c" + std::to_string(2 * i + 1) + "\n";
  }
  text += "match c22 c23\n";
  const Operator op = Operator::parse(text);
  const Plan chosen = plan(op, {5});
  EXPECT_EQ(chosen.cost.macs, 0);
  EXPECT_EQ(chosen.stages.size(), 24U);
}

// `count` weights on all of D0, ..., D5, or each on other ones of them.
Operator scales(int count, bool equal) {
  std::string text = "syno operator 1\nout [D0, D1, D2, D3, D4, D5]\nin [D0, D1, D2, D3, D4, D5]\n";
  for (int i = 0; i < count; ++i) {
    text += "contract";
    for (int d = 0; d < 6; ++d) {
      if (equal || ((i % 63 + 1) >> d & 1) != 0) text += " o" + std::to_string(d) + ":keep";
    }
    text += "\n";
  }
  return Operator::parse(text + "match o0 o1 o2 o3 o4 o5\n");
}

TEST(Order, FortyEqualWeightsArePlannedExactly) {
  const Operator op = scales(40, true);
  const Plan chosen = plan(op, {2, 3, 2, 3, 2, 3});
  EXPECT_TRUE(chosen.exact);
  EXPECT_EQ(chosen.cost.macs, 40 * 216);
  // In the order of their steps.
  int next = 0;
  for (const Stage& stage : chosen.stages) EXPECT_EQ(chosen.tensor(stage.weight).weight, next++);
  EXPECT_EQ(next, 40);
}

TEST(Order, EqualWeightsAmongOthersCostWhatTheBestOfAllOrdersCosts) {
  // Two equal weights, of which one is best multiplied before the sum that the other waits for.
  const Operator op = Operator::parse(
      "syno operator 1\nout [C, H]\nin [C, K, H]\nreduce K -> r0\ncontract r0:keep o1:keep\n"
      "contract r0:keep o1:keep\ncontract o0:keep\ncontract o0:keep\ncontract o1:keep\n"
      "match o0 r0 o1\n");
  for (const Values& values : {Values{2, 3, 5}, Values{7, 2, 2}, Values{3, 5, 7}}) {
    const Plan chosen = plan(op, values);
    EXPECT_EQ(chosen.cost.macs, BruteForceOrder(op, values).best());
    EXPECT_TRUE(chosen.exact);
  }
}

TEST(Order, FortyDifferentWeightsArePlannedWithinABudget) {
  const Operator op = scales(40, false);
  const Values values{2, 2, 2, 2, 2, 2};
  const Plan chosen = plan(op, values);
  EXPECT_FALSE(chosen.exact);
  EXPECT_EQ(chosen.cost.macs, 40 * 64);
  EXPECT_EQ(chosen.stages.size(), 40U);
}

TEST(Order, AnInterruptEndsPlanning) {
  const Operator op = scales(60, false);
  const InterruptScope scope([] { throw std::runtime_error("interrupted"); });
  EXPECT_THROW(plan(op, {8, 8, 8, 8, 8, 8}), std::runtime_error);
  EXPECT_THROW(plans(op, {8, 8, 8, 8, 8, 8}, {.limit = 20, .fold_weights = true}),
               std::runtime_error);
}

}  // namespace
}  // namespace syno
