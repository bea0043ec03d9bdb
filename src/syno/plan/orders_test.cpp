// The k cheapest plans: each computes the operator, no two are the same, none that is cheaper is missing.
#include "syno/plan/orders.h"

#include <gtest/gtest.h>
#include <map>
#include <set>

#include "syno/interp/interpreter.h"
#include "syno/interp/random_graph.h"
#include "syno/interp/zoo_texts_test.h"
#include "syno/plan/plan.h"
#include "syno/plan/run_stages_test.h"
#include "syno/support/error.h"

namespace syno {
namespace {

Values values_of(const Operator& op, std::string_view binding) {
  return Binding::parse(binding).resolve(*op.variables());
}

std::vector<Plan> plans_of(std::string_view text, std::string_view binding, PlanOptions options) {
  const Operator op = Operator::parse(text);
  return plans(op, values_of(op, binding), options);
}

// The text without the totals.
std::string stages_of(const Plan& plan) {
  const std::string text = plan.text();
  return text.substr(0, text.find("total "));
}

int count(const Plan& plan, StageKind kind) {
  return static_cast<int>(std::count_if(plan.stages.begin(), plan.stages.end(),
                                        [&](const Stage& stage) { return stage.kind == kind; }));
}

// Data and weights of small integers, and what the interpreter makes of them.
struct Example {
  explicit Example(const RandomOperator& random, std::uint64_t seed) {
    const OperatorShapes shapes = operator_shapes(random.op, random.values);
    x = random_integers(shapes.input, seed);
    for (std::size_t w = 0; w < shapes.weights.size(); ++w)
      weights.push_back(random_integers(shapes.weights[w], 1000 * (w + 1) + seed));
    y = interpret(random.op, random.values, x, weights);
  }
  Tensor<std::int64_t> x;
  std::vector<Tensor<std::int64_t>> weights;
  Tensor<std::int64_t> y;
};

TEST(Plans, EachComputesTheOperator) {
  RandomOptions options;
  options.max_terms = 1500;
  options.max_elements = 1500;
  int several = 0;
  int folded = 0;
  int sheared = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const RandomOperator random = random_operator(seed, options);
    const Example example(random, seed);
    for (const bool fold : {false, true}) {
      const auto found = plans(random.op, random.values, {.limit = 8, .fold_weights = fold});
      several += found.size() > 1;
      for (const Plan& plan : found) {
        ASSERT_EQ(StageRunner(plan, example.x, example.weights).output(), example.y.data)
            << "seed " << seed << "\n"
            << random.op.text() << plan.text();
        folded += !plan.fold_stages.empty();
        sheared += count(plan, StageKind::kShear);
      }
    }
  }
  EXPECT_GT(several, 300);
  EXPECT_GT(folded, 200);
  EXPECT_GT(sheared, 20);
}

TEST(Plans, TheFirstIsTheUsualOneAndNoTwoAreTheSame) {
  RandomOptions options;
  options.max_terms = 2000;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const RandomOperator random = random_operator(seed, options);
    const auto found = plans(random.op, random.values, {.limit = 12});
    ASSERT_FALSE(found.empty());
    EXPECT_EQ(found.front().text(), plan(random.op, random.values).text());
    std::set<std::string> different;
    for (const Plan& plan : found) {
      EXPECT_TRUE(different.insert(stages_of(plan)).second) << "seed " << seed << plan.text();
      EXPECT_GE(plan.cost.macs, found.front().cost.macs);
      EXPECT_TRUE(plan.fold_stages.empty());
      EXPECT_EQ(plan.fan_in, found.front().fan_in);
    }
    EXPECT_TRUE(std::is_sorted(found.begin(), found.end(), [](const Plan& a, const Plan& b) {
      return a.cost.macs < b.cost.macs;
    }));
    // A smaller limit gives the first of them.
    const auto few = plans(random.op, random.values, {.limit = 3});
    for (std::size_t i = 0; i < few.size(); ++i) EXPECT_EQ(few[i].text(), found[i].text());
  }
}

// Follows every sequence of moves, and keeps the least cost of each computation.
class AllOrders {
 public:
  AllOrders(const Network& network, bool fold) : network_(network), fold_(fold) {
    visit(network.nothing_to_do(), network.input_dims(), {});
  }
  std::vector<Cost> costs() const {
    std::vector<Cost> all;
    for (const auto& [computed, cost] : best_) all.push_back(cost);
    std::sort(all.begin(), all.end());
    return all;
  }
  bool complete() const { return visited_ < kMost; }

 private:
  static constexpr int kMost = 20'000;

  void visit(StepSet done, const CoordinateSet& data, const Order& order) {
    if (++visited_ >= kMost) return;
    if (done == network_.all_steps()) {
      const auto [place, is_new] = best_.try_emplace(computation(network_, order), order.cost);
      if (!is_new) place->second = std::min(place->second, order.cost);
      return;
    }
    for (const PricedMove& priced : choices_from(network_, done, data, fold_)) {
      Order next = order;
      next.moves.push_back(priced.move);
      next.cost = next.cost + priced.cost;
      visit(done | executed_by(priced.move), priced.data, next);
    }
  }

  const Network& network_;
  bool fold_;
  int visited_ = 0;
  std::map<std::uint64_t, Cost> best_;
};

TEST(Plans, NoneThatIsCheaperIsMissing) {
  RandomOptions options;
  options.max_steps = 8;
  int compared = 0;
  std::size_t computations = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const RandomOperator random = random_operator(seed, options);
    const Network network(random.op, random.values);
    for (const bool fold : {false, true}) {
      const AllOrders all(network, fold);
      if (!all.complete()) continue;
      ++compared;
      std::vector<Cost> wanted = all.costs();
      computations += wanted.size();
      if (wanted.size() > 20) wanted.resize(20);
      std::vector<Cost> found;
      OrdersWork work;
      for (const Order& order : cheapest_orders(network, {.limit = 20, .fold_weights = fold}, work))
        found.push_back(order.cost);
      ASSERT_EQ(found, wanted) << "seed " << seed << "\n" << random.op.text();
      if (!fold) {
        EXPECT_EQ(found.front().macs, cheapest_order(network).cost.macs);
      }
    }
  }
  EXPECT_GT(compared, 400);
  EXPECT_GT(computations, 2000U);
}

TEST(Plans, OfAConvolutionTakeTheWindowsInsideOrBefore) {
  const auto found = plans_of(kConv2d.text, kConv2d.binding, {.limit = 3});
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(count(found[0], StageKind::kConvolution), 1);
  EXPECT_EQ(count(found[1], StageKind::kConvolution), 0);
  EXPECT_EQ(count(found[1], StageKind::kWindow), 2);
  EXPECT_EQ(found[0].cost.macs, found[1].cost.macs);
  EXPECT_LT(found[0].bytes_moved, found[1].bytes_moved);
  EXPECT_LT(found[0].peak_bytes, found[1].peak_bytes);
  // A window behind its contraction has to be summed apart.
  EXPECT_GT(found[2].cost.macs, found[0].cost.macs);
}

TEST(Plans, OfOperator1MoveTheWindowToEitherSideOfTheFirstContraction) {
  const auto found =
      plans_of(kOperator1.text, "N=1, C_in=64, C_out=64, H=56, g=32, s=2, k=3", {.limit = 6});
  ASSERT_EQ(found.size(), 6U);
  EXPECT_EQ(count(found[0], StageKind::kShear), 1);
  EXPECT_TRUE(std::any_of(found.begin(), found.end(), [](const Plan& plan) {
    return count(plan, StageKind::kShear) == 0 && count(plan, StageKind::kWindow) > 0;
  }));
}

TEST(Plans, OneTakesEveryViewBeforeItMultiplies) {
  for (const ZooText& zoo : {kConv2d, kOperator1, kOperator2}) {
    const Operator op = Operator::parse(zoo.text);
    const auto values = Binding::parse("N=1, C_in=64, C_out=64, H=14, W=14, k=3, g=32, s=2")
                            .resolve(*op.variables());
    int windows = 0;
    int contracted = 0;
    int first = 0;
    for (const Plan& plan : plans(op, values, {.limit = 1000})) {
      if (!plan.views_first()) continue;
      ++first;
      contracted = 0;
      windows = 0;
      for (const Stage& stage : plan.stages) {
        EXPECT_NE(stage.kind, StageKind::kConvolution);
        EXPECT_NE(stage.kind, StageKind::kShear) << plan.text();
        contracted += stage.kind == StageKind::kContraction;
        if (stage.kind != StageKind::kWindow && stage.kind != StageKind::kRoll) continue;
        ++windows;
        EXPECT_EQ(contracted, 0) << plan.text();
      }
      EXPECT_GT(windows, 1) << plan.text();
    }
    EXPECT_GT(first, 0) << zoo.text;
    EXPECT_FALSE(plan(op, values).views_first());
  }
}

TEST(Plans, WithAndWithoutEarlyReduction) {
  const auto found = plans_of(
      "syno operator 1\nout [s^-1*H]\nin [H]\nreduce k -> r0\nreduce s -> r1\nunfold o0 r0 -> c0\n"
      "split c0 r1 -> c1\nmatch c1\n",
      "H=60, s=4, k=3", {.limit = 5});
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].cost.macs, 60 + 3 * 15);
  EXPECT_EQ(found[1].cost.macs, 3 * 60);
}

TEST(Plans, ALimitOfNoneIsRefused) {
  try {
    plans_of(kConv2d.text, kConv2d.binding, {.limit = 0});
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(),
                 "cannot enumerate 0 plans\n"
                 "  expected: a limit of 1 to 1000      got: 0");
  }
}

constexpr std::string_view kLowRank = R"(syno operator 1
out [N, D]
in [N, C]
reduce C -> r0
reduce R -> r1
contract o1:drop r1:keep
contract r1:join r0:keep
match o0 r0
)";

TEST(Folding, OfALowRankLayerPaysWhereTheRankIsHigh) {
  const PlanOptions folding{.limit = 1, .fold_weights = true};
  const Plan low = plans_of(kLowRank, "N=5, C=64, D=64, R=2", folding).front();
  EXPECT_TRUE(low.fold_stages.empty());
  EXPECT_EQ(low.cost.macs, 5 * 2 * 64 * 2);
  const Plan high = plans_of(kLowRank, "N=5, C=64, D=64, R=60", folding).front();
  EXPECT_EQ(high.cost.macs, 5 * 64 * 64);
  EXPECT_EQ(high.fold_macs, 64 * 64 * 60);
  EXPECT_EQ(high.params, 2 * 64 * 60);
  // x, the folded weight and y.
  EXPECT_EQ(high.peak_bytes, 4 * (5 * 64 + 64 * 64 + 5 * 64));
  EXPECT_EQ(high.text(),
            "x [n, c=64]\n"
            "w0 [d=64, r=60]\n"
            "w1 [r=60, c=64]\n"
            "once, on weights alone:\n"
            "t0 [d=64, c=64] = contract w0, w1, sum over r    245,760 MACs\n"
            "for each x:\n"
            "t1 [n, d=64] = contract x, t0, sum over c    20,480 MACs\n"
            "total 20,480 MACs, 7,680 parameters, 320 elements written\n"
            "      18,944 bytes moved, peak memory 18,944 bytes\n");
  // Training keeps the weights apart, and so does everything that does not ask.
  EXPECT_EQ(plans_of(kLowRank, "N=5, C=64, D=64, R=60", {}).front().cost.macs, 5 * 2 * 60 * 64);
}

TEST(Folding, AnOperatorDearerThanAConvolutionBecomesOne) {
  // Operator 1 where channels double costs 1.005 times the dense convolution.
  const Plan plan = plans_of(kOperator1.text, "N=1, C_in=64, C_out=128, H=28, g=32, s=2, k=3",
                             {.limit = 1, .fold_weights = true})
                        .front();
  EXPECT_EQ(plan.cost.macs, 28LL * 28 * 64 * 128 * 9);
  EXPECT_EQ(count(plan, StageKind::kConvolution), 1);
  EXPECT_EQ(count(plan, StageKind::kContraction), 0);
  EXPECT_GT(plan.fold_stages.size(), 0U);
}

TEST(Folding, NeverCostsMoreAndIsNeverTheDefault) {
  RandomOptions options;
  options.min_weights = 2;
  options.max_steps = 10;
  int cheaper = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const RandomOperator random = random_operator(seed, options);
    const Plan usual = plan(random.op, random.values);
    const Plan folding =
        plans(random.op, random.values, {.limit = 1, .fold_weights = true}).front();
    EXPECT_LE(folding.cost.macs, usual.cost.macs) << "seed " << seed;
    EXPECT_EQ(folding.params, usual.params);
    EXPECT_EQ(folding.fan_in, usual.fan_in);
    EXPECT_TRUE(usual.fold_stages.empty());
    EXPECT_EQ(usual.fold_macs, 0);
    if (folding.cost.macs == usual.cost.macs) {
      EXPECT_EQ(folding.text(), usual.text());
    } else {
      ++cheaper;
      EXPECT_FALSE(folding.fold_stages.empty());
    }
    std::int64_t macs = 0;
    for (const Stage& stage : folding.stages) macs += stage.cost.macs;
    EXPECT_EQ(macs, folding.cost.macs);
  }
  EXPECT_GT(cheaper, 30);
}

std::string equal_weights(int count) {
  std::string text = "syno operator 1\nout [C]\nin [C]\n";
  for (int i = 0; i < count; ++i) text += "contract o0:keep\n";
  return text + "match o0\n";
}

TEST(Plans, OfFourEqualWeightsEveryOrderIsListedAndOfFiveOne) {
  const PlanOptions all{.limit = 100};
  EXPECT_EQ(plans_of(equal_weights(4), "C=8", all).size(), 24U);
  EXPECT_EQ(plans_of(equal_weights(5), "C=8", all).size(), 1U);
  const std::vector<Plan> forty = plans_of(equal_weights(40), "C=8", all);
  ASSERT_EQ(forty.size(), 1U);
  EXPECT_EQ(forty[0].cost.macs, 40 * 8);
  EXPECT_TRUE(forty[0].exact);
}

TEST(Plans, FortyEqualWeightsFold) {
  const std::vector<Plan> found =
      plans_of(equal_weights(40), "C=8", {.limit = 10, .fold_weights = true});
  ASSERT_FALSE(found.empty());
  // Six of them are multiplied with each other at most.
  EXPECT_EQ(found[0].cost.macs, 7 * 8);
  EXPECT_TRUE(found[0].exact);
}

}  // namespace
}  // namespace syno
