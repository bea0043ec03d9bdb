#include <array>
#include <string>
#include <vector>

#include "syno/rules/rule_test.h"

namespace syno {
namespace {

using namespace rule_test;

constexpr const char* kInput = "[C: unordered]";

TEST(PermutedInput, RefusesRotations) {
  const Specification spec(roomy());
  EXPECT_TRUE(rejected_as_input(kPermutedInput, spec, kInput,
                                "reduce k -> r\nsplit r o1 -> c\nshift c 1 -> d"));
  EXPECT_TRUE(rejected_as_input(kPermutedInput, spec, kInput,
                                "reduce k -> r\nshift o1 1 -> u\nsplit r u -> c"));
  EXPECT_FALSE(rejected_as_input(kPermutedInput, spec, kInput,
                                 "shift o1 1 -> u\nreduce k -> r\nunfold u r -> c"));
}

TEST(PermutedInput, KeepsOneOrderOfTheParts) {
  const Specification spec(roomy());
  EXPECT_NE(rejected_as_input(kPermutedInput, spec, kInput, "reduce k -> r\nsplit r o1 -> c"),
            rejected_as_input(kPermutedInput, spec, kInput, "reduce k -> r\nsplit o1 r -> c"));
  const std::vector<std::string> parts{"a", "b", "o1"};
  int kept = 0;
  for (const auto& order : {std::array{0, 1, 2}, std::array{0, 2, 1}, std::array{1, 0, 2},
                            std::array{1, 2, 0}, std::array{2, 0, 1}, std::array{2, 1, 0}}) {
    const std::string first = parts[static_cast<std::size_t>(order[0])];
    const std::string second = parts[static_cast<std::size_t>(order[1])];
    const std::string third = parts[static_cast<std::size_t>(order[2])];
    // A weight holds one of the Reduces, so they are not one.
    const std::string start = "reduce k -> a\nreduce s -> b\ncontract o0:drop a:keep\nsplit " +
                              first + " " + second + " -> c\nsplit ";
    kept += rejected_as_input(kPermutedInput, spec, kInput, start + "c " + third + " -> d") ? 0 : 1;
    kept += rejected_as_input(kPermutedInput, spec, kInput, start + third + " c -> d") ? 0 : 1;
  }
  EXPECT_EQ(kept, 1);
}

TEST(PermutedInput, TwoReducesWithTheSameWeightsAreOne) {
  const Specification spec(roomy());
  EXPECT_TRUE(rejected_as_input(kPermutedInput, spec, kInput,
                                "reduce k -> a\nreduce s -> b\nsplit a o1 -> c\nsplit c b -> d"));
  EXPECT_TRUE(rejected_as_input(
      kPermutedInput, spec, kInput,
      "reduce k -> a\nreduce s -> b\nsplit a o1 -> c\nsplit c b -> d\ncontract o0:drop d:keep"));
}

TEST(PermutedInput, WhatTheSameWeightsHoldIsOneSplit) {
  const Specification spec(roomy());
  const std::string start = "reduce k -> a\nreduce s -> b\n";
  // Both weights hold the whole index: the weight takes it at the end.
  EXPECT_TRUE(rejected_as_input(
      kPermutedInput, spec, kInput,
      start + "contract o0:drop b:keep o1:keep\nsplit b a -> c\nsplit c o1 -> d"));
  const std::array<std::string, 4> forms{
      "split b o1 -> c\ncontract o0:drop c:keep\nsplit c a -> d",
      "split b o1 -> c\ncontract o0:drop c:keep\nsplit a c -> d",
      "split o1 b -> c\ncontract o0:drop c:keep\nsplit c a -> d",
      "split o1 b -> c\ncontract o0:drop c:keep\nsplit a c -> d"};
  int kept = 0;
  for (const std::string& form : forms)
    kept += rejected_as_input(kPermutedInput, spec, kInput, start + form) ? 0 : 1;
  EXPECT_EQ(kept, 1);
}

}  // namespace
}  // namespace syno
