// Enumerations: what they list, that nothing but the specification decides it, and how they end.
#include "syno/space/enumerate.h"

#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>
#include <set>

#include "syno/key/key.h"
#include "syno/space/accept.h"
#include "syno/space/random_specification_test.h"
#include "syno/space/renamed_test.h"
#include "syno/space/shrink_test.h"
#include "syno/space/small_spaces_test.h"

namespace syno {
namespace {

using namespace samples;

// `make check-all` asks for more.
std::uint64_t thorough(std::uint64_t quick, std::uint64_t slow) {
  return std::getenv("SYNO_THOROUGH") != nullptr ? slow : quick;
}

std::set<Hash128> distinct_structures(const Specification& spec, const Space& space) {
  std::set<Hash128> all;
  for (std::size_t i = 0; i < space.operators.size(); ++i)
    EXPECT_TRUE(all.insert(space.op(spec, i).structure()).second);
  return all;
}

// In every mode, exactly the operators that an enumeration by definition lists, and each graph once. Says what is wrong.
std::string difference(const SpecificationSource& source, const RuleSet& rules, int depth,
                       std::size_t most_nodes, std::size_t& operators) {
  const Specification spec(source);
  int reached = 1;
  auto definition = std::make_unique<reference::Reference>(spec, rules, reached);
  while (reached < depth && definition->nodes().size() < most_nodes)
    definition = std::make_unique<reference::Reference>(spec, rules, ++reached);
  const std::set<Hash128> wanted = definition->operators();
  operators += wanted.size();
  for (const BoundMode bound : {BoundMode::kNone, BoundMode::kLoose, BoundMode::kFull}) {
    EnumerateOptions made = options(rules, bound, reached);
    made.first_depth = reached;
    made.keys = false;
    const Space space = enumerate_space(spec, made);
    const std::set<Hash128> found = distinct_structures(spec, space);
    const std::string mode = "bound " + std::to_string(static_cast<int>(bound)) + ": ";
    for (const reference::Node& node : definition->nodes()) {
      for (const Operator& op : node.operators) {
        if (!found.contains(op.structure())) return mode + "this is lost\n" + op.text();
      }
    }
    for (std::size_t i = 0; i < space.operators.size(); ++i) {
      const Operator op = space.op(spec, i);
      if (!wanted.contains(op.structure())) return mode + "this is too much\n" + op.text();
    }
    if (bound != BoundMode::kNone) continue;
    std::set<Hash128> seen;
    for (std::uint32_t node = 0; node < space.node_count(); ++node) {
      const Graph graph = space.graph(spec, node);
      const Hash128 hash = structure_hash(graph);
      if (!definition->holds(hash))
        return "enumerated against the definition\n" + graph_text(graph);
      if (!seen.insert(hash).second) return "enumerated twice\n" + graph_text(graph);
    }
  }
  return "";
}

TEST(Enumerate, ListsWhatTheDefinitionListsOfSmallSpecifications) {
  std::size_t operators = 0;
  for (const SmallSpace& small : small_spaces()) {
    for (const RuleSet& rules : {RuleSet::none(), RuleSet::restrictions(), RuleSet()}) {
      ASSERT_EQ(difference(small.source, rules, 4, 2000, operators), "") << small.name;
    }
  }
  EXPECT_GT(operators, 1000U);
}

TEST(Enumerate, ListsWhatTheDefinitionListsOfRandomSpecifications) {
  std::size_t operators = 0;
  for (std::uint64_t seed = 0; seed < thorough(150, 6000); ++seed) {
    const auto source = RandomSpecification(seed).source();
    if (!source) continue;
    const RuleSet rules = seed % 3 == 0   ? RuleSet::none()
                          : seed % 3 == 1 ? RuleSet::restrictions()
                                          : RuleSet();
    const auto check = [&](const SpecificationSource& some) {
      return difference(some, rules, 4, 2500, operators);
    };
    if (!check(*source).empty())
      FAIL() << "seed " << seed << ", shrunk to " << Shrinker(check).explain(*source);
  }
  EXPECT_GT(operators, 1000U);
}

void expect_same(const Space& a, const Space& b, const std::string& name) {
  ASSERT_EQ(a.nodes.size(), b.nodes.size()) << name;
  for (std::size_t n = 0; n < a.nodes.size(); ++n) {
    ASSERT_EQ(a.nodes[n].parent, b.nodes[n].parent) << name;
    ASSERT_EQ(a.nodes[n].move, b.nodes[n].move) << name;
  }
  EXPECT_EQ(a.moves, b.moves) << name;
  EXPECT_EQ(a.levels, b.levels) << name;
  EXPECT_EQ(a.graphs, b.graphs) << name;
  ASSERT_EQ(a.operators.size(), b.operators.size()) << name;
  for (std::size_t i = 0; i < a.operators.size(); ++i) {
    ASSERT_EQ(a.operators[i].node, b.operators[i].node) << name;
    ASSERT_EQ(a.operators[i].matching, b.operators[i].matching) << name;
    ASSERT_EQ(a.operators[i].key, b.operators[i].key) << name;
  }
  EXPECT_EQ(a.structures, b.structures) << name;
  EXPECT_EQ(a.signature(), b.signature()) << name;
  EXPECT_EQ(a.depth_limit, b.depth_limit) << name;
  EXPECT_EQ(a.complete_depth, b.complete_depth) << name;
  EXPECT_EQ(a.exhausted, b.exhausted) << name;
  EXPECT_EQ(a.rejections, b.rejections) << name;
}

TEST(Enumerate, IsTheSameForAnyNumberOfThreads) {
  std::vector<SmallSpace> list = small_spaces();
  list.push_back({"paper/resnet18", "", preset("paper/resnet18")});
  for (const SmallSpace& small : list) {
    const Specification spec(small.source);
    EnumerateOptions made =
        options(RuleSet(), BoundMode::kFull, small.name == "paper/resnet18" ? 6 : 0);
    const Space one = enumerate_space(spec, made);
    EXPECT_TRUE(one.exhausted) << small.name;
    for (const int threads : {2, 3, 8}) {
      made.threads = threads;
      const Space many = enumerate_space(spec, made);
      expect_same(one, many, small.name + ", " + std::to_string(threads) + " threads");
      EXPECT_EQ(one.visited, many.visited);
    }
  }
}

// Where the budget of nodes ends must not depend on which thread was how far.
TEST(Enumerate, ASpentBudgetEndsInOnePlaceForAnyNumberOfThreads) {
  const Specification spec(small_space("square").source);
  EnumerateOptions made = options(RuleSet::restrictions(), BoundMode::kFull);
  made.keys = false;
  const std::int64_t all = enumerate_space(spec, made).visited;
  for (std::int64_t nodes = 1; nodes < all + 40; nodes += all / 40) {
    made.max_nodes = nodes;
    made.threads = 1;
    const Space one = enumerate_space(spec, made);
    for (const int threads : {2, 5}) {
      made.threads = threads;
      expect_same(one, enumerate_space(spec, made), std::to_string(nodes) + " nodes");
      if (HasFailure()) return;
    }
  }
  // Just enough, and one too few.
  for (const std::int64_t nodes : {all - 1, all, all + 1}) {
    made.max_nodes = nodes;
    made.threads = 1;
    const Space one = enumerate_space(spec, made);
    EXPECT_EQ(one.exhausted, nodes >= all);
    for (int trial = 0; trial < 10; ++trial) {
      made.threads = 2 + trial % 3;
      expect_same(one, enumerate_space(spec, made), std::to_string(nodes) + " nodes");
    }
  }
}

TEST(Enumerate, IsTheSameForEveryOrderOfDeclaration) {
  for (const SmallSpace& small : small_spaces()) {
    SpecificationSource source = small.source;
    std::reverse(source.primary.begin(), source.primary.end());
    std::reverse(source.coefficient.begin(), source.coefficient.end());
    std::reverse(source.bindings.begin(), source.bindings.end());
    const Specification spec(small.source);
    const Specification other(source);
    ASSERT_EQ(spec.key(), other.key()) << small.name;
    const EnumerateOptions made = options(RuleSet(), BoundMode::kFull);
    const Space first = enumerate_space(spec, made);
    const Space second = enumerate_space(other, made);
    expect_same(first, second, small.name);
    for (std::size_t i = 0; i < first.operators.size(); ++i)
      EXPECT_EQ(first.op(spec, i).text(), second.op(other, i).text()) << small.name;
  }
}

TEST(Enumerate, ItsSignatureDoesNotDependOnNames) {
  for (const SmallSpace& small : small_spaces()) {
    const Specification spec(small.source);
    const Specification other(renamed(small.source, reversed_names(spec)));
    const EnumerateOptions made = options(RuleSet(), BoundMode::kFull);
    const Space first = enumerate_space(spec, made);
    const Space second = enumerate_space(other, made);
    // Partial graphs are no part of it: reductions come in the order of their sizes, which is that of names.
    EXPECT_EQ(first.graphs_by_depth(), second.graphs_by_depth()) << small.name;
    EXPECT_EQ(first.operators_by_depth(), second.operators_by_depth()) << small.name;
    EXPECT_EQ(first.operators_by_primitives(), second.operators_by_primitives()) << small.name;
    EXPECT_EQ(first.signature(), second.signature()) << small.name;
  }
}

std::string counts(const Space& space) {
  std::string text = space.signature().hex() + "; graphs";
  for (const std::int64_t count : space.graphs_by_depth()) text += " " + std::to_string(count);
  text += "; operators";
  for (const std::int64_t count : space.operators_by_depth()) text += " " + std::to_string(count);
  for (const auto& [primitives, count] : space.operators_by_primitives())
    text += "; " + std::to_string(count);
  return text;
}

// Random specifications under other names, in other orders, by several threads.
TEST(Enumerate, ListsRandomSpecificationsAlikeWhateverDoesNotMatter) {
  std::size_t operators = 0;
  for (std::uint64_t seed = 0; seed < thorough(100, 1500); ++seed) {
    const auto source = RandomSpecification(seed).source();
    if (!source) continue;
    const auto check = [&](const SpecificationSource& some) -> std::string {
      const Specification spec(some);
      EnumerateOptions made = options(RuleSet(), BoundMode::kFull, 4);
      const Space first = enumerate_space(spec, made);
      operators += first.operators.size();
      SpecificationSource other = renamed(some, reversed_names(spec));
      std::reverse(other.bindings.begin(), other.bindings.end());
      made.threads = 3;
      const std::string one = counts(first);
      const std::string another = counts(enumerate_space(Specification(other), made));
      return one == another ? "" : one + "\n" + another;
    };
    if (!check(*source).empty())
      FAIL() << "seed " << seed << ", shrunk to " << Shrinker(check).explain(*source);
  }
  EXPECT_GT(operators, 500U);
}

TEST(Enumerate, ItsSignatureTellsSpacesApart) {
  std::set<Hash128> seen;
  for (const SmallSpace& small : small_spaces()) {
    const Specification spec(small.source);
    for (const std::int64_t depth : {4, 5}) {
      const Space space = enumerate_space(spec, options(RuleSet(), BoundMode::kFull, depth));
      EXPECT_TRUE(seen.insert(space.signature()).second) << small.name << " at depth " << depth;
    }
  }
}

// A limit of depth lists the part of a larger limit's operators that has as few steps.
TEST(Enumerate, ADepthLimitListsThePartOfALargerOne) {
  for (const SmallSpace& small : small_spaces()) {
    const Specification spec(small.source);
    const auto list = [&](std::int64_t depth) {
      EnumerateOptions made = options(RuleSet(), BoundMode::kFull, depth);
      made.keys = false;
      return enumerate_space(spec, made);
    };
    const Space whole = list(0);
    const std::int64_t deepest = spec.limits().max_depth;
    for (std::int64_t depth = 1; depth < deepest; ++depth) {
      std::set<Hash128> wanted;
      for (std::size_t i = 0; i < whole.operators.size(); ++i) {
        if (whole.depth(whole.operators[i].node) <= depth)
          wanted.insert(whole.op(spec, i).structure());
      }
      EXPECT_EQ(distinct_structures(spec, list(depth)), wanted)
          << small.name << " at depth " << depth;
    }
  }
}

TEST(Enumerate, EveryOperatorIsAdmittedByItsSpecification) {
  for (const SmallSpace& small : small_spaces()) {
    const Specification spec(small.source);
    const Space space = enumerate_space(spec, options(RuleSet(), BoundMode::kFull));
    for (std::size_t i = 0; i < space.operators.size(); i += 1 + space.operators.size() / 200) {
      const Operator op = space.op(spec, i);
      for (const RejectionReason& rejection : rejections(op, spec, RuleSet())) {
        ADD_FAILURE() << small.name << "\n"
                      << op.text() << rejection.reason << ": " << rejection.text;
      }
    }
  }
}

TEST(Enumerate, KeepsOneOperatorAKeyWithTheFewestSteps) {
  const Specification spec(small_space("repeat").source);
  const Space space = enumerate_space(spec, options(RuleSet(), BoundMode::kFull));
  EnumerateOptions made = options(RuleSet(), BoundMode::kFull);
  made.keys = false;
  const Space all = enumerate_space(spec, made);
  std::map<Hash128, int> least;
  for (std::size_t i = 0; i < all.operators.size(); ++i) {
    const Hash128 key = semantic_key(all.op(spec, i).in_table(spec.variables()), spec.bindings());
    const int depth = all.depth(all.operators[i].node);
    const auto [place, is_new] = least.try_emplace(key, depth);
    place->second = std::min(place->second, depth);
  }
  ASSERT_EQ(space.operators.size(), least.size());
  EXPECT_EQ(space.rejections.at("repeated_key"),
            static_cast<std::int64_t>(all.operators.size() - least.size()));
  for (std::size_t i = 0; i < space.operators.size(); ++i)
    EXPECT_EQ(space.depth(space.operators[i].node), least.at(space.operators[i].key));
}

TEST(Enumerate, ASpentBudgetKeepsTheLastCompleteDepth) {
  const Specification spec(small_space("conv1d").source);
  EnumerateOptions made = options(RuleSet(), BoundMode::kFull);
  const Enumeration all = enumerate(spec, made);
  made.max_nodes = all.nodes / 2;
  const Enumeration part = enumerate(spec, made);
  EXPECT_FALSE(part.exhausted);
  EXPECT_LT(part.complete_depth, all.complete_depth);
  EXPECT_LT(part.operators.size(), all.operators.size());
  std::set<Hash128> known;
  for (const FoundOperator& found : all.operators) known.insert(found.key);
  for (const FoundOperator& found : part.operators) EXPECT_TRUE(known.contains(found.key));
}

TEST(Enumerate, EndsWithWhatWasFoundWhenMemoryTimeOrTheCallerEndsIt) {
  const Specification spec(preset("paper/resnet18"));
  const auto ended = [&](auto change, const EnumerateProgress& progress) {
    EnumerateOptions made = options(RuleSet(), BoundMode::kFull);
    change(made);
    const Space space = enumerate_space(spec, made, progress);
    EXPECT_FALSE(space.exhausted);
    EXPECT_LT(space.complete_depth, spec.limits().max_depth);
    for (std::size_t i = 0; i < space.operators.size(); i += 7)
      EXPECT_FALSE(space.op(spec, i).text().empty());
  };
  ended([](EnumerateOptions& made) { made.max_seconds = 0.2; }, {});
  ended([](EnumerateOptions& made) { made.max_memory = 400'000; }, {});
  int calls = 0;
  ended([](EnumerateOptions&) {},
        [&](const EnumerateStatus& status) {
          EXPECT_LE(status.level_share, 1.0);
          EXPECT_LE(status.level, status.depth_limit);
          return ++calls < 3;
        });
  EXPECT_EQ(calls, 3);
}

TEST(Enumerate, RejectionsHaveNamedReasons) {
  const Specification spec(small_space("conv1d").source);
  const Space found = enumerate_space(spec, options(RuleSet(), BoundMode::kFull));
  EXPECT_GT(found.rejections.at(std::string(kBoundReason)), 0);
  EXPECT_GT(found.rejections.at("R6a view-above-share"), 0);
  for (const auto& [reason, count] : found.rejections) EXPECT_GT(count, 0) << reason;
}

TEST(UniformSamples, VisitEveryNumberOnceInASeededUniformOrder) {
  const UniformSamples samples(50, 3);
  std::set<std::uint64_t> seen;
  for (std::uint64_t n = 0; n < 50; ++n) seen.insert(samples.at(n));
  EXPECT_EQ(seen.size(), 50U);
  EXPECT_EQ(UniformSamples(50, 3).at(7), samples.at(7));
  EXPECT_NE(UniformSamples(50, 4).at(7), samples.at(7));
}

// Pearson's statistic of `counts` against equal shares. Its mean is the number of cells less 1, its variance twice that.
double chi_square(const std::vector<std::int64_t>& counts) {
  double total = 0;
  for (const std::int64_t count : counts) total += static_cast<double>(count);
  const double expected = total / static_cast<double>(counts.size());
  double sum = 0;
  for (const std::int64_t count : counts)
    sum += (static_cast<double>(count) - expected) * (static_cast<double>(count) - expected) /
           expected;
  return sum;
}

void expect_uniform(const std::vector<std::int64_t>& counts, const char* what) {
  const double freedom = static_cast<double>(counts.size()) - 1;
  // Five standard deviations to either side: neither uneven nor suspiciously even.
  EXPECT_NEAR(chi_square(counts), freedom, 5 * std::sqrt(2 * freedom)) << what;
}

TEST(UniformSamples, AreUniformByAChiSquareTest) {
  constexpr std::uint64_t kCount = 97;
  std::vector<std::int64_t> first(kCount);
  std::vector<std::int64_t> tenth(kCount);
  std::vector<std::int64_t> among_first_ten(kCount);
  std::vector<std::int64_t> pairs(kCount * (kCount - 1));
  for (std::uint64_t seed = 0; seed < 200'000; ++seed) {
    const UniformSamples samples(kCount, seed);
    ++first[samples.at(0)];
    ++tenth[samples.at(9)];
    for (std::uint64_t n = 0; n < 10; ++n) ++among_first_ten[samples.at(n)];
    const std::uint64_t a = samples.at(0);
    const std::uint64_t b = samples.at(1);
    ++pairs[a * (kCount - 1) + b - (b > a)];
  }
  expect_uniform(first, "first sample");
  expect_uniform(tenth, "tenth sample");
  expect_uniform(pairs, "ordered pairs of the first two samples");
  // Ten different numbers a seed: their counts vary less than independent ones by (97 - 10) / 97.
  const double freedom = static_cast<double>(kCount) - 1;
  EXPECT_NEAR(chi_square(among_first_ten) / (static_cast<double>(kCount - 10) / kCount), freedom,
              5 * std::sqrt(2 * freedom));
}

// The chi-square test itself notices a sample that is off by a few parts in a hundred.
TEST(UniformSamples, AnUnevenDrawFailsTheTest) {
  std::vector<std::int64_t> counts(97);
  CounterRandom random(1, 2);
  for (int n = 0; n < 200'000; ++n) ++counts[random.below(97)];
  const double freedom = 96;
  EXPECT_NEAR(chi_square(counts), freedom, 5 * std::sqrt(2 * freedom));
  for (std::size_t i = 0; i < 97; i += 2) counts[i] += counts[i] / 20;
  EXPECT_GT(chi_square(counts), freedom + 5 * std::sqrt(2 * freedom));
}

}  // namespace
}  // namespace syno
