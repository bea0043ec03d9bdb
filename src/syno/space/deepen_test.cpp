// Enumerations by depth limit, their files, samples from them, and the groups of reasons.
#include "syno/space/deepen.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <sstream>

#include "syno/quality/quality.h"
#include "syno/space/accept.h"
#include "syno/space/children.h"
#include "syno/space/reasons.h"
#include "syno/space/sampling.h"
#include "syno/space/small_spaces_test.h"
#include "syno/space/space_file.h"
#include "syno/support/error.h"
#include "syno/support/random.h"

namespace syno {
namespace {

SpecificationSource small() {
  SpecificationSource source;
  source.input = "[C_in, H]";
  source.output = "[C_out, H]";
  source.primary = {"C_in: 2", "C_out: 2", "H: 1"};
  source.coefficient = {"k=3: 1"};
  source.bindings = {Binding({{"C_in", 16}, {"C_out", 16}, {"H", 32}})};
  source.limits.max_depth = 5;
  return source;
}

EnumerateOptions deepened() {
  EnumerateOptions options;
  options.max_nodes = 1'000'000;
  return options;
}

TEST(Deepen, IsEnumerateSpaceOneLimitAtATime) {
  const Specification spec(small());
  const Space want = enumerate_space(spec, deepened());
  std::vector<std::int64_t> limits;
  const EnumeratedSpace enumeration = deepen(spec, deepened(), {}, [&](const Space& space) {
    limits.push_back(space.complete_depth);
    EXPECT_EQ(space.complete_depth, space.depth_limit);
  });
  EXPECT_EQ(limits, (std::vector<std::int64_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(enumeration.end, EnumerationEnd::kComplete);
  EXPECT_TRUE(enumeration.space.exhausted);
  EXPECT_EQ(enumeration.space.signature(), want.signature());
  EXPECT_EQ(enumeration.space.complete_depth, want.complete_depth);
  EXPECT_GE(enumeration.space.visited, static_cast<std::int64_t>(want.node_count()));
}

TEST(Deepen, ContinuesAnEnumerationAndKeepsItIfABudgetEnds) {
  const Specification spec(small());
  EnumerateOptions first = deepened();
  first.max_depth = 3;
  const Space before = deepen(spec, first).space;
  EXPECT_EQ(before.complete_depth, 3);
  const EnumeratedSpace whole = deepen(spec, deepened(), {}, {}, &before);
  EXPECT_EQ(whole.space.signature(), enumerate_space(spec, deepened()).signature());
  EnumerateOptions brief = deepened();
  brief.max_nodes = 1;
  const EnumeratedSpace none = deepen(spec, brief, {}, {}, &before);
  EXPECT_EQ(none.end, EnumerationEnd::kBudget);
  EXPECT_EQ(none.space.complete_depth, 3);
  EXPECT_EQ(none.space.signature(), before.signature());
  EXPECT_EQ(enumeration_end_name(none.end, brief), "max_nodes");
  brief.max_memory = 1;
  EXPECT_EQ(enumeration_end_name(none.end, brief), "max_nodes or max_memory");
  const EnumeratedSpace done = deepen(spec, first, {}, {}, &before);
  EXPECT_EQ(done.end, EnumerationEnd::kComplete);
  EXPECT_EQ(done.space.visited, 0);
}

TEST(Deepen, SaysWhyItEnded) {
  const Specification spec(small());
  EnumerateOptions timed = deepened();
  timed.max_seconds = 1e-9;
  EXPECT_EQ(deepen(spec, timed).end, EnumerationEnd::kSeconds);
}

std::string file_of(const Specification& spec, const RuleSet& rules) {
  EnumerateOptions enumeration = deepened();
  enumeration.rules = rules;
  std::ostringstream out;
  save_space(out, deepen(spec, enumeration).space, spec, rules);
  return out.str();
}

std::string error_of(const std::string& file, const Specification& spec, const RuleSet& rules) {
  std::istringstream in(file);
  try {
    load_space(in, "x.space", spec, rules);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(SpaceFile, HoldsTheSpace) {
  const Specification spec(small());
  std::istringstream in(file_of(spec, RuleSet()));
  const Space space = load_space(in, "x.space", spec, RuleSet());
  const Space want = deepen(spec, deepened()).space;
  EXPECT_EQ(space.signature(), want.signature());
  ASSERT_EQ(space.operator_count(), want.operator_count());
  for (std::size_t i = 0; i < space.operator_count(); ++i)
    EXPECT_EQ(space.op(spec, i), want.op(spec, i));
}

TEST(SpaceFile, EveryCutAndEveryWrongByteIsNoticed) {
  const Specification spec(small());
  const std::string file = file_of(spec, RuleSet());
  const std::size_t header = file.find("end\t") + 37;
  for (std::size_t size = 0; size < file.size(); size += size < header + 200 ? 1 : 97)
    EXPECT_NE(error_of(file.substr(0, size), spec, RuleSet()), "") << "cut at " << size;
  CounterRandom random(1, 1);
  for (int tries = 0; tries < 2000; ++tries) {
    std::string damaged = file;
    const std::size_t place = random.below(file.size());
    damaged[place] = static_cast<char>(damaged[place] ^ static_cast<char>(1 + random.below(255)));
    EXPECT_NE(error_of(damaged, spec, RuleSet()), "") << "byte " << place;
  }
}

TEST(SpaceFile, TheDifferenceIsNamed) {
  const std::string file = file_of(Specification(small()), RuleSet());
  const auto other = [&](auto change) {
    SpecificationSource source = small();
    change(source);
    return error_of(file, Specification(source), RuleSet());
  };
  using S = SpecificationSource;
  const std::vector<std::pair<std::string, std::string>> cases = {
      {other([](S& s) { s.output = "[H, C_out]"; }), "in output"},
      {other([](S& s) { s.primary[0] = "C_in: 3"; }),
       "in variable C_in\n  expected: C_in: 3, primary      got: C_in: 2, primary"},
      {other([](S& s) { s.coefficient.push_back("s=2: 1"); }),
       "in variable s\n  expected: s=2: 1, coefficient      got: nothing"},
      {other([](S& s) { s.bindings = {Binding({{"C_in", 16}, {"C_out", 16}, {"H", 16}})}; }),
       "in binding k=3,C_in=16,C_out=16,H=16\n  expected: 1 layer      got: nothing"},
      {other([](S& s) { s.multiplicities = {4}; }), "expected: 4 layers      got: 1 layer"},
      {other([](S& s) { s.limits.max_window = 5; }),
       "in limit max_window\n  expected: 5      got: 30"},
      {other([](S& s) { s.limits.min_fit = 0.5; }), "in limit min_fit\n  expected: 0.5"},
      {other([](S& s) { s.passed_through = {{1, 1}}; }), "in passed through\n  expected: 1:1"},
  };
  for (const auto& [error, message] : cases) {
    EXPECT_NE(error.find("'x.space' was made for another specification"), std::string::npos);
    EXPECT_NE(error.find(message), std::string::npos) << error << "\n\n" << message;
  }
  RuleSet rules;
  rules.set("R6a", false);
  const std::string error = error_of(file, Specification(small()), rules);
  EXPECT_NE(error.find("was made with other rules"), std::string::npos) << error;
  EXPECT_NE(error.find("in rule R6a view-above-share\n  expected: off      got: on"),
            std::string::npos)
      << error;
}

TEST(SpaceFile, AnotherOrderOfDeclarationIsTheSame) {
  const std::string file = file_of(Specification(small()), RuleSet());
  SpecificationSource turned = small();
  std::swap(turned.primary[0], turned.primary[2]);
  EXPECT_EQ(error_of(file, Specification(turned), RuleSet()), "");
}

TEST(Samples, AreDistinctAndTheSameForTheSameSeed) {
  const Specification spec(small());
  const Space space = deepen(spec, deepened()).space;
  const std::size_t all = space.operator_count();
  for (const Stratify by :
       {Stratify::kNone, Stratify::kMacs, Stratify::kParams, Stratify::kPrimitives}) {
    for (const std::uint64_t count : {std::uint64_t{1}, std::uint64_t{7}, std::uint64_t{100'000}}) {
      const std::vector<std::size_t> sampled = sample_operators(space, spec, count, 3, by, 1);
      EXPECT_EQ(sampled.size(), std::min<std::size_t>(count, all));
      EXPECT_EQ(std::set<std::size_t>(sampled.begin(), sampled.end()).size(), sampled.size());
      EXPECT_EQ(sampled, sample_operators(space, spec, count, 3, by, 2));
    }
    EXPECT_NE(sample_operators(space, spec, 7, 3, by), sample_operators(space, spec, 7, 4, by));
  }
  EXPECT_TRUE(sample_operators(space, spec, 0, 1).empty());
  EXPECT_THROW(parse_stratify("cost"), UserError);
  EXPECT_EQ(parse_stratify("params"), Stratify::kParams);
}

TEST(Samples, AreUniformInsideAStratum) {
  const Specification spec(small());
  const Space space = deepen(spec, deepened()).space;
  const std::size_t all = space.operator_count();
  // Of one group alone, every operator is as likely as any other.
  for (const auto& [by, seeds] :
       {std::pair{Stratify::kNone, 20'000}, std::pair{Stratify::kMacs, 400}}) {
    std::map<std::size_t, int> counts;
    for (int seed = 0; seed < seeds; ++seed)
      ++counts[sample_operators(space, spec, 1, static_cast<std::uint64_t>(seed), by)[0]];
    const double expected = static_cast<double>(seeds) / static_cast<double>(all);
    double chi_square = 0;
    for (std::size_t i = 0; i < all; ++i)
      chi_square += (counts[i] - expected) * (counts[i] - expected) / expected;
    const auto freedom = static_cast<double>(all - 1);
    EXPECT_LT(chi_square, freedom + 6 * std::sqrt(2 * freedom));
  }
}

// Not the first sample alone: all orders are alike. Seeds are fixed, so this is the same on every run.
TEST(Samples, OfAFewComeInEveryOrderAlike) {
  constexpr int kSeeds = 24'000;
  constexpr int kOrders = 120;
  std::map<std::vector<std::uint64_t>, int> counts;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const UniformSamples samples(5, seed);
    std::vector<std::uint64_t> order;
    for (std::uint64_t n = 0; n < samples.count(); ++n) order.push_back(samples.at(n));
    ++counts[order];
  }
  EXPECT_EQ(counts.size(), kOrders);
  double chi_square = 0;
  for (const auto& [order, count] : counts) {
    const double off = count - double{kSeeds} / kOrders;
    chi_square += off * off / (double{kSeeds} / kOrders);
  }
  // 99.9 of 100 uniform samples have less, by the chi-square distribution with 119 degrees of freedom.
  EXPECT_LT(chi_square, 172.7);
}

// Every place in the order of samples, for each operator of a space.
TEST(Samples, PutEveryOperatorAnywhereAlike) {
  const Specification spec(small());
  const Space space = deepen(spec, deepened()).space;
  const std::size_t all = space.operator_count();
  ASSERT_GE(all, 20U);
  constexpr int kSeeds = 4000;
  std::vector<int> counts(all * all);
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const std::vector<std::size_t> sampled = sample_operators(space, spec, all, seed);
    for (std::size_t place = 0; place < all; ++place) ++counts[place * all + sampled[place]];
  }
  const double expected = double{kSeeds} / static_cast<double>(all);
  double chi_square = 0;
  for (const int count : counts) chi_square += (count - expected) * (count - expected) / expected;
  const auto freedom = static_cast<double>((all - 1) * (all - 1));
  EXPECT_NEAR(chi_square, freedom, 4 * std::sqrt(2 * freedom));
}

// Each group of operators by cost gives one sample, each multiset of primitives its turn.
TEST(Samples, AreSpreadOverTheirStrata) {
  const Specification spec(small());
  const Space space = deepen(spec, deepened()).space;
  const std::size_t all = space.operator_count();
  constexpr std::size_t kGroups = 6;
  for (const Stratify by : {Stratify::kMacs, Stratify::kParams}) {
    const auto cost = [&](std::size_t index) {
      return by == Stratify::kMacs ? total_macs(space.op(spec, index), spec)
                                   : total_params(space.op(spec, index), spec);
    };
    std::vector<std::int64_t> sorted;
    for (std::size_t i = 0; i < all; ++i) sorted.push_back(cost(i));
    std::sort(sorted.begin(), sorted.end());
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const std::vector<std::size_t> sampled = sample_operators(space, spec, kGroups, seed, by);
      for (std::size_t group = 0; group < kGroups; ++group) {
        EXPECT_GE(cost(sampled[group]), sorted[all * group / kGroups]);
        EXPECT_LE(cost(sampled[group]), sorted[all * (group + 1) / kGroups - 1]);
      }
    }
  }
  const std::size_t kinds = space.operators_by_primitives().size();
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::set<std::array<int, kPrimitiveCount>> met;
    for (const std::size_t i : sample_operators(space, spec, kinds, seed, Stratify::kPrimitives))
      met.insert(space.op(spec, i).graph().primitive_counts());
    EXPECT_EQ(met.size(), kinds);
  }
}

TEST(Reasons, EveryReasonHasAGroupAndWords) {
  using namespace reason;
  for (const Reason name : {kDepth,
                            kChain,
                            kWeights,
                            kCap,
                            kPassedThrough,
                            kIllegalSize,
                            kFit,
                            kBudget,
                            kShiftAmount,
                            kRepeat,
                            kEvenWindow,
                            kUnfoldRatio,
                            kWindow,
                            kCausal,
                            kReductionRatio,
                            kElementWise,
                            kWeightParams,
                            kDropped,
                            kJoined,
                            kNoWeight,
                            kInputUnread,
                            kOutputConstant,
                            kEqualOutputs,
                            kPooling,
                            kReadsFuture,
                            kWastedExpand,
                            kWastedUnfold,
                            reason::kAbsorbedWeight,
                            kWastedReduce,
                            Reason("min_macs"),
                            Reason("max_params"),
                            Reason("repeated_key"),
                            kBoundReason}) {
    const ReasonInfo info = reason_info(name);
    EXPECT_NE(info.group, "other") << name;
    EXPECT_FALSE(info.doc.empty()) << name;
  }
  for (const Rule* rule : catalogue()) {
    const ReasonInfo info = reason_info(std::string(rule->id) + " " + std::string(rule->name));
    EXPECT_EQ(info.group, "rules");
    EXPECT_EQ(info.subgroup, rule_kind_name(rule->kind));
    EXPECT_FALSE(info.doc.empty());
  }
  EXPECT_EQ(reason_info("nothing of the kind").group, "other");
  const std::vector<std::string> groups = reason_groups();
  EXPECT_EQ(groups.front(), "specification");
  EXPECT_EQ(groups.back(), "other");
}

// On every graph that an enumeration keeps, each move is a child or counted once, by a reason that is known.
TEST(Reasons, EveryMoveIsTakenOrCountedByAKnownReason) {
  for (const samples::SmallSpace& sample : samples::small_spaces()) {
    const Specification spec(sample.source);
    const Space space = enumerate_space(spec, deepened());
    ChildGenerator children(spec, RuleSet());
    StateSpace states(spec);
    // As the bound does: blocks that a rule leaves out are no moves.
    states.sizes().restrict_blocks(true, true);
    std::int64_t taken = 0;
    std::int64_t rejected = 0;
    for (std::size_t node = 0; node < space.node_count(); node += 1 + space.node_count() / 200) {
      const Graph graph = space.graph(spec, static_cast<std::uint32_t>(node));
      std::vector<Move> moves;
      states.moves(states.replay(graph), children.rules().guarantees(Guarantee::kPlainDrops),
                   moves);
      if (graph.depth() == spec.limits().max_depth) continue;
      Rejections before = children.rejections();
      const std::vector<Step> steps =
          children.steps({graph, replay(spec, graph)}, spec.limits().max_depth);
      std::int64_t counted = 0;
      for (const auto& [reason, count] : children.rejections()) {
        counted += count - before[reason];
        EXPECT_NE(reason_info(reason).group, "other") << sample.name << ": " << reason;
      }
      EXPECT_EQ(static_cast<std::int64_t>(steps.size()) + counted,
                static_cast<std::int64_t>(moves.size()))
          << sample.name << "\n"
          << graph_text(graph);
      taken += static_cast<std::int64_t>(steps.size());
      rejected += counted;
    }
    EXPECT_GT(taken, 0) << sample.name;
    EXPECT_GT(rejected, 0) << sample.name;
  }
}

TEST(Reasons, WhatAnEnumerationCountsIsKnown) {
  const Specification spec(small());
  for (const auto& [name, count] : deepen(spec, deepened()).space.rejections) {
    EXPECT_GT(count, 0);
    EXPECT_NE(reason_info(name).group, "other") << name;
  }
}

}  // namespace
}  // namespace syno
