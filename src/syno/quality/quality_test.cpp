#include "syno/quality/quality.h"

#include <gtest/gtest.h>

#include "syno/interp/causality.h"
#include "syno/interp/zoo_texts_test.h"
#include "syno/quality/coverage.h"
#include "syno/spec/presets.h"
#include "syno/support/error.h"

namespace syno {
namespace {

Specification specification(const std::string& input, const std::string& output,
                            const std::vector<std::string>& bindings) {
  SpecificationSource source;
  source.input = input;
  source.output = output;
  source.primary = {"N: 2", "T: 2", "C: 2", "D: 2", "H: 4"};
  source.coefficient = {"k: 4", "s: 4"};
  for (const std::string& binding : bindings) source.bindings.push_back(Binding::parse(binding));
  return Specification(source);
}

std::string rejections(const std::string& text, const Specification& spec) {
  std::string result;
  for (const Rejection& rejection :
       quality_rejections(Operator::parse("syno operator 1\n" + text), spec)) {
    result += (result.empty() ? "" : "\n") + std::string(rejection.reason) +
              (rejection.undecided ? "?: " : ": ") + rejection.text;
  }
  return result;
}

const std::vector<std::string> kBinding{"N=1, T=8, C=4, D=6, H=8, k=3, s=2"};
const std::string kUnder = ", under k=3, s=2, C=4, D=6, H=8, N=1, T=8";

TEST(Quality, PublishedOperatorsAreGoodUnderThePapersPreset) {
  SpecificationSource source = preset("paper/resnet18");
  if (source.bindings.empty()) {
    for (const char* layer : {"N=1, C_in=64, C_out=64, H=56", "N=1, C_in=256, C_out=512, H=7"})
      source.bindings.push_back(Binding::parse(layer));
  }
  const Specification spec(source);
  for (const ZooText& zoo : {kOperator1, kOperator2, kOperator07795, kWindowByRotation}) {
    std::string text(zoo.text);
    for (std::size_t at = text.find("reduce k "); at != std::string::npos;
         at = text.find("reduce k "))
      text.replace(at, 9, "reduce k_1 ");
    const auto found = quality_rejections(Operator::parse(text), spec);
    EXPECT_TRUE(found.empty()) << zoo.name << ": " << found[0].reason << ": " << found[0].text;
  }
}

TEST(Quality, AnOperatorNeedsAWeight) {
  EXPECT_EQ(rejections("out [C]\nin [C]\nshift o0 1 -> c0\nmatch c0\n",
                       specification("[C]", "[C]", kBinding)),
            "no_weight: the operator has no weight");
}

TEST(Quality, AStrideIsGoodWhereAWindowCoversItsGaps) {
  const Specification spec = specification("[s*H, D]", "[H, D]", kBinding);
  EXPECT_EQ(
      rejections("out [H, D]\nin [s*H, D]\ncontract o1:keep\nstride o0 s -> c0\nmatch c0 o1\n",
                 spec),
      "input_unread: input element [1, any] is never read" + kUnder);
  EXPECT_EQ(rejections("out [H, D]\nin [s*H, D]\nreduce k -> r0\ncontract o1:keep r0:keep\n"
                       "stride o0 s -> c0\nunfold c0 r0 -> c1\nmatch c1 o1\n",
                       spec),
            "");
  // A window of s around s*i looks one to the left: the last element is never read.
  EXPECT_EQ(rejections("out [H, D]\nin [s*H, D]\nreduce s -> r0\ncontract o1:keep r0:keep\n"
                       "stride o0 s -> c0\nunfold c0 r0 -> c1\nmatch c1 o1\n",
                       spec),
            "input_unread: input element [15, any] is never read" + kUnder);
}

TEST(Quality, QuestionsThatAreTooLargeAreReportedAsUndecided) {
  const Specification large =
      specification("[s*H, D]", "[H, D]", {"N=1, T=8, C=4, D=6, H=2000000, k=3, s=2"});
  EXPECT_EQ(rejections("out [H, D]\nin [s*H, D]\nreduce k -> r0\ncontract o1:keep r0:keep\n"
                       "stride o0 s -> c0\nunfold c0 r0 -> c1\nmatch c1 o1\n",
                       large),
            "input_unread?: cannot decide whether every input element is read: too many points to "
            "check, under k=3, s=2, C=4, D=6, H=2000000, N=1, T=8");
}

TEST(Quality, RepeatedOutputsAreCounted) {
  const std::string tiled =
      "out [s*H]\nin [C]\nreduce C -> r0\nmerge o0 H -> c0 c1\nexpand c0\n"
      "contract c1:drop r0:keep\nmatch r0\n";
  EXPECT_EQ(rejections(tiled, specification("[C]", "[s*H]", kBinding)),
            "equal_outputs: 2 output elements are equal for all inputs, max_repeat=1" + kUnder);
  SpecificationSource source = specification("[C]", "[s*H]", kBinding).source();
  source.limits.max_repeat = 2;
  EXPECT_EQ(rejections(tiled, Specification(source)), "");
  // x[a + b - 1] repeats along the diagonals of the output.
  EXPECT_EQ(
      rejections("out [H, k, D]\nin [H, D]\ncontract o2:keep\nunfold o0 o1 -> c0\nmatch c0 o2\n",
                 specification("[H, D]", "[H, k, D]", kBinding)),
      "equal_outputs: 3 output elements are equal for all inputs, max_repeat=1" + kUnder);
}

TEST(Quality, AnOperatorThatIsAlwaysZeroIsRefused) {
  // s*h - (s*k) div 2 with h < 1 and a window strided from nothing.
  const Operator op = Operator::parse(
      "syno operator 1\nout [D, s]\nin [s^2, D]\nreduce k -> r0\ncontract o0:keep r0:keep\n"
      "stride r0 s -> c0\nunfold o1 c0 -> c1\nstride c1 s -> c2\nmatch c2 o0\n");
  const OutputClasses alive =
      output_classes(op, Binding::parse("D=2, k=1, s=3").resolve(*op.variables()));
  EXPECT_EQ(alive.largest, 1);
  const Operator dead = Operator::parse(
      "syno operator 1\nout [D, H]\nin [s*H, D]\nreduce k -> r0\ncontract o0:keep r0:keep\n"
      "stride o1 s -> c0\nstride r0 k -> c1\nunfold c0 c1 -> c2\nmatch c2 o0\n");
  const Values values = Binding::parse("D=2, H=1, k=3, s=2").resolve(*dead.variables());
  // Taps at 0 + {-4, -1, 2} of an input of two elements.
  EXPECT_EQ(output_classes(dead, values).largest, 0);
  EXPECT_EQ(input_coverage(dead, values).whole, Decision::kNo);
}

TEST(Quality, PoolingStaysWithinItsFactor) {
  EXPECT_EQ(rejections("out [D]\nin [H, s, D]\nreduce H -> r0\nreduce s -> r1\ncontract o0:keep\n"
                       "match r0 r1 o0\n",
                       specification("[H, s, D]", "[D]", kBinding)),
            "max_pooling: 16 elements are summed before any weight (reductions of size s*H), "
            "max_pooling=8" +
                kUnder);
}

TEST(Quality, TheFutureIsNotRead) {
  const Specification spec = specification("[T: causal, D]", "[T: causal, D]", kBinding);
  const std::string head = "out [T: causal, D]\nin [T: causal, D]\n";
  EXPECT_EQ(rejections(head + "reduce k -> r0\ncontract o1:keep r0:keep\n"
                              "unfold o0 r0 causal -> c0\nmatch c0 o1\n",
                       spec),
            "");
  EXPECT_EQ(rejections(head + "reduce k -> r0\ncontract o1:keep r0:keep\nunfold o0 r0 -> c0\n"
                              "match c0 o1\n",
                       spec),
            "reads_future: output position 0 of dimension 0 reads input position 1 of dimension "
            "0" +
                kUnder);
  EXPECT_EQ(rejections(head + "contract o1:keep\nshift o0 1 -> c0\nmatch c0 o1\n", spec),
            "reads_future: output position 0 of dimension 0 reads input position 1 of dimension "
            "0" +
                kUnder);
  // Rotation by -1 brings the last position to the front.
  EXPECT_EQ(rejections(head + "contract o1:keep\nshift o0 -1 -> c0\nmatch c0 o1\n", spec),
            "reads_future: output position 0 of dimension 0 reads input position 7 of dimension "
            "0" +
                kUnder);
  EXPECT_EQ(
      rejections(head + "reduce T -> r0\ncontract o0:drop o1:keep r0:keep\nmatch r0 o1\n", spec),
      "reads_future: output position 0 of dimension 0 reads input position 7 of dimension "
      "0" +
          kUnder);
  // Within blocks of s, the second of each pair is read by both.
  EXPECT_EQ(
      rejections(head + "reduce s -> r0\nmerge o0 s -> c0 c1\ncontract c1:drop o1:keep r0:keep\n"
                        "split c0 r0 -> c2\nmatch c2 o1\n",
                 spec),
      "reads_future: output position 0 of dimension 0 reads input position 1 of dimension "
      "0" +
          kUnder);
  EXPECT_THROW(
      causal_pairs(Operator::parse("syno operator 1\nout [T: causal]\nin [T]\nmatch o0\n")),
      UserError);
}

TEST(Quality, BindingsThatTheOperatorDoesNotFitAreNotChecked) {
  const std::string grouped =
      "out [D]\nin [D]\nreduce s -> r0\nmerge o0 s -> c0 c1\n"
      "contract c1:drop r0:keep\nsplit c0 r0 -> c2\nmatch c2\n";
  EXPECT_EQ(rejections(grouped, specification("[D]", "[D]",
                                              {"N=1, T=8, C=4, D=6, H=8, k=3, s=2",
                                               "N=1, T=8, C=4, D=7, H=8, k=3, s=2"})),
            "");
  EXPECT_EQ(rejections(grouped, specification("[D]", "[D]", {"N=1, T=8, C=4, D=7, H=8, k=3, s=2"})),
            "fit: there is no binding under which all sizes are positive integers");
}

TEST(Quality, UnknownVariablesAreNamed) {
  try {
    quality_rejections(Operator::parse(kConv1x1.text), specification("[D]", "[D]", kBinding));
    FAIL() << "no error";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("unknown variable 'C_out'"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace syno
