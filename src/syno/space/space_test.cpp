// Listed spaces as values: counts that add up, operators by index, and their file.
#include "syno/space/space.h"

#include <functional>
#include <gtest/gtest.h>
#include <set>
#include <sstream>

#include "syno/space/small_spaces_test.h"
#include "syno/support/error.h"
#include "syno/support/random.h"

namespace syno {
namespace {

using namespace samples;

struct Listed {
  explicit Listed(const SmallSpace& small)
      : spec(small.source), space(enumerate_space(spec, options(RuleSet(), BoundMode::kFull))) {}
  Specification spec;
  Space space;
};

std::string saved(const Space& space) {
  std::ostringstream out;
  space.save(out);
  return out.str();
}

Space loaded(const std::string& file, const Specification& spec, const std::string& rules) {
  std::istringstream in(file);
  return Space::load(in, spec, rules);
}

void expect_equal(const Space& a, const Space& b, const Specification& spec) {
  EXPECT_EQ(a.signature(), b.signature());
  EXPECT_EQ(a.moves, b.moves);
  EXPECT_EQ(a.levels, b.levels);
  EXPECT_EQ(a.graphs, b.graphs);
  EXPECT_EQ(a.structures, b.structures);
  EXPECT_EQ(a.depth_limit, b.depth_limit);
  EXPECT_EQ(a.complete_depth, b.complete_depth);
  EXPECT_EQ(a.exhausted, b.exhausted);
  EXPECT_EQ(a.visited, b.visited);
  EXPECT_EQ(a.rejections, b.rejections);
  EXPECT_EQ(a.spec_key, b.spec_key);
  EXPECT_EQ(a.spec_text, b.spec_text);
  EXPECT_EQ(a.rules, b.rules);
  EXPECT_EQ(a.operators_by_depth(), b.operators_by_depth());
  EXPECT_EQ(a.operators_by_primitives(), b.operators_by_primitives());
  EXPECT_EQ(a.operators_below(), b.operators_below());
  ASSERT_EQ(a.node_count(), b.node_count());
  ASSERT_EQ(a.operator_count(), b.operator_count());
  for (std::size_t i = 0; i < a.operator_count(); ++i) {
    EXPECT_EQ(a.operators[i].key, b.operators[i].key);
    EXPECT_EQ(a.op(spec, i).text(), b.op(spec, i).text());
  }
}

TEST(Space, CountsAddUp) {
  for (const SmallSpace& small : small_spaces()) {
    const Listed enumerated(small);
    const Space& space = enumerated.space;
    const auto count = static_cast<std::int64_t>(space.operator_count());
    ASSERT_GT(count, 0) << small.name;
    std::int64_t by_depth = 0;
    for (const std::int64_t n : space.operators_by_depth()) by_depth += n;
    EXPECT_EQ(by_depth, count) << small.name;
    std::int64_t by_primitives = 0;
    for (const auto& [primitives, n] : space.operators_by_primitives()) by_primitives += n;
    EXPECT_EQ(by_primitives, count) << small.name;
    std::int64_t graphs = 0;
    for (const std::int64_t n : space.graphs_by_depth()) graphs += n;
    EXPECT_EQ(graphs, static_cast<std::int64_t>(space.graphs.size())) << small.name;

    const std::vector<std::uint32_t> below = space.operators_below();
    EXPECT_EQ(below[0], count) << small.name;
    std::vector<std::uint32_t> own(space.node_count());
    for (const SpaceOperator& found : space.operators) ++own[found.node];
    std::vector<std::uint32_t> sums = own;
    for (std::size_t node = 1; node < space.node_count(); ++node) {
      sums[space.nodes[node].parent] += below[node];
      EXPECT_EQ(space.depth(static_cast<std::uint32_t>(node)),
                space.depth(space.nodes[node].parent) + 1);
    }
    EXPECT_EQ(sums, below) << small.name;
  }
}

TEST(Space, GivesEveryOperatorByIndexInAnyOrder) {
  for (const SmallSpace& small : small_spaces()) {
    const Listed enumerated(small);
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < enumerated.space.operator_count(); ++i) {
      const Operator op = enumerated.space.op(enumerated.spec, i);
      EXPECT_EQ(op.graph().depth(), enumerated.space.depth(enumerated.space.operators[i].node));
      texts.push_back(op.text());
    }
    EXPECT_EQ(std::set<std::string>(texts.begin(), texts.end()).size(), texts.size());
    CounterRandom random(1, 1);
    for (int n = 0; n < 100; ++n) {
      const std::size_t i = random.below(texts.size());
      EXPECT_EQ(enumerated.space.op(enumerated.spec, i).text(), texts[i]);
    }
    EXPECT_THROW(enumerated.space.op(enumerated.spec, texts.size()), std::out_of_range);
  }
}

TEST(Space, TakesFewBytesAGraph) {
  const Listed enumerated(small_space("repeat"));
  EXPECT_LE(sizeof(SpaceNode), 16U);
  EXPECT_LT(saved(enumerated.space).size(),
            16 * enumerated.space.node_count() + 24 * enumerated.space.operator_count());
}

TEST(Space, AFileReadsBackAsTheSpaceItWasWrittenFrom) {
  for (const SmallSpace& small : small_spaces()) {
    const Listed enumerated(small);
    const std::string file = saved(enumerated.space);
    const Space read = loaded(file, enumerated.spec, enumerated.space.rules);
    expect_equal(read, enumerated.space, enumerated.spec);
    EXPECT_EQ(saved(read), file) << small.name;
  }
}

// With a right check sum, too: what was written by another program, or by a fault of this one.
TEST(Space, AFileWhoseGraphsHangTogetherWronglyIsRefused) {
  const Listed enumerated(small_space("conv1d"));
  const auto rejection = [&](const auto& change) {
    Space space = enumerated.space;
    change(space);
    try {
      loaded(saved(space), enumerated.spec, space.rules);
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  ASSERT_GT(enumerated.space.levels.size(), 3U);
  EXPECT_EQ(rejection([](Space&) {}), "accepted");
  for (const auto& change : std::vector<std::function<void(Space&)>>{
           [](Space& space) { space.levels.clear(); }, [](Space& space) { space.levels.resize(2); },
           [](Space& space) { std::swap(space.levels[1], space.levels[2]); },
           [](Space& space) { space.levels[0] = 1; },
           [](Space& space) { space.levels.back() += 1; },
           [](Space& space) { space.nodes.clear(); }})
    EXPECT_NE(rejection(change).find("levels"), std::string::npos) << rejection(change);
  EXPECT_NE(rejection([](Space& space) {
              space.nodes.back().parent = 0;
            }).find("does not follow its parent"),
            std::string::npos);
}

TEST(Space, AnEmptySpaceHasAFileToo) {
  SpecificationSource source = small_space("linear").source;
  source.limits.min_params = 1'000'000'000'000;
  const Specification spec(source);
  const Space space = enumerate_space(spec, options(RuleSet(), BoundMode::kFull));
  EXPECT_EQ(space.operator_count(), 0U);
  expect_equal(loaded(saved(space), spec, space.rules), space, spec);
}

TEST(Space, AFileOfAnotherSpecificationOrOtherRulesIsRefusedWithTheDifference) {
  const Listed enumerated(small_space("linear"));
  const std::string file = saved(enumerated.space);
  const auto rejection = [&](const Specification& spec, const std::string& rules) {
    try {
      loaded(file, spec, rules);
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(rejection(enumerated.spec, enumerated.space.rules), "accepted");
  const std::string shapes =
      rejection(Specification(small_space("channels").source), enumerated.space.rules);
  EXPECT_NE(shapes.find(enumerated.spec.text()), std::string::npos) << shapes;
  EXPECT_NE(shapes.find("[C_in: unordered] -> [C_out: unordered]"), std::string::npos) << shapes;
  SpecificationSource source = small_space("linear").source;
  source.limits.max_merges = 1;
  const std::string limits = rejection(Specification(source), enumerated.space.rules);
  EXPECT_NE(limits.find("other budgets, bindings or limits"), std::string::npos) << limits;
  RuleSet others;
  others.set("R1b", false);
  const std::string rules = rejection(enumerated.spec, others.version());
  EXPECT_NE(rules.find("set of rules"), std::string::npos) << rules;
  EXPECT_NE(rules.find(others.version()), std::string::npos) << rules;
}

// Cut anywhere, one bit turned over anywhere, one byte more or less anywhere: an error with words, never another space.
TEST(Space, ADamagedFileIsRefused) {
  const Listed enumerated(small_space("conv1d"));
  const std::string file = saved(enumerated.space);
  ASSERT_GT(file.size(), 500U);
  const auto rejected = [&](const std::string& damaged) {
    try {
      loaded(damaged, enumerated.spec, enumerated.space.rules);
    } catch (const UserError& error) {
      return std::string(error.what()).size() > 20;
    }
    return false;
  };
  EXPECT_FALSE(rejected(file));
  for (std::size_t length = 0; length < file.size(); ++length)
    EXPECT_TRUE(rejected(file.substr(0, length))) << "cut to " << length << " bytes";
  for (std::size_t at = 0; at < file.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = file;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      EXPECT_TRUE(rejected(damaged)) << "bit " << bit << " of byte " << at;
    }
    std::string shorter = file;
    shorter.erase(at, 1);
    EXPECT_TRUE(rejected(shorter)) << "without byte " << at;
    std::string longer = file;
    longer.insert(at, 1, '\x01');
    EXPECT_TRUE(rejected(longer)) << "a byte more at " << at;
  }
  EXPECT_TRUE(rejected(file + '\0')) << "a byte more at the end";
  EXPECT_TRUE(rejected(file + file)) << "twice";
}

}  // namespace
}  // namespace syno
