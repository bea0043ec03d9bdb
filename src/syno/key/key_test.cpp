#include "syno/key/key.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "syno/key/oracle_test.h"
#include "syno/support/error.h"

namespace syno {
namespace {

const VariablesPtr kVariables = Variables::make({"N", "C", "D", "H", "k", "s", "g"});
// Small enough for brute force, and no size divides another by accident.
constexpr const char* kSmall = "N=1, C=4, D=6, H=12, k=3, s=2, g=2";
constexpr const char* kLarge = "N=1, C=64, D=192, H=48, k=3, s=2, g=16";

Values values_of(const char* binding) {
  return Binding::parse(binding).resolve(*kVariables);
}

// "out" and "in" shapes, then steps separated by ';'.
struct Signature {
  std::string out;
  std::string in;
};
Operator op(const Signature& signature, std::string body) {
  std::replace(body.begin(), body.end(), ';', '\n');
  return Operator::parse("syno operator 1\nout " + signature.out + "\nin " + signature.in + "\n" +
                         body)
      .in_table(kVariables);
}

bool equal_keys(const Operator& a, const Operator& b, const char* binding) {
  return semantic_key(a, {values_of(binding)}) == semantic_key(b, {values_of(binding)});
}
bool are_same(const Operator& a, const Operator& b, const char* binding) {
  return oracle::same_operator(oracle::term_set(a, values_of(binding)),
                               oracle::term_set(b, values_of(binding)));
}

void expect_same(const Signature& signature, const std::string& first, const std::string& second) {
  const Operator a = op(signature, first);
  const Operator b = op(signature, second);
  EXPECT_TRUE(are_same(a, b, kSmall)) << first << "\n" << second;
  for (const char* binding : {kSmall, kLarge}) {
    EXPECT_TRUE(equal_keys(a, b, binding))
        << first << "\n"
        << key_normal_form(a, values_of(binding)) << second << "\n"
        << key_normal_form(b, values_of(binding));
  }
}

void expect_different(const Signature& signature, const std::string& first,
                      const std::string& second) {
  const Operator a = op(signature, first);
  const Operator b = op(signature, second);
  EXPECT_FALSE(are_same(a, b, kSmall)) << first << "\n" << second;
  for (const char* binding : {kSmall, kLarge}) {
    EXPECT_FALSE(equal_keys(a, b, binding)) << first << "\n"
                                            << second << "\n"
                                            << key_normal_form(a, values_of(binding));
  }
}

const Signature kLine{"[H]", "[H]"};

TEST(Key, ViewsThatUndoEachOtherAreNothing) {
  expect_same(kLine, "merge o0 s -> q m; split q m -> c; match c", "match o0");
  expect_same({"[H, s]", "[H, s]"}, "split o0 o1 -> c; merge c s -> q m; match q m", "match o0 o1");
  expect_same(kLine, "merge o0 s -> q m; shift m 1 -> a; shift a 1 -> b; split q b -> c; match c",
              "match o0");
}

TEST(Key, MergeOfASplitIsASplitOfMerges) {
  expect_same({"[H, k]", "[s^-1*H, s*k]"}, "split o0 o1 -> c; merge c s*k -> q m; match q m",
              "merge o0 s -> a b; split b o1 -> m; match a m");
  expect_same({"[H, s*k]", "[s*H, k]"}, "split o0 o1 -> c; merge c k -> q m; match q m",
              "merge o1 k -> a b; split o0 a -> q; match q b");
  expect_same({"[s, k, H]", "[s*k*H]"}, "split o0 o1 -> a; split a o2 -> c; match c",
              "split o1 o2 -> a; split o0 a -> c; match c");
}

TEST(Key, WindowsHaveNoOrderOfTheirSides) {
  expect_same(kLine, "reduce H -> r; unfold o0 r -> c; match c",
              "reduce H -> r; unfold r o0 -> c; match c");
  expect_same(kLine, "reduce k -> r; merge o0 k -> q m; split q r -> a; unfold a m -> c; match c",
              "reduce k -> r; unfold o0 r -> c; match c");
}

TEST(Key, RotationsCombine) {
  expect_same(kLine, "merge o0 k -> q m; shift q 1 -> a; split a m -> c; match c",
              "shift o0 3 -> c; match c");
  expect_same(kLine, "shift o0 5 -> a; shift a -4 -> c; match c", "shift o0 1 -> c; match c");
  expect_same({"[H]", "[s*H]"}, "stride o0 s -> a; shift a 2 -> c; match c",
              "shift o0 1 -> a; stride a s -> c; match c");
  expect_same({"[D, H]", "[H]"}, "shift o0 1 -> a; contract a:drop; match o1",
              "contract o0:drop; match o1");
  expect_same({"[D, H]", "[H]"}, "shift o0 1 -> a; expand a; match o1", "expand o0; match o1");
}

TEST(Key, StridesMoveThroughViews) {
  expect_same({"[H, k]", "[s*k*H]"}, "split o0 o1 -> a; stride a s -> c; match c",
              "stride o1 s -> a; split o0 a -> c; match c");
  expect_same({"[H]", "[s*H]"}, "merge o0 k -> q m; stride m s -> a; split q a -> c; match c",
              "stride o0 s -> c; match c");
  expect_same({"[H]", "[k^-1*H, s*k]"}, "stride o0 s -> a; merge a s*k -> q m; match q m",
              "merge o0 k -> q m; stride m s -> c; match q c");
  // Under s = 2: cyclically shifted by s div 2, a window of s over every s-th place is a Split and never
  // masked.
  expect_same({"[H]", "[s*H]"},
              "reduce s -> r; stride o0 s -> a; shift a 1 -> b; unfold b r -> c; match c",
              "reduce s -> r; split o0 r -> c; match c");
}

TEST(Key, WeightDimensionsAreRelabelledFreely) {
  const Signature linear{"[D]", "[C]"};
  const std::string plain = "reduce C -> r; contract o0:drop r:keep; match r";
  expect_same(linear, plain, "reduce C -> r; shift o0 1 -> a; contract a:drop r:keep; match r");
  expect_same(linear, plain,
              "reduce C -> r; merge o0 s -> q m; contract q:drop m:drop r:keep; match r");
  expect_same(linear, plain, "reduce C -> r; stride o0 s -> a; contract a:drop r:keep; match r");
  expect_same(linear, plain, "reduce C -> r; contract o0:keep r:keep; expand o0; match r");
  expect_same({"[D, H]", "[C]"}, "reduce C -> r; split o0 o1 -> a; contract a:drop r:keep; match r",
              "reduce C -> r; contract o0:drop o1:drop r:keep; match r");
}

TEST(Key, ReductionsHaveNoNamesAndNoOrder) {
  expect_same({"[D]", "[C]"}, "reduce C -> r; shift r 1 -> a; contract o0:drop a:keep; match a",
              "reduce C -> r; contract o0:drop r:keep; match r");
  expect_same({"[D]", "[s^-1*C]"},
              "reduce C -> r; merge r s -> q m; contract o0:drop m:drop; match q",
              "reduce s^-1*C -> q; reduce s -> m; contract o0:drop m:drop; match q");
  expect_same({"[H]", "[H]"},
              "reduce s -> a; reduce s -> b; split a b -> c; merge c s -> x y; contract x:drop; "
              "expand y; match o0",
              "reduce s -> a; reduce s -> b; contract a:drop; expand b; match o0");
}

TEST(Key, UnorderedDimensionsArePermutedFreely) {
  const Signature channels{"[D: unordered, H]", "[C: unordered, H]"};
  const std::string plain = "reduce C -> r; contract o0:drop r:keep; match r o1";
  expect_same(channels, plain,
              "reduce C -> r; contract o0:drop r:keep; shift r 1 -> a; match a o1");
  expect_same(channels, plain,
              "reduce s -> a; reduce s^-1*C -> b; contract o0:drop a:keep b:keep; split b a -> c; "
              "match c o1");
  expect_same({"[C: unordered, H]", "[C: unordered, H]"}, "shift o0 1 -> a; match a o1",
              "match o0 o1");
  expect_different({"[C, H]", "[C, H]"}, "shift o0 1 -> a; match a o1", "match o0 o1");
  // A group of channels and a cyclic shift inside the group.
  expect_same({"[C: unordered, H]", "[C: unordered, H]"},
              "merge o0 s -> q m; shift m 1 -> a; split q a -> c; match c o1", "match o0 o1");
}

TEST(Key, WindowByRotationHasOneWeightIndex) {
  // The remainder (q + 1) mod s as the weight's index, or q itself; the row is (s*h + q + 1) div s.
  const Signature rows{"[D: unordered, H]", "[H]"};
  expect_same(rows,
              "reduce s -> r; split o1 r -> a; shift a 1 -> b; merge b s -> q m; "
              "contract o0:drop m:drop; match q",
              "reduce s -> r; contract o0:drop r:keep; split o1 r -> a; shift a 1 -> b; "
              "merge b s -> q m; expand m; match q");
}

TEST(Key, RotationOfAReductionAboveARealIndexIsOneOfItsTopDigit) {
  expect_same({"[D, H]", "[H]"},
              "reduce s -> r; split r o1 -> a; shift a 1 -> b; merge b H -> q c; "
              "contract o0:drop q:drop; match c",
              "reduce s -> r; shift o1 1 -> c; contract o0:drop r:drop; match c");
}

TEST(Key, WeightsHaveNoOrder) {
  expect_same({"[D, H]", "[C, H]"},
              "reduce C -> r; contract o0:keep r:keep; contract o0:join o1:keep; match r o1",
              "reduce C -> r; contract o0:keep o1:keep; contract o0:join r:keep; match r o1");
}

const Signature kConv{"[D: unordered, H, H]", "[C: unordered, H, H]"};

TEST(Key, TransposedMatchingIsAnotherOperator) {
  const std::string conv =
      "reduce C -> r; reduce k -> a; reduce k -> b; contract o0:drop r:keep a:keep b:keep; "
      "unfold o1 a -> u; unfold o2 b -> v; match r ";
  const Operator plain = op(kConv, conv + "u v");
  EXPECT_FALSE(equal_keys(plain, op(kConv, conv + "v u"), kSmall));
  EXPECT_FALSE(equal_keys(plain, op(kConv, conv + "v u"), kLarge));
  expect_different({"[H, H]", "[H, H]"}, "reduce k -> r; unfold o0 r -> u; match u o1",
                   "reduce k -> r; unfold o0 r -> u; match o1 u");
}

TEST(Key, DirectionsAndBordersMatter) {
  expect_different(kLine, "shift o0 1 -> c; match c", "shift o0 -1 -> c; match c");
  expect_different(kLine, "reduce k -> r; unfold o0 r -> u; shift u 1 -> c; match c",
                   "reduce k -> r; shift o0 1 -> u; unfold u r -> c; match c");
  expect_different(kLine, "reduce k -> r; unfold o0 r -> c; match c",
                   "reduce k -> r; unfold o0 r causal -> c; match c");
  expect_different({"[H]", "[H]"}, "merge o0 s -> q m; split m q -> c; match c", "match o0");
}

TEST(Key, AWindowOverAMixedRadixSeesItsOrder) {
  // They coincide only where the window exceeds what it slides over.
  const Signature grouped{"[C, H]", "[H, s*g]"};
  const std::string body =
      "reduce k^2 -> w; reduce g -> r; merge o0 s^-1*C -> a b; "
      "contract b:drop w:keep r:keep; ";
  const Operator first = op(grouped, body + "split a r -> c; unfold c w -> u; match o1 u");
  const Operator second = op(grouped, body + "split r a -> c; unfold c w -> u; match o1 u");
  EXPECT_FALSE(equal_keys(first, second, kLarge));
}

TEST(Key, CutsThatDoNotDivideEachOtherAreNotIndependent) {
  // W1[o mod 3] W2[o mod 2] and W1[o mod 3] W2[(o div 3) mod 2]: in the first the two are cuts 3
  // and 2 of one base.
  const std::string third = "merge o0 k -> q m; contract m:keep; ";
  expect_different(
      kLine, third + "split q m -> i; merge i s -> x y; contract y:keep; split x y -> c; match c",
      third + "merge q s -> x y; contract y:keep; split x y -> z; split z m -> c; match c");
  // {o mod 3, o mod 2} tells o mod 6 apart; {o mod 2} alone is not contained in {o mod 3}.
  expect_different({"[H, D]", "[H, D]"},
                   "merge o0 k -> q m; contract m:keep o1:keep; split q m -> c; match c o1",
                   "merge o0 s -> q m; contract m:keep o1:keep; split q m -> c; match c o1");
}

TEST(Key, ExtentsOfOneDisappear) {
  const Signature conv{"[D: unordered, H]", "[C: unordered, H]"};
  const Operator window = op(
      conv,
      "reduce C -> r; reduce k -> a; contract o0:drop r:keep a:keep; unfold o1 a -> u; match r u");
  const Operator pointwise = op(conv, "reduce C -> r; contract o0:drop r:keep; match r o1");
  EXPECT_TRUE(equal_keys(window, pointwise, "N=1, C=4, D=6, H=12, k=1, s=2, g=2"));
  EXPECT_FALSE(equal_keys(window, pointwise, kSmall));
  const Operator grouped =
      op({"[D: unordered, H]", "[s*g: unordered, H]"},
         "reduce g -> r; reduce s -> q; split r q -> c; contract o0:drop c:keep; match c o1");
  const Operator rotated = op({"[D: unordered, H]", "[s*g: unordered, H]"},
                              "reduce g -> r; reduce s -> q; shift r 1 -> t; contract o0:drop "
                              "t:keep q:keep; split q t -> c; match c o1");
  for (const char* binding :
       {kSmall, "N=1, C=4, D=6, H=12, k=3, s=2, g=1", "N=1, C=4, D=6, H=12, k=3, s=1, g=4"})
    EXPECT_TRUE(equal_keys(grouped, rotated, binding)) << binding;
}

TEST(Key, DependsOnTheSetOfBindingsOnly) {
  const Operator conv = op(kConv,
                           "reduce C -> r; reduce k -> a; contract o0:drop r:keep a:keep; "
                           "unfold o1 a -> u; match r u o2");
  const Values small = values_of(kSmall);
  const Values large = values_of(kLarge);
  EXPECT_EQ(semantic_key(conv, {small, large}), semantic_key(conv, {large, small}));
  EXPECT_EQ(semantic_key(conv, {small, large, small}), semantic_key(conv, {large, small}));
  EXPECT_NE(semantic_key(conv, {small, large}), semantic_key(conv, {large}));
  // Two operators that trade places under two bindings stay apart.
  const Operator by_k = op(kLine, "reduce k -> r; contract r:drop; match o0");
  const Operator by_s = op(kLine, "reduce s -> r; contract r:drop; match o0");
  const Values one = values_of("N=1, C=4, D=6, H=12, k=3, s=2, g=2");
  const Values other = values_of("N=1, C=4, D=6, H=12, k=2, s=3, g=2");
  EXPECT_NE(semantic_key(by_k, {one, other}), semantic_key(by_s, {one, other}));
}

TEST(Key, DoesNotDependOnTheOrderOfDeclarationsAndSteps) {
  const Operator a =
      op(kConv,
         "reduce C -> r; reduce k -> a; reduce k -> b; contract o0:drop r:keep a:keep b:keep; "
         "unfold o1 a -> u; unfold o2 b -> v; match r u v");
  const Operator b =
      op(kConv,
         "reduce k -> x; reduce k -> y; reduce C -> i; contract o0:drop y:keep x:keep i:keep; "
         "unfold o2 x -> v; unfold o1 y -> u; match i u v");
  EXPECT_EQ(semantic_key(a, {values_of(kSmall)}), semantic_key(b, {values_of(kSmall)}));
  const VariablesPtr shuffled = Variables::make({"s", "g", "k", "H", "D", "N", "C"});
  EXPECT_EQ(semantic_key(a.in_table(shuffled), {Binding::parse(kSmall).resolve(*shuffled)}),
            semantic_key(a, {values_of(kSmall)}));
}

TEST(Key, RecordsThatABindingDoesNotFit) {
  const Operator merged = op(kLine, "merge o0 k -> q m; shift q 1 -> a; split a m -> c; match c");
  const char* odd = "N=1, C=4, D=6, H=10, k=3, s=2, g=2";
  EXPECT_EQ(key_normal_form(merged, values_of(odd)), "unfit\n");
  EXPECT_NE(semantic_key(merged, {values_of(odd)}), semantic_key(merged, {values_of(kSmall)}));
}

TEST(Key, ZeroOperatorsAreOne) {
  // Under N = 1 the strided index is always 0, and a window of 2 around 0 reads at -1: every term
  // is masked.
  const Signature rows{"[N, H]", "[N, H]"};
  const std::string masked = "reduce N -> r; stride o0 s -> c; unfold r c -> u; ";
  const Operator zero = op(rows, masked + "match u o1");
  const Operator rotated = op(rows, masked + "shift o1 1 -> a; match u a");
  EXPECT_EQ(key_normal_form(zero, values_of(kSmall)), "zero\n");
  EXPECT_TRUE(equal_keys(zero, rotated, kSmall));
  const char* larger = "N=3, C=4, D=6, H=12, k=3, s=2, g=2";
  EXPECT_FALSE(equal_keys(zero, rotated, larger));
  EXPECT_FALSE(equal_keys(zero, op(rows, "match o0 o1"), kSmall));
}

TEST(Key, FallsBackToTheStructureWhenTooSymmetric) {
  // A weight for each pair of six equal reductions: 720 labellings, and no colour tells them apart.
  std::string body;
  for (int i = 0; i < 6; ++i) body += "reduce k -> r" + std::to_string(i) + ";";
  for (int i = 0; i < 6; ++i) {
    for (int j = i + 1; j < 6; ++j)
      body += "contract r" + std::to_string(i) + ":keep r" + std::to_string(j) + ":keep;";
  }
  for (int i = 0; i < 6; ++i) body += "expand r" + std::to_string(i) + ";";
  const Operator complete = op(kLine, body + "match o0");
  EXPECT_EQ(key_normal_form(complete, values_of(kSmall)), "fallback: leaves\n");
  EXPECT_EQ(semantic_key(complete, {values_of(kSmall)}),
            semantic_key(complete, {values_of(kSmall)}));
  EXPECT_FALSE(equal_keys(complete, op(kLine, "match o0"), kSmall));
}

TEST(Key, ABindingOfAnotherTableIsRefused) {
  const Operator identity = op(kLine, "match o0");
  try {
    semantic_key(identity, {{1, 2}});
    FAIL() << "accepted";
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(),
                 "a binding has 2 values for 7 variables\n  in the semantic key\n"
                 "  hint: give one value a variable, in the order of the operator's variables");
  }
}

TEST(Key, NormalFormIsReadable) {
  const Operator conv =
      op(kConv,
         "reduce C -> r; reduce k -> a; reduce k -> b; contract o0:drop r:keep a:keep b:keep; "
         "unfold o1 a -> u; unfold o2 b -> v; match r u v");
  const std::string text = key_normal_form(conv, values_of(kLarge));
  EXPECT_NE(text.find("weight {"), std::string::npos) << text;
  EXPECT_NE(text.find("dim 3 unordered {"), std::string::npos) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 10) << text;
}

}  // namespace
}  // namespace syno
