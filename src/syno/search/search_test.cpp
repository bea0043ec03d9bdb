#include <gtest/gtest.h>
#include <map>
#include <set>

#include "syno/access/key_oracle_test.h"
#include "syno/search/accept.h"
#include "syno/search/enumerate.h"
#include "syno/search/path.h"
#include "syno/spec/paper_operators_test.h"
#include "syno/spec/presets.h"
#include "syno/support/error.h"

namespace syno {
namespace {

constexpr const char* kConv2d = R"(syno operator 1
out [N, C_out: unordered, H, H]
in [N, C_in: unordered, H, H]
reduce C_in -> i
reduce k_1 -> a
reduce k_1 -> b
contract o1:drop i:keep a:keep b:keep
unfold o2 a -> h
unfold o3 b -> w
match o0 i h w
)";

constexpr const char* kDepthwise = R"(syno operator 1
out [N, C_in: unordered, H, H]
in [N, C_in: unordered, H, H]
reduce k_1 -> a
reduce k_1 -> b
contract o1:keep a:keep b:keep
unfold o2 a -> h
unfold o3 b -> w
match o0 o1 h w
)";

constexpr const char* kDepthwiseSeparable = R"(syno operator 1
out [N, C_out: unordered, H, H]
in [N, C_in: unordered, H, H]
reduce C_in -> i
reduce k_1 -> a
reduce k_1 -> b
contract o1:drop i:keep
contract i:keep a:keep b:keep
unfold o2 a -> h
unfold o3 b -> w
match o0 i h w
)";

// y[n,o,h,w] = sum(i,a,q<s) x[n,i,(w+1)%H,u+a-k/2] * A[o,p] * B[i,a,o],  u = ((s*h+q+1)%(s*H))/s,  p = (s*h+q+1)%s
constexpr const char* kOperator07795 = R"(syno operator 1
out [N, C_out: unordered, H, H]
in [N, C_in: unordered, H, H]
reduce s -> q
reduce C_in -> i
reduce k_1 -> a
shift o3 1 -> v
split o2 q -> t
shift t 1 -> z
merge z s -> u p
contract o1:keep p:drop
contract o1:join i:keep a:keep
unfold u a -> h
match o0 i v h
)";

Path path_to(const SpecificationSource& source, const char* text) {
  const Specification spec(source);
  ChildGenerator generator(spec, RuleSet());
  return find_path(generator, Operator::parse(text), spec.limits().max_depth);
}

TEST(Reachability, KnownOperatorsAreBuiltByChildrenOfThePaperPreset) {
  for (const char* text : {kConv2d, kOperator1, kOperator07795}) {
    const Path path = path_to(preset("paper/resnet18"), text);
    EXPECT_TRUE(path.reached) << text << path.obstacle;
    EXPECT_EQ(path.steps.size(), Operator::parse(text).graph().steps().size());
  }
}

TEST(Reachability, DepthwiseNeedsElementWiseWeights) {
  SpecificationSource source = preset("paper/resnet18");
  source.primary[1] = "C_in: 3";
  EXPECT_NE(path_to(source, kDepthwiseSeparable).obstacle.find("element_wise_weights"),
            std::string::npos);
  source.limits.element_wise_weights = true;
  EXPECT_TRUE(path_to(source, kDepthwiseSeparable).reached)
      << path_to(source, kDepthwiseSeparable).obstacle;
  source.primary[1] = "C_in: 2";
  // A depthwise convolution alone keeps its channels, so both sides are C_in.
  source.output = "[N, C_in: unordered, H, H]";
  EXPECT_TRUE(path_to(source, kDepthwise).reached) << path_to(source, kDepthwise).obstacle;
}

TEST(Reachability, TheObstacleHasAName) {
  SpecificationSource source = preset("paper/resnet18");
  source.limits.max_depth = 9;
  EXPECT_NE(path_to(source, kOperator1).obstacle.find("completion_bound"), std::string::npos)
      << path_to(source, kOperator1).obstacle;
}

// Small specifications whose whole space is listed in a moment.
std::vector<std::pair<std::string, SpecificationSource>> small_specifications() {
  std::vector<std::pair<std::string, SpecificationSource>> list;
  SpecificationSource linear;
  linear.input = "[N, I]";
  linear.output = "[N, O]";
  linear.primary = {"N: 0", "I: 2", "O: 2"};
  linear.coefficient = {"s=2: 1"};
  linear.bindings = {Binding({{"I", 4}, {"O", 6}})};
  linear.passed_through = {{0, 0}};
  linear.limits.max_depth = 5;
  linear.limits.max_merges = 2;
  list.emplace_back("linear", linear);

  SpecificationSource conv1d;
  conv1d.input = "[N, I: unordered, H]";
  conv1d.output = "[N, O: unordered, H]";
  conv1d.primary = {"N: 0", "I: 1", "O: 1", "H: 0"};
  conv1d.coefficient = {"k=3: 1", "s=2: 1"};
  conv1d.bindings = {Binding({{"I", 4}, {"O", 8}, {"H", 8}})};
  conv1d.passed_through = {{0, 0}};
  conv1d.limits.max_depth = 5;
  list.emplace_back("conv1d", conv1d);

  SpecificationSource square;
  square.input = "[H, W]";
  square.output = "[H, W]";
  square.primary = {"H: 1", "W: 1"};
  square.coefficient = {"k=3: 1"};
  square.bindings = {Binding({{"H", 9}, {"W", 12}})};
  square.limits.max_depth = 5;
  square.limits.element_wise_weights = true;
  list.emplace_back("square", square);
  return list;
}

std::set<Hash128> keys(const Enumeration& enumeration) {
  std::set<Hash128> result;
  for (const FoundOperator& found : enumeration.operators) result.insert(found.key);
  return result;
}

Enumeration list(const SpecificationSource& source, RuleSet rules, BoundMode bound) {
  const Specification spec(source);
  EnumerateOptions options;
  options.rules = std::move(rules);
  options.bound = bound;
  options.max_nodes = 2'000'000;
  return enumerate(spec, options);
}

TEST(Bound, NeverLosesAnOperator) {
  for (const auto& [name, source] : small_specifications()) {
    const Enumeration full = list(source, RuleSet(), BoundMode::kFull);
    const Enumeration loose = list(source, RuleSet(), BoundMode::kLoose);
    const Enumeration none = list(source, RuleSet(), BoundMode::kNone);
    ASSERT_TRUE(full.exhausted && loose.exhausted && none.exhausted) << name;
    EXPECT_GE(full.operators.size(), 9U) << name;
    EXPECT_EQ(full.structures, none.structures) << name;
    EXPECT_EQ(loose.structures, none.structures) << name;
    EXPECT_TRUE(keys(full) == keys(none)) << name;
    EXPECT_TRUE(keys(loose) == keys(none)) << name;
    EXPECT_LE(full.nodes, loose.nodes) << name;
    EXPECT_LT(full.nodes, none.nodes) << name;
    std::printf("%-8s %6ld nodes without a bound, %6ld loose, %6ld full; %ld graphs, %zu keys\n",
                name.c_str(), static_cast<long>(none.nodes), static_cast<long>(loose.nodes),
                static_cast<long>(full.nodes), static_cast<long>(full.graphs),
                full.operators.size());
  }
}

// Whether an equal operator is in the list, decided by brute force over all terms: the key may take equal operators for
// different ones, and does so for two classes here.
bool is_listed(const Operator& op, const Enumeration& list, const Specification& spec) {
  const auto terms = [&](const Operator& o) {
    return oracle::term_set(o.in_table(spec.variables()), spec.bindings()[0]);
  };
  const oracle::TermSet wanted = terms(op);
  for (const FoundOperator& found : list.operators) {
    const oracle::TermSet other = terms(found.op);
    if (oracle::invariant(other) == oracle::invariant(wanted) &&
        oracle::same_operator(other, wanted))
      return true;
  }
  return false;
}

TEST(Rules, ExactRulesLoseNoClassOfASmallSpace) {
  for (const auto& [name, source] : small_specifications()) {
    const Enumeration ruled = list(source, RuleSet::exact(), BoundMode::kFull);
    const Enumeration raw = list(source, RuleSet::restrictions(), BoundMode::kFull);
    ASSERT_TRUE(ruled.exhausted && raw.exhausted) << name;
    const Specification spec(source);
    ChildGenerator generator(spec, RuleSet::exact());
    const std::set<Hash128> kept = keys(ruled);
    for (const FoundOperator& found : raw.operators) {
      if (kept.contains(found.key) || is_listed(found.op, ruled, spec)) continue;
      ADD_FAILURE() << name << " lost\n"
                    << found.op.text()
                    << find_path(generator, found.op, spec.limits().max_depth).obstacle;
    }
    EXPECT_LE(ruled.structures, raw.structures) << name;
    std::printf("%-8s %ld raw structures, %ld ruled, %zu keys\n", name.c_str(),
                static_cast<long>(raw.structures), static_cast<long>(ruled.structures),
                ruled.operators.size());
  }
}

TEST(Enumerate, IsTheSameEveryTimeAndForEveryOrderOfDeclaration) {
  SpecificationSource source = small_specifications()[1].second;
  const Enumeration first = list(source, RuleSet(), BoundMode::kFull);
  std::swap(source.primary[0], source.primary[2]);
  std::swap(source.coefficient[0], source.coefficient[1]);
  const Enumeration second = list(source, RuleSet(), BoundMode::kFull);
  ASSERT_EQ(first.operators.size(), second.operators.size());
  for (std::size_t i = 0; i < first.operators.size(); ++i) {
    EXPECT_EQ(first.operators[i].op.text(), second.operators[i].op.text());
    EXPECT_EQ(first.operators[i].key, second.operators[i].key);
  }
  EXPECT_EQ(first.rejections, second.rejections);
}

TEST(Enumerate, EveryOperatorIsAdmittedByItsSpecification) {
  for (const auto& [name, source] : small_specifications()) {
    const Specification spec(source);
    for (const FoundOperator& found : list(source, RuleSet(), BoundMode::kFull).operators) {
      for (const RefusalReason& refusal : refusals(found.op, spec, RuleSet())) {
        ADD_FAILURE() << name << "\n" << found.op.text() << refusal.reason << ": " << refusal.text;
      }
    }
  }
}

TEST(Enumerate, ASpentBudgetKeepsTheLastCompleteDepth) {
  const Specification spec(small_specifications()[1].second);
  EnumerateOptions options;
  const Enumeration all = enumerate(spec, options);
  options.max_nodes = all.nodes / 2;
  const Enumeration part = enumerate(spec, options);
  EXPECT_FALSE(part.exhausted);
  EXPECT_LT(part.complete_depth, all.complete_depth);
  EXPECT_LT(part.operators.size(), all.operators.size());
  const std::set<Hash128> known = keys(all);
  for (const FoundOperator& found : part.operators) EXPECT_TRUE(known.contains(found.key));
}

TEST(Enumerate, RejectionsHaveNamedReasons) {
  const Enumeration found = list(small_specifications()[1].second, RuleSet(), BoundMode::kFull);
  EXPECT_GT(found.rejections.at(std::string(kBoundReason)), 0);
  EXPECT_GT(found.rejections.at("R6a view-above-share"), 0);
}

TEST(UniformDraws, VisitEveryNumberOnceInASeededUniformOrder) {
  const UniformDraws draws(50, 3);
  std::set<std::uint64_t> seen;
  for (std::uint64_t n = 0; n < 50; ++n) seen.insert(draws.at(n));
  EXPECT_EQ(seen.size(), 50U);
  EXPECT_EQ(UniformDraws(50, 3).at(7), draws.at(7));
  // Over 6,000 seeds the first draw of four is each number 1,500 times, within six standard deviations.
  std::map<std::uint64_t, int> counts;
  for (std::uint64_t seed = 0; seed < 6000; ++seed) ++counts[UniformDraws(4, seed).at(0)];
  for (std::uint64_t n = 0; n < 4; ++n) EXPECT_NEAR(counts[n], 1500, 6 * 33.5);
}

TEST(ChildGenerator, NeedsABinding) {
  const Specification spec(preset("paper/readme"));
  EXPECT_THROW(ChildGenerator(spec, RuleSet()), UserError);
}

TEST(Refusals, SayWhatIsWrong) {
  const Specification spec(preset("paper/resnet18"));
  const auto first = [&](const char* text) {
    const auto found = refusals(Operator::parse(text), spec, RuleSet());
    return found.empty() ? std::string("none") : found.front().reason;
  };
  EXPECT_EQ(first(kOperator1), "none");
  EXPECT_EQ(first(kDepthwise), "shape");
  EXPECT_EQ(first(kDepthwiseSeparable), "budget");
  // conv2d in every layer costs more multiply-adds than the original, whose 1x1 layers are cheaper.
  EXPECT_EQ(first(kConv2d), "max_macs");
}

}  // namespace
}  // namespace syno
