#include "syno/emit/cpp/phases.h"

#include <gtest/gtest.h>

#include "syno/emit/cpp/cpp.h"
#include "syno/interp/zoo_texts_test.h"
#include "syno/support/json.h"

namespace syno {
namespace {

json::Value phases(const ZooText& zoo, std::string_view binding = {}) {
  const Operator op = Operator::parse(zoo.text);
  const std::string_view sizes = binding.empty() ? zoo.binding : binding;
  return json::read(
      cpp_phases(plan(op, Binding::parse(sizes).resolve(*op.variables())), CppOptions{}),
      "the phases");
}

std::int64_t number(const json::Value& value, std::string_view name) {
  return value.field(name)->as<json::Number>()->whole.value();
}

TEST(Phases, AConvolutionIsOneProductWithItsPanel) {
  const json::Value found = phases(kConv2d, "N=2, C_in=32, C_out=64, H=28, W=28, k=3");
  EXPECT_EQ(number(found, "batch"), 2);
  EXPECT_EQ(number(found, "input"), 32 * 28 * 28);
  EXPECT_EQ(number(found, "weights"), 64 * 32 * 9);
  const json::List& list = *found.field("phases")->as<json::List>();
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(number(list[0], "stored"), 64 * 28 * 28);
  const json::Value& product = *list[0].field("product");
  EXPECT_EQ(number(product, "rows"), 64);
  EXPECT_EQ(number(product, "columns"), 28 * 28);
  EXPECT_EQ(number(product, "terms") * number(product, "taps"), 32 * 9);
  EXPECT_FALSE(*product.field("in_place")->as<bool>());
  EXPECT_GT(number(product, "panel"), 0);
  const json::Value& loops = *list[0].field("loops");
  const json::List& operands = *loops.field("operands")->as<json::List>();
  ASSERT_EQ(operands.size(), 1u);
  EXPECT_EQ(*operands[0].field("lanes")->as<std::string>(), "partial");
  EXPECT_GT(number(operands[0], "conditions"), 0);
}

// Loops reach every element that the phase stores, in a panel of a product those of the panel.
TEST(Phases, LoopsCoverWhatIsStored) {
  for (const ZooText& zoo : kZooTexts) {
    const json::Value found = phases(zoo);
    for (const json::Value& phase : *found.field("phases")->as<json::List>()) {
      const json::Value& loops = *phase.field("loops");
      const json::Value& product = *phase.field("product");
      EXPECT_FALSE(loops.is_null() && product.is_null()) << zoo.name;
      if (loops.is_null()) continue;
      const std::int64_t elements =
          number(loops, "count") * number(loops, "lane") * number(loops, "tile");
      EXPECT_EQ(elements, product.is_null() ? number(phase, "stored") : number(product, "panel"))
          << zoo.name;
    }
  }
}

}  // namespace
}  // namespace syno
