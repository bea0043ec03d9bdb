// The checker of many operators against the functions that list everything.
#include "syno/space/accept.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <optional>

#include "syno/interp/random_graph.h"
#include "syno/quality/quality.h"
#include "syno/space/enumerate.h"
#include "syno/spec/presets.h"
#include "syno/support/error.h"
#include "syno/support/random.h"

namespace syno {
namespace {

constexpr const char* kThrows = "throws";

// What the first reason is by definition. The order is that of accept.h.
std::string expected_reason(const Operator& op, const Specification& spec) {
  std::vector<RejectionReason> found;
  try {
    found = quality_and_cost_rejections(op, spec);
  } catch (const UserError&) {
    return kThrows;
  }
  for (const char* name :
       {"no_weight", "wasted_expand", "wasted_unfold", "absorbed_weight", "wasted_reduce", "fit",
        "max_pooling", "min_params", "max_params", "min_macs", "max_macs", "input_unread",
        "output_constant", "equal_outputs", "reads_future"}) {
    for (const RejectionReason& rejection : found) {
      if (rejection.reason == name) return name;
    }
  }
  EXPECT_TRUE(found.empty()) << found.front().reason;
  return "";
}

std::string checked_reason(OperatorChecker& checker, const Operator& op) {
  try {
    return std::string(checker.rejection_reason(op));
  } catch (const UserError&) {
    return kThrows;
  }
}

template <class Count>
std::string number_or_throws(Count count) {
  try {
    return std::to_string(count());
  } catch (const UserError&) {
    return kThrows;
  }
}

// Where the list cannot be made because some number overflows, the checker may know a reason already.
void expect_same(OperatorChecker& checker, const Operator& op, const Specification& spec,
                 std::map<std::string, int>& seen) {
  const std::string expected = expected_reason(op, spec);
  const std::string checked = checked_reason(checker, op);
  ++seen[expected];
  if (expected == kThrows) {
    ASSERT_NE(checked, "") << op.text();
  } else {
    ASSERT_EQ(checked, expected) << op.text();
  }
  if (!expected.empty()) return;
  ASSERT_EQ(number_or_throws([&] { return checker.macs(); }),
            number_or_throws([&] { return total_macs(op, spec); }))
      << op.text();
  ASSERT_EQ(number_or_throws([&] { return checker.params(); }),
            number_or_throws([&] { return total_params(op, spec); }))
      << op.text();
}

// `op` with one sequence: an output dimension and an input dimension marked causal, or at odds only one of them.
Operator with_sequence(const Operator& op, CounterRandom& random) {
  Shape output = op.output();
  Shape input = op.input();
  output[random.below(output.size())].causal = true;
  if (!input.empty() && random.below(20) != 0) input[random.below(input.size())].causal = true;
  Graph graph(op.variables(), output);
  for (const Step& step : op.graph().steps()) graph.apply(step);
  return Operator(graph, input, op.match());
}

bool is_in_denominator(const Operator& op, const std::string& name) {
  const std::size_t v = op.variables()->index(name);
  for (const Shape* shape : {&op.input(), &op.output()}) {
    for (const Dimension& dim : *shape) {
      if (dim.size.power(v) < 0) return true;
    }
  }
  return false;
}

// A specification that asks for the shapes of `sampled`, with limits sampled at random: some let it pass, some do not. Nothing
// where a variable must be a coefficient and is 1 everywhere, which no specification allows.
std::optional<Specification> specification_for(const Operator& op, const RandomOperator& sampled,
                                               CounterRandom& random) {
  SpecificationSource source;
  const Variables& variables = *op.variables();
  source.input = shape_text(op.input(), variables);
  source.output = shape_text(op.output(), variables);
  for (const std::string& name : variables.names()) {
    // A coefficient is not 1 everywhere; a primary may be.
    const bool is_one =
        std::all_of(sampled.bindings.begin(), sampled.bindings.end(),
                    [&](const Binding& binding) { return binding.values().at(name) == 1; });
    if (is_one && is_in_denominator(op, name)) return std::nullopt;
    (is_one ? source.primary : source.coefficient).push_back(name + ": 99");
  }
  for (const Binding& binding : sampled.bindings) {
    std::map<std::string, std::int64_t> values;
    for (const std::string& name : variables.names()) values[name] = binding.values().at(name);
    source.bindings.emplace_back(values);
    source.multiplicities.push_back(1 + static_cast<std::int64_t>(random.below(4)));
  }
  Limits& limits = source.limits;
  limits.max_depth = limits.max_chain_length = 100;
  limits.max_weights = limits.max_reductions = limits.max_merges = 100;
  limits.max_splits = limits.max_shifts = limits.max_strides = limits.max_unfolds = 100;
  limits.max_shift_amount = 100;
  limits.negative_shifts = limits.even_windows = limits.element_wise_weights = true;
  limits.min_unfold_ratio = random.below(3) == 0 ? 1.5 : 0.001;
  limits.max_window = limits.max_dropped = limits.max_joined = 1'000'000;
  limits.max_reduction_ratio = 1e9;
  limits.max_size_variables = limits.max_size_power = 16;
  limits.max_repeat = std::int64_t{1} << random.below(5);
  limits.max_pooling = std::int64_t{1} << (2 * random.below(6));
  limits.min_fit = random.below(2) == 0 ? 1.0 : 0.2;
  if (random.below(4) == 0) limits.min_macs = static_cast<std::int64_t>(random.below(3000));
  if (random.below(4) == 0) limits.max_macs = 1 + static_cast<std::int64_t>(random.below(30'000));
  if (random.below(4) == 0) limits.min_params = static_cast<std::int64_t>(random.below(50));
  if (random.below(4) == 0) limits.max_params = 1 + static_cast<std::int64_t>(random.below(500));
  // No window is empty.
  if (limits.max_macs > 0) limits.min_macs = std::min(limits.min_macs, limits.max_macs);
  if (limits.max_params > 0) limits.min_params = std::min(limits.min_params, limits.max_params);
  return Specification(source);
}

void check_random_operators(const RandomOptions& options, std::uint64_t count, bool sequences,
                            std::map<std::string, int>& seen) {
  std::uint64_t checked = 0;
  for (std::uint64_t seed = 0; checked < count; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const RandomOperator sampled = random_operator(seed, options);
    CounterRandom random(seed, 77);
    const Operator op = sequences ? with_sequence(sampled.op, random) : sampled.op;
    const std::optional<Specification> asked = specification_for(op, sampled, random);
    if (!asked) continue;
    ++checked;
    const Specification& spec = *asked;
    OperatorChecker checker(spec);
    expect_same(checker, op, spec, seen);
    // Its neighbours have the same shapes or other ones, and meet what is remembered.
    for (std::uint64_t other = 0; other < 3; ++other) {
      const RandomOperator neighbour = random_operator(seed + 1 + other, options);
      bool known = true;
      for (const std::string& name : neighbour.op.variables()->names())
        known = known && spec.variables()->find(name).has_value();
      if (known) expect_same(checker, neighbour.op, spec, seen);
    }
    expect_same(checker, op, spec, seen);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(OperatorChecker, SaysOfRandomOperatorsWhatTheListsSay) {
  RandomOptions options;
  options.bindings = 4;
  options.max_terms = 2000;
  options.causal_windows = 0.2;
  std::map<std::string, int> seen;
  check_random_operators(options, 1500, false, seen);
  for (const char* reason :
       {"", "no_weight", "wasted_expand", "wasted_unfold", "absorbed_weight", "wasted_reduce",
        "max_pooling", "min_params", "max_params", "min_macs", "max_macs", "equal_outputs"}) {
    EXPECT_GT(seen[reason], 10) << reason;
  }
}

TEST(OperatorChecker, SaysOfStridedOperatorsWhatTheListsSay) {
  RandomOptions options;
  options.bindings = 3;
  options.max_terms = 2000;
  options.max_reductions = 3;
  options.min_weights = 1;
  options.mix.stride = 2;
  options.mix.unfold = 3;
  options.mix.reduce = 2.5;
  options.mix.contract = 1;
  options.wide_windows = 0.6;
  std::map<std::string, int> seen;
  check_random_operators(options, 1500, false, seen);
  EXPECT_GT(seen["input_unread"], 300);
  EXPECT_GT(seen["output_constant"] + seen["equal_outputs"], 50);
}

TEST(OperatorChecker, SaysOfSequencesWhatTheListsSay) {
  RandomOptions options;
  options.bindings = 3;
  options.max_terms = 2000;
  options.min_weights = 1;
  options.causal_windows = 0.7;
  options.mix.reduce = 1;
  std::map<std::string, int> seen;
  check_random_operators(options, 1500, true, seen);
  EXPECT_GT(seen["reads_future"], 100);
  EXPECT_GT(seen[""], 50);
  EXPECT_GT(seen[kThrows], 20);
}

// Everything up to some depth, whatever its quality, checked by one checker; and again by another in the opposite order.
void check_space(const SpecificationSource& source, std::int64_t depth, std::size_t most,
                 std::map<std::string, int>& seen) {
  const Specification spec(source);
  EnumerateOptions options;
  options.max_depth = options.first_depth = depth;
  options.max_nodes = 200'000;
  options.quality = options.keys = false;
  const Space space = enumerate_space(spec, options);
  ASSERT_GT(space.operator_count(), most / 4);
  const std::size_t stride = std::max<std::size_t>(1, space.operator_count() / most);
  OperatorChecker checker(spec);
  std::vector<std::pair<Operator, std::string>> checked;
  for (std::size_t i = 0; i < space.operator_count(); i += stride) {
    const Operator op = space.op(spec, i).in_table(spec.variables());
    expect_same(checker, op, spec, seen);
    if (testing::Test::HasFatalFailure()) return;
    checked.emplace_back(op, checked_reason(checker, op));
  }
  OperatorChecker backwards(spec);
  for (auto place = checked.rbegin(); place != checked.rend(); ++place) {
    const auto& [op, reason] = *place;
    const FitMask fit = checked_fit(op, spec);
    ASSERT_EQ(backwards.rejection_reason(op, fit), reason) << op.text();
    ASSERT_EQ(backwards.rejection_reason(op.graph(), op.match(), fit), reason) << op.text();
  }
}

TEST(OperatorChecker, SaysOfThePapersSpaceWhatTheListsSay) {
  std::map<std::string, int> seen;
  check_space(preset("paper/resnet18"), 6, 600, seen);
  EXPECT_GT(seen[""], 50);
  EXPECT_GT(seen["min_macs"], 50);
  EXPECT_GT(seen["max_pooling"], 10);
}

TEST(OperatorChecker, SaysOfASpaceThatFitsPartOfANetworkWhatTheListsSay) {
  std::map<std::string, int> seen;
  check_space(preset("paper/efficientnet_v2_s"), 5, 200, seen);
  EXPECT_GT(seen[""], 50);
}

TEST(OperatorChecker, SaysOfASmallStridedSpaceWhatTheListsSay) {
  SpecificationSource source;
  source.input = "[C, s*H]";
  source.output = "[C, H]";
  source.primary = {"C: 2", "H: 2"};
  source.coefficient = {"k=3: 2", "s=2: 2"};
  source.bindings = {Binding::parse("C=2, H=8"), Binding::parse("C=6, H=5")};
  source.limits.max_strides = source.limits.max_repeat = 2;
  source.limits.even_windows = source.limits.element_wise_weights = true;
  source.limits.max_params = 60;
  std::map<std::string, int> seen;
  check_space(source, 4, 1500, seen);
  EXPECT_GT(seen[""], 50);
  EXPECT_GT(seen["input_unread"], 50);
}

TEST(OperatorChecker, SaysOfASmallCausalSpaceWhatTheListsSay) {
  SpecificationSource source;
  source.input = "[T: causal, C]";
  source.output = "[T: causal, C]";
  source.primary = {"T: 1", "C: 2"};
  source.coefficient = {"k=3: 2"};
  source.bindings = {Binding::parse("T=8, C=4"), Binding::parse("T=9, C=1")};
  source.limits.element_wise_weights = source.limits.negative_shifts = true;
  std::map<std::string, int> seen;
  check_space(source, 5, 1500, seen);
  EXPECT_GT(seen[""], 20);
  EXPECT_GT(seen["reads_future"], 50);
}

TEST(OperatorChecker, OverflowIsAnErrorWhereACostIsAskedFor) {
  SpecificationSource source;
  source.input = "[C]";
  source.output = "[D]";
  source.primary = {"C: 9", "D: 9"};
  source.bindings = {Binding::parse("C=4000000000, D=4000000000")};
  source.limits.max_dropped = std::int64_t{1} << 40;
  const Operator op = Operator::parse(
      "syno operator 1\nout [D]\nin [C]\nreduce C -> r0\ncontract o0:drop r0:keep\nmatch r0\n");
  const Specification free(source);
  OperatorChecker checker(free);
  EXPECT_EQ(checker.rejection_reason(op), "");
  EXPECT_THROW(checker.macs(), UserError);
  EXPECT_THROW(checker.params(), UserError);
  source.limits.max_macs = 1000;
  const Specification limited(source);
  OperatorChecker strict(limited);
  EXPECT_THROW(strict.rejection_reason(op), UserError);
}

TEST(OperatorChecker, TakesOperatorsOfAnyTableAndRefusesUnknownVariables) {
  const Specification spec(preset("paper/resnet18"));
  OperatorChecker checker(spec);
  const char* text =
      "syno operator 1\nout [N, C_out: unordered, H, H]\nin [N, C_in: unordered, H, H]\n"
      "reduce C_in -> r0\ncontract o1:drop r0:keep\nmatch o0 r0 o2 o3\n";
  const Operator op = Operator::parse(text);
  EXPECT_EQ(checker.rejection_reason(op), checker.rejection_reason(op.in_table(spec.variables())));
  EXPECT_THROW(checker.rejection_reason(Operator::parse(
                   "syno operator 1\nout [D]\nin [D]\ncontract o0:keep\nmatch o0\n")),
               UserError);
}

}  // namespace
}  // namespace syno
