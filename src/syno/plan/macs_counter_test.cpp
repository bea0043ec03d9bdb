#include "syno/plan/macs_counter.h"

#include <gtest/gtest.h>
#include <set>

#include "syno/interp/random_graph.h"
#include "syno/plan/plan.h"
#include "syno/support/error.h"

namespace syno {
namespace {

std::vector<Values> resolved(const std::vector<Binding>& bindings, const Variables& variables) {
  std::vector<Values> result;
  for (const Binding& binding : bindings) result.push_back(binding.resolve(variables));
  return result;
}

// Counts with one counter an operator, as its table of variables differs.
void compare(const RandomOptions& options, std::uint64_t count) {
  int several = 0;
  std::uint64_t counted = 0;
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    const RandomOperator sampled = random_operator(seed, options);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + sampled.op.text());
    ExtentTable extents(resolved(sampled.bindings, *sampled.op.variables()));
    MacsCounter counter(extents);
    CompactMap map;
    // Where a stride's factor is no integer under some binding, the reference is asked.
    if (!map.read(sampled.op.graph(), sampled.op.match(), extents)) continue;
    ++counted;
    ASSERT_TRUE(counter.count(sampled.op.graph(), map, map.fit));
    std::set<std::int64_t> different;
    for (std::size_t b = 0; b < extents.bindings().size(); ++b) {
      ASSERT_EQ(counter.macs(b), macs(sampled.op, extents.bindings()[b]))
          << sampled.bindings[b].text();
      different.insert(counter.macs(b));
    }
    several += different.size() > 1;
  }
  EXPECT_GT(counted, count * 4 / 5);
  EXPECT_GT(several, static_cast<int>(count / 4));
}

TEST(MacsCounter, CountsWhatTheCheapestOrderCosts) {
  RandomOptions options;
  options.bindings = 5;
  compare(options, 2000);
}

TEST(MacsCounter, CountsWhatTheCheapestOrderCostsOfLongOperators) {
  RandomOptions options;
  options.bindings = 9;
  options.min_steps = 8;
  options.max_steps = 15;
  options.max_reductions = 6;
  options.mix.unfold = 2;
  options.mix.merge = 1.5;
  options.max_terms = 100'000;
  compare(options, 600);
}

TEST(MacsCounter, CountsWhatTheCheapestOrderCostsWithManyViewsThatRepeat) {
  RandomOptions options;
  options.bindings = 3;
  options.min_steps = 5;
  options.max_steps = 12;
  options.mix.expand = 2;
  options.mix.merge = 3;
  options.mix.stride = 1.5;
  options.mix.split = 2;
  options.wide_windows = 0.4;
  options.causal_windows = 0.3;
  compare(options, 1500);
}

TEST(MacsCounter, LeavesNumbersThatAreNotExactToTheReference) {
  const Operator op = Operator::parse(
      "syno operator 1\nout [D]\nin [C]\nreduce C -> r0\ncontract o0:drop r0:keep\nmatch r0\n");
  // 2^26 * 2^26 = 2^52 is exact, 2^27 * 2^27 is not counted.
  ExtentTable extents({Binding::parse("C=67108864, D=67108864").resolve(*op.variables()),
                       Binding::parse("C=134217728, D=134217728").resolve(*op.variables())});
  MacsCounter counter(extents);
  CompactMap map;
  ASSERT_TRUE(map.read(op.graph(), op.match(), extents));
  ASSERT_TRUE(counter.count(op.graph(), map, 1));
  EXPECT_EQ(counter.macs(0), std::int64_t{1} << 52);
  EXPECT_FALSE(counter.count(op.graph(), map, 3));
}

}  // namespace
}  // namespace syno
