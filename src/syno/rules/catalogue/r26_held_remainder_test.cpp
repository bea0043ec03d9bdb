#include <string>

#include "syno/rules/rule_test.h"

namespace syno {
namespace {

using namespace rule_test;

TEST(HeldRemainder, TheWeightHoldsTheRemainder) {
  const Specification spec(roomy());
  const char* lines =
      "reduce s -> r\ncontract o0:drop r:keep\nsplit o1 r -> c\nshift c 1 -> d\nmerge d s -> q m";
  EXPECT_TRUE(rejected(kHeldRemainder, spec, lines));
  EXPECT_TRUE(keeps(kHeldRemainder, spec, lines,
                    "reduce s -> r\nsplit o1 r -> c\nshift c 1 -> d\nmerge d s -> q m\n"
                    "contract o0:drop m:keep"));
}

TEST(HeldRemainder, AllWeightsThatHoldThePartDo) {
  const Specification spec(roomy());
  const char* lines =
      "reduce s -> r\ncontract o0:keep r:keep\ncontract o0:join r:keep o2:keep\nsplit o1 r -> c\n"
      "shift c 1 -> d\nmerge d s -> q m";
  EXPECT_TRUE(rejected(kHeldRemainder, spec, lines));
  EXPECT_TRUE(keeps(kHeldRemainder, spec, lines,
                    "reduce s -> r\nsplit o1 r -> c\nshift c 1 -> d\nmerge d s -> q m\n"
                    "contract o0:keep m:keep\ncontract o0:join m:keep o2:keep"));
}

TEST(HeldRemainder, StandsForSeveralParts) {
  const Specification spec(roomy());
  const std::string views = "split o1 r -> c\nsplit c t -> d\nshift d 1 -> e\n";
  const std::string reduces = "reduce s -> r\nreduce k -> t\n";
  const std::string lines =
      reduces + "contract o0:drop r:keep t:keep\n" + views + "merge e k*s -> q m";
  EXPECT_TRUE(rejected(kHeldRemainder, spec, lines));
  EXPECT_TRUE(keeps(kHeldRemainder, spec, lines,
                    reduces + views + "merge e k*s -> q m\ncontract o0:drop m:keep"));
  EXPECT_FALSE(rejected(kHeldRemainder, spec,
                        reduces + "contract o0:drop r:keep\n" + views + "merge e k*s -> q m"))
      << "a weight holds one of them only";
}

TEST(HeldRemainder, NeedsAShiftAndTheBlockOfTheSplit) {
  const Specification spec(roomy());
  EXPECT_FALSE(
      rejected(kHeldRemainder, spec,
               "reduce s -> r\ncontract o0:drop r:keep\nsplit o1 r -> c\nmerge c s -> q m"));
  EXPECT_FALSE(rejected(kHeldRemainder, spec,
                        "reduce s -> r\ncontract o0:drop r:keep\nsplit o1 r -> c\nshift c 1 -> d\n"
                        "merge d k -> q m"));
  EXPECT_FALSE(rejected(kHeldRemainder, spec,
                        "reduce s -> r\nsplit o1 r -> c\nshift c 1 -> d\nmerge d s -> q m"));
}

TEST(HeldRemainder, TheMajorPartMustNotNeedTheWeight) {
  const Specification spec(roomy());
  EXPECT_FALSE(rejected(kHeldRemainder, spec,
                        "reduce s -> r\ncontract o0:drop o1:keep r:keep\nsplit o1 r -> c\n"
                        "shift c 1 -> d\nmerge d s -> q m"));
}

}  // namespace
}  // namespace syno
