#include "syno/space/macs_bound.h"

#include <gtest/gtest.h>
#include <limits>
#include <set>

#include "syno/plan/plan.h"
#include "syno/space/orders_test.h"
#include "syno/space/random_specification_test.h"
#include "syno/space/reference_test.h"
#include "syno/space/small_spaces_test.h"

namespace syno {
namespace {

using namespace samples;

constexpr double kNone = std::numeric_limits<double>::infinity();
// The bound is rounded, and asked with such a margin.
constexpr double kMargin = 1 + 1e-9;

struct Compared {
  std::int64_t asked = 0;
  std::int64_t positive = 0;
  std::int64_t exact = 0;
};

// Every graph of an enumeration by definition, and all operators that follow from it within any number of steps, good or not.
void compare(const Specification& spec, const RuleSet& rules, int depth, Compared& compared) {
  const reference::Reference all(spec, rules, depth);
  const auto& nodes = all.nodes();
  const std::size_t bindings = spec.bindings().size();
  // By node, steps and binding (the last one is the sum over layers): the least MACs.
  const auto place = [&](std::size_t node, int steps, std::size_t b) {
    return (node * static_cast<std::size_t>(depth + 1) + static_cast<std::size_t>(steps)) *
               (bindings + 1) +
           b;
  };
  std::vector<double> least(place(nodes.size(), 0, 0), kNone);
  for (std::size_t n = nodes.size(); n-- > 0;) {
    for (const auto& match : matchings(nodes[n].graph, spec.input(), spec.passed_through())) {
      const Operator op = Operator(nodes[n].graph, spec.input(), match).in_table(spec.variables());
      double sum = 0;
      for (std::size_t b = 0; b < bindings; ++b) {
        FitMask fit = spec.full_fit();
        for (const Coordinate& c : op.graph().coordinates()) fit &= spec.fit(c.extent);
        if (!(fit >> b & 1)) continue;
        const auto cost = static_cast<double>(macs(op, spec.bindings()[b]));
        sum += cost * static_cast<double>(spec.multiplicities()[b]);
        double& known = least[place(n, 0, b)];
        known = std::min(known, cost);
      }
      least[place(n, 0, bindings)] = std::min(least[place(n, 0, bindings)], sum);
    }
    for (int steps = 1; steps <= depth; ++steps) {
      for (std::size_t b = 0; b <= bindings; ++b) {
        double& best = least[place(n, steps, b)];
        best = least[place(n, steps - 1, b)];
        for (const std::size_t child : nodes[n].children)
          best = std::min(best, least[place(child, steps - 1, b)]);
      }
    }
  }
  StateSpace space(spec);
  MacsBound bound(spec, space.sizes());
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    State state = space.root();
    try {
      state = space.replay(nodes[n].graph);
    } catch (const UserError&) {
      continue;  // Pooled too much: no search comes here.
    }
    bound.begin(nodes[n].graph);
    for (int steps = 0; steps <= depth - nodes[n].graph.depth(); ++steps) {
      for (std::size_t b = 0; b <= bindings; ++b) {
        const double best = least[place(n, steps, b)];
        if (best == kNone) continue;
        const double found =
            b == bindings ? bound.least_macs(state, steps) : bound.least_macs(state, steps, b);
        ++compared.asked;
        compared.positive += found > 0;
        compared.exact += found > 0 && found * kMargin >= best;
        ASSERT_LE(found, best * kMargin) << steps << " steps, binding " << b << "\n"
                                         << graph_text(nodes[n].graph);
      }
    }
  }
}

TEST(MacsBound, NeverExceedsTheMacsOfAnyOperatorThatFollows) {
  Compared compared;
  for (const SmallSpace& small : small_spaces()) {
    const int depth = small.name == "strided" || small.name == "sequence" ? 3 : 4;
    const Specification spec(small.source);
    for (const RuleSet& rules : {RuleSet::none(), RuleSet::restrictions()}) {
      compare(spec, rules, depth, compared);
      if (HasFatalFailure()) FAIL() << small.name;
    }
  }
  EXPECT_GT(compared.positive, 5000);
  EXPECT_GT(compared.exact, compared.positive / 3) << compared.exact << " " << compared.positive;
}

TEST(MacsBound, NeverExceedsTheMacsOfAnyOperatorOfRandomSpecifications) {
  Compared compared;
  int specifications = 0;
  for (std::uint64_t seed = 0; seed < 250; ++seed) {
    auto source = RandomSpecification(seed).source();
    if (!source) continue;
    ++specifications;
    const Specification spec(*source);
    compare(spec, RuleSet::none(), 3, compared);
    if (HasFatalFailure()) FAIL() << "seed " << seed << "\n" << describe(*source);
  }
  EXPECT_GT(specifications, 100);
  EXPECT_GT(compared.positive, 10'000);
}

// With upper limits that refuse a part of the operators.
TEST(MacsBound, NeverLosesAnOperator) {
  std::int64_t saved = 0;
  for (const SmallSpace& small : small_spaces()) {
    const Specification free(small.source);
    for (const bool ruled : {false, true}) {
      EnumerateOptions made =
          options(ruled ? RuleSet() : RuleSet::restrictions(), BoundMode::kFull, 4);
      made.keys = false;
      made.first_depth = 4;
      std::vector<std::int64_t> costs;
      const Space all = enumerate_space(free, made);
      for (std::size_t i = 0; i < all.operators.size(); ++i)
        costs.push_back(total_macs(all.op(free, i), free));
      std::sort(costs.begin(), costs.end());
      if (costs.empty()) continue;
      for (const std::size_t quarter : {1U, 2U, 3U}) {
        SpecificationSource source = small.source;
        source.limits.max_macs = costs[costs.size() * quarter / 4];
        const Specification spec(source);
        made.macs_bound = true;
        const Space with = enumerate_space(spec, made);
        made.macs_bound = false;
        const Space without = enumerate_space(spec, made);
        ASSERT_TRUE(with.exhausted && without.exhausted) << small.name;
        EXPECT_EQ(structures(spec, with), structures(spec, without)) << small.name;
        EXPECT_LE(with.node_count(), without.node_count());
        saved += static_cast<std::int64_t>(without.node_count() - with.node_count());
        EXPECT_FALSE(without.rejections.contains("macs_bound"));
      }
    }
  }
  EXPECT_GT(saved, 500);
}

TEST(MacsBound, IsOffWhereCostsDoNotCount) {
  const Specification spec([] {
    SpecificationSource source = space_of(small_spaces(), "conv1d").source;
    source.limits.max_macs = 1;
    return source;
  }());
  EnumerateOptions made = options(RuleSet(), BoundMode::kFull);
  EXPECT_TRUE(enumerate_space(spec, made).operators.empty());
  made.quality = false;
  EXPECT_FALSE(enumerate_space(spec, made).operators.empty());
}

// Every prefix of an operator in every order of its steps.
class MacsPrefixes {
 public:
  explicit MacsPrefixes(const Specification& spec)
      : spec_(spec), space_(spec), bound_(spec, space_.sizes()) {}

  void check(const Operator& op) {
    const Operator local = op.in_table(spec_.variables());
    macs_ = static_cast<double>(total_macs(local, spec_));
    const Orders orders(local.graph());
    std::set<std::uint64_t> done;
    visit(orders, orders.start(), space_.root(), done);
  }
  std::int64_t count() const { return count_; }
  double tightest() const { return tightest_; }

 private:
  void visit(const Orders& orders, const Orders::Partial& partial, const State& state,
             std::set<std::uint64_t>& done) {
    if (!done.insert(partial.taken).second) return;
    ++count_;
    bound_.begin(partial.graph);
    const double found = bound_.least_macs(state, orders.goal().depth() - partial.graph.depth());
    tightest_ = std::max(tightest_, found / macs_);
    ASSERT_LE(found, macs_ * kMargin) << graph_text(partial.graph) << graph_text(orders.goal());
    for (const std::size_t s : orders.ready(partial)) {
      State child = state;
      if (!space_.advance(child, space_.move(state, orders.step(partial, s))).empty()) continue;
      visit(orders, orders.take(partial, s), child, done);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }

  const Specification& spec_;
  StateSpace space_;
  MacsBound bound_;
  double macs_ = 0;
  std::int64_t count_ = 0;
  double tightest_ = 0;
};

TEST(MacsBound, NeverExceedsTheMacsOfAListedOperatorThatIsCutAnywhere) {
  for (const SmallSpace& small : small_and_deep_spaces()) {
    const Specification spec(small.source);
    MacsPrefixes prefixes(spec);
    for_some_operators(spec, 12, [&](const Operator& op) {
      if (!HasFatalFailure()) prefixes.check(op);
    });
    if (HasFatalFailure()) FAIL() << small.name;
    if (prefixes.count() == 0) continue;
    EXPECT_LE(prefixes.tightest(), kMargin) << small.name;
  }
}

TEST(MacsBound, RefusesADenseConvolutionAsSoonAsItsWeightIsThere) {
  const Specification spec(preset("paper/resnet18"));
  StateSpace space(spec);
  MacsBound bound(spec, space.sizes());
  ASSERT_TRUE(bound.is_on());
  const Operator dense = Operator::parse(R"(syno operator 1
out [N, C_out: unordered, H, H]
in [N, C_in: unordered, H, H]
reduce k_1 -> r0
reduce k_1 -> r1
reduce C_in -> r2
contract o1:drop r0:keep r1:keep r2:keep
unfold o2 r0 -> c0
unfold o3 r1 -> c1
match o0 r2 c0 c1
)")
                             .in_table(spec.variables());
  Graph graph = dense.graph().root();
  int rejected_at = 0;
  for (const Step& step : dense.graph().steps()) {
    State child = space.replay(graph);
    bound.begin(graph);
    ASSERT_EQ(space.advance(child, space.move(child, step)), "");
    const int left = dense.graph().depth() - graph.depth() - 1;
    if (rejected_at == 0 && bound.rejects(child, step, left)) rejected_at = graph.depth() + 1;
    graph.apply(step);
  }
  EXPECT_EQ(rejected_at, 4);
}

}  // namespace
}  // namespace syno
