// The published operators of ResNet-18 are known by their primitives and the shapes of their weights. Each has its like
// in the space of the paper's settings, with every rule on.
#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "syno/space/enumerate.h"
#include "syno/spec/presets.h"

namespace syno {
namespace {

struct Row {
  std::string_view id;
  /// From the output to the input.
  std::string_view primitives;
  /// Dimensions of a weight by commas, weights by semicolons.
  std::string_view weights;

  friend std::ostream& operator<<(std::ostream& out, const Row& row) { return out << row.id; }
};

constexpr std::array kRows{
    Row{"07720", "R R R Sp Sh Sh M C U", "C_in, k_1, s, C_out"},
    Row{"07747", "R R R Sp Sh M Sh C C U", "C_out, s; C_in, k_1, C_out"},
    Row{"07750", "R R R C Sp U Sh Sh M Sp", "s, s^-1*C_in, k_1, C_out"},
    Row{"07754", "R R R R R C U Sh Sp C U",
        "C_out, g, k_1, g^-1*s^-1*C_out; C_in, k_1, g^-1*s^-1*C_out"},
    Row{"07773", "R R R R Sp Sh M C Sp U Sh U", "s^-1*C_in, k_1, k_1, C_out"},
    Row{"07795", "R R R Sh Sp Sh M C C U", "C_out, s; C_in, k_1, C_out"},
    Row{"07802", "R R R R Sp Sh M C U Sh U Sp", "s^-1*C_in, k_1, k_1, C_out"},
    Row{"07821", "R R R Sh Sp Sh M C U", "C_in, k_1, C_out, s"},
    Row{"07826", "R R R R Sp Sh M C Sp U U", "s^-1*C_in, k_1, k_1, C_out"},
    Row{"07835", "R R R R R C U Sh Sp C U Sh",
        "g, k_1, k_1, C_out, g^-1*s^-1*C_out; C_in, k_1, g^-1*s^-1*C_out"},
    Row{"07883", "R R R R R C Sp U Sh C U",
        "g, k_1, k_1, C_out, g^-1*s^-1*C_out; C_in, k_1, g^-1*s^-1*C_out"},
    Row{"07889", "R R R R R C Sp C U U",
        "g, k_1, k_1, C_out, g^-1*s^-1*C_out; C_in, k_1, g^-1*s^-1*C_out"}};

std::map<Primitive, std::int64_t> counts(std::string_view primitives) {
  const std::map<std::string_view, Primitive> names{
      {"R", Primitive::kReduce}, {"C", Primitive::kContraction}, {"Sp", Primitive::kSplit},
      {"M", Primitive::kMerge},  {"Sh", Primitive::kShift},      {"U", Primitive::kUnfold}};
  std::map<Primitive, std::int64_t> found;
  std::istringstream words{std::string(primitives)};
  for (std::string word; words >> word;) ++found[names.at(word)];
  return found;
}

using Shapes = std::vector<std::vector<std::string>>;

Shapes sorted(Shapes shapes) {
  for (auto& shape : shapes) std::sort(shape.begin(), shape.end());
  std::sort(shapes.begin(), shapes.end());
  return shapes;
}

Shapes shapes(std::string_view weights, const Variables& variables) {
  Shapes found;
  std::istringstream all{std::string(weights)};
  for (std::string weight; std::getline(all, weight, ';');) {
    std::istringstream dims{weight};
    found.emplace_back();
    for (std::string dim; std::getline(dims, dim, ',');)
      found.back().push_back(
          Size::parse(dim.substr(dim.find_first_not_of(' ')), variables).text(variables));
  }
  return sorted(found);
}

Shapes shapes(const Operator& op) {
  Shapes found;
  for (const auto& shape : op.weight_shapes()) {
    found.emplace_back();
    for (const Size& size : shape) found.back().push_back(size.text(*op.variables()));
  }
  return sorted(found);
}

// The part of the space that can hold the row: as many of each primitive as it has, and the coefficients that its
// weights name, with s for what is cut and put together again. All limits stay, so its operators are in the whole space.
SpecificationSource narrowed(const Row& row) {
  SpecificationSource source = preset("paper/resnet18");
  auto wanted = counts(row.primitives);
  Limits& limits = source.limits;
  limits.max_depth = 0;
  for (const auto& [primitive, count] : wanted) limits.max_depth += count;
  limits.max_reductions = wanted[Primitive::kReduce];
  limits.max_weights = wanted[Primitive::kContraction];
  limits.max_splits = wanted[Primitive::kSplit];
  limits.max_merges = wanted[Primitive::kMerge];
  limits.max_shifts = wanted[Primitive::kShift];
  limits.max_unfolds = wanted[Primitive::kUnfold];
  std::erase_if(source.coefficient, [&](const std::string& declared) {
    const std::string name = declared.substr(0, declared.find('='));
    return name != "s" && row.weights.find(name) == std::string_view::npos;
  });
  return source;
}

class PublishedRows : public testing::TestWithParam<Row> {};

TEST_P(PublishedRows, HasItsLikeInTheSpace) {
  const Row& row = GetParam();
  const Specification spec(narrowed(row));
  EnumerateOptions options;
  options.max_depth = options.first_depth = static_cast<int>(spec.limits().max_depth);
  options.max_nodes = 1'000'000;
  const Space space = enumerate_space(spec, options);
  ASSERT_EQ(space.complete_depth, spec.limits().max_depth);
  const Shapes wanted = shapes(row.weights, *spec.variables());
  const auto primitives = counts(row.primitives);
  int like = 0;
  for (std::size_t i = 0; i < space.operators.size(); ++i) {
    const Operator op = space.op(spec, i);
    const bool same = std::all_of(primitives.begin(), primitives.end(), [&](const auto& each) {
      return op.graph().count(each.first) == each.second;
    });
    like += same && shapes(op) == wanted ? 1 : 0;
  }
  std::cout << row.id << ": " << like << " of " << space.operators.size() << " operators\n";
  EXPECT_GT(like, 0);
}

INSTANTIATE_TEST_SUITE_P(ResNet18, PublishedRows, testing::ValuesIn(kRows),
                         [](const auto& row) { return "Row" + std::string(row.param.id); });

}  // namespace
}  // namespace syno
