#include "syno/rules/rule_test.h"

namespace syno {
namespace {

using namespace rule_test;

constexpr const char* kChannels = "[C: unordered]";

TEST(UnorderedWindow, SlidesOverNoUnorderedInput) {
  const Specification spec(roomy());
  const std::string held = "reduce C -> r\nreduce k -> t\ncontract o0:drop t:keep\n";
  EXPECT_TRUE(rejected_as_input(kUnorderedWindow, spec, kChannels, held + "unfold r t -> c"));
}

TEST(UnorderedWindow, IsSeenThroughSplitsAndShifts) {
  const Specification spec(roomy());
  const std::string held =
      "reduce s^-1*C -> r\nreduce k -> t\ncontract o0:drop t:keep\nunfold r t -> c\n";
  EXPECT_TRUE(rejected_as_input(kUnorderedWindow, spec, kChannels, held + "shift c 1 -> d"));
  EXPECT_TRUE(rejected_as_input(kUnorderedWindow, spec, kChannels, held + "split c o1 -> d"));
  EXPECT_TRUE(rejected_as_input(kUnorderedWindow, spec, kChannels,
                                held + "split o1 c -> d\nshift d 1 -> e"));
}

TEST(UnorderedWindow, SlidesOverOrderedInputs) {
  const Specification spec(roomy());
  EXPECT_FALSE(rejected_as_input(kUnorderedWindow, spec, "[H]",
                                 "reduce k -> t\ncontract o0:drop t:keep\nunfold o1 t -> c"));
}

TEST(UnorderedWindow, LeavesOtherIndicesOfChannelsAlone) {
  const Specification spec(roomy());
  for (const char* lines :
       {"reduce C -> r", "reduce s^-1*C -> r\nsplit r o1 -> c", "reduce C -> r\nshift r 1 -> c"}) {
    EXPECT_FALSE(rejected_as_input(kUnorderedWindow, spec, kChannels, lines)) << lines;
  }
}

}  // namespace
}  // namespace syno
