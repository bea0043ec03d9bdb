#include "syno/trials/random_trials.h"

#include <gtest/gtest.h>

#include "syno/space/small_spaces_test.h"
#include "syno/support/error.h"

namespace syno {
namespace {

using namespace samples;

TrialOptions small_trials(TrialGuide guide, std::int64_t trials) {
  TrialOptions made;
  made.guide = guide;
  made.trials = trials;
  made.seed = 5;
  return made;
}

TEST(RandomTrials, AreTheSameForAnyNumberOfThreads) {
  const Specification spec(small_space("conv1d").source);
  for (const TrialGuide guide :
       {TrialGuide::kNone, TrialGuide::kDistance, TrialGuide::kDistanceOnce, TrialGuide::kBound}) {
    TrialOptions options = small_trials(guide, 700);
    const Trials one = random_trials(spec, options);
    EXPECT_EQ(one.trials, 700);
    EXPECT_GE(one.looked_at, one.steps);
    EXPECT_GE(one.complete, one.valid);
    EXPECT_EQ(one.valid > 0, one.distinct > 0);
    options.threads = 3;
    const Trials three = random_trials(spec, options);
    EXPECT_EQ(
        std::tuple(one.steps, one.looked_at, one.complete, one.valid, one.distinct),
        std::tuple(three.steps, three.looked_at, three.complete, three.valid, three.distinct));
    options.seed = 6;
    EXPECT_NE(random_trials(spec, options).steps, one.steps);
  }
}

// What the paper's ablation shows: without a distance, hardly any trial ends at the input.
TEST(RandomTrials, FindMoreTheBetterTheirGuideIs) {
  SpecificationSource source = preset("paper/gcn");
  source.bindings = {Binding::parse("N=4, H_in=30, H_out=60")};
  const Specification spec(source);
  const auto valid = [&](TrialGuide guide) {
    TrialOptions options = small_trials(guide, 1500);
    options.max_depth = 6;
    return random_trials(spec, options).valid;
  };
  const std::int64_t none = valid(TrialGuide::kNone);
  const std::int64_t distance = valid(TrialGuide::kDistance);
  const std::int64_t bound = valid(TrialGuide::kBound);
  EXPECT_LT(2 * none, distance);
  EXPECT_LT(distance, bound);
}

TEST(RandomTrials, EndWhenTheCallerSaysSo) {
  const Specification spec(small_space("conv1d").source);
  int calls = 0;
  const Trials trials = random_trials(spec, small_trials(TrialGuide::kNone, 1'000'000),
                                      [&](std::int64_t) { return ++calls < 4; });
  EXPECT_EQ(calls, 4);
  EXPECT_LT(trials.trials, 1000);
  EXPECT_GT(trials.trials, 0);
}

TEST(CanonicalRates, FallWithTheNumberOfPrimitivesAndDoNotDependOnThreads) {
  const Specification spec(small_space("square").source);
  TrialOptions options = small_trials(TrialGuide::kDistance, 1200);
  const CanonicalRates rates = canonical_rates(spec, options);
  ASSERT_EQ(rates.rows.size(), 6U);
  std::int64_t samples = 0;
  double last = 1.1;
  for (std::size_t size = 0; size < rates.rows.size(); ++size) {
    const CanonicalRow& row = rates.rows[size];
    samples += row.samples;
    EXPECT_LE(row.listed, row.canonical);
    EXPECT_LE(row.canonical, row.samples);
    EXPECT_LE(row.operators, row.structures);
    EXPECT_LE(row.structures, row.samples);
    if (row.samples < 50) continue;
    const double rate = static_cast<double>(row.canonical) / static_cast<double>(row.samples);
    EXPECT_LT(rate, last) << size;
    last = rate;
  }
  EXPECT_EQ(samples, 1200);
  EXPECT_LT(last, 0.6);
  options.threads = 3;
  const CanonicalRates three = canonical_rates(spec, options);
  for (std::size_t size = 0; size < rates.rows.size(); ++size) {
    EXPECT_EQ(rates.rows[size].samples, three.rows[size].samples);
    EXPECT_EQ(rates.rows[size].canonical, three.rows[size].canonical);
    EXPECT_EQ(rates.rows[size].listed, three.rows[size].listed);
    EXPECT_EQ(rates.rows[size].operators, three.rows[size].operators);
  }
}

TEST(CanonicalRates, AreOneWithoutRules) {
  const Specification spec(small_space("linear").source);
  TrialOptions options = small_trials(TrialGuide::kDistance, 150);
  options.rules = RuleSet::none();
  for (const CanonicalRow& row : canonical_rates(spec, options).rows)
    EXPECT_EQ(row.canonical, row.samples);
}

TEST(RandomTrials, RefuseAnUnknownGuide) {
  EXPECT_EQ(parse_trial_guide("distance-once"), TrialGuide::kDistanceOnce);
  try {
    parse_trial_guide("compass");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("none, distance, distance-once or bound"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace syno
