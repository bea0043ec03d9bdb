#include "syno/rules/forms.h"

#include "syno/rules/rule_test.h"

namespace syno {
namespace {

using namespace rule_test;

std::optional<Graph> kept(const Forms& forms, const Specification& spec, const char* lines) {
  const Situation situation = read(spec, lines);
  return ParsedForms(forms).kept({spec, situation.graph, situation.step});
}

TEST(Forms, KeepTheirLinesOnTopOfAllOtherSteps) {
  const Specification spec(roomy());
  const Forms forms{"stride h S -> t\nshift t D", "shift h D -> u\nstride u S*S"};
  const auto found = kept(forms, spec, "stride o1 s -> a\nshift o2 1 -> b\nshift a 2 -> c");
  ASSERT_TRUE(found);
  const Graph expected =
      rule_test::whole(spec, "shift o2 1 -> b\nshift o1 2 -> u\nstride u s^2 -> c");
  EXPECT_EQ(*found, expected);
}

TEST(Forms, KeepWhetherAWindowIsCausal) {
  const Specification spec(roomy());
  Situation situation = read(spec, "reduce k -> r\nunfold o1 r -> a\nshift a 1 -> b");
  Graph graph = situation.graph.root();
  Step unfold = situation.graph.steps()[1];
  graph.apply(situation.graph.steps()[0]);
  unfold.causal = true;
  graph.apply(unfold);
  const ParsedForms forms({"unfold h r -> t\nshift t D", "shift h D -> u\nunfold u r"});
  const auto found = forms.kept({spec, graph, situation.step});
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->steps().back().causal);
}

TEST(Forms, AreNotThereWhereAWeightHoldsWhatIsBetween) {
  const Specification spec(roomy());
  const Forms forms{"merge h B -> q m\nsplit q m", ""};
  EXPECT_TRUE(kept(forms, spec, "merge o1 s -> q m\nsplit q m -> c"));
  EXPECT_FALSE(kept(forms, spec, "merge o1 s -> q m\nsplit m q -> c"));
  EXPECT_FALSE(kept(forms, spec, "merge o1 s -> q m\nmerge o2 s -> u v\nsplit q v -> c"));
  EXPECT_FALSE(kept(forms, spec, "merge o1 s -> q m\ncontract m:keep\nsplit q m -> c"));
}

TEST(Forms, ThatAreNoneSayWhy) {
  EXPECT_THROW(ParsedForms({"fold a", ""}), UserError);
  EXPECT_THROW(ParsedForms({"", "expand a"}), UserError);
  EXPECT_THROW(ParsedForms({"split a", ""}), UserError);
  EXPECT_THROW(ParsedForms({"contract a:drop", ""}), UserError);
  EXPECT_THROW(ParsedForms({"shift a D", "shift a E"}), UserError);
  EXPECT_THROW(ParsedForms({"expand a\nexpand b", ""}), UserError);
}

}  // namespace
}  // namespace syno
