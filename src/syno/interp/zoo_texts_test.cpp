// The interpreter against loops written from the definitions, in exact integers.
#include "syno/interp/zoo_texts_test.h"

#include <algorithm>
#include <functional>
#include <gtest/gtest.h>
#include <numeric>

#include "syno/interp/interpreter.h"
#include "syno/interp/random_graph.h"

namespace syno {
namespace {

using Index = std::vector<std::int64_t>;
using Exact = Tensor<std::int64_t>;

std::int64_t at(const Exact& tensor, const Index& index) {
  std::int64_t flat = 0;
  for (std::size_t d = 0; d < index.size(); ++d) {
    EXPECT_TRUE(0 <= index[d] && index[d] < tensor.shape[d]) << "the definition reads outside";
    flat = flat * tensor.shape[d] + index[d];
  }
  return tensor.data[static_cast<std::size_t>(flat)];
}

// Zero outside.
std::int64_t padded(const Exact& tensor, const Index& index) {
  for (std::size_t d = 0; d < index.size(); ++d) {
    if (index[d] < 0 || index[d] >= tensor.shape[d]) return 0;
  }
  return at(tensor, index);
}

Exact transposed(const Exact& tensor, const std::vector<std::size_t>& order) {
  Index shape;
  for (const std::size_t d : order) shape.push_back(tensor.shape[d]);
  Exact result = zeros<std::int64_t>(shape);
  Index index(shape.size(), 0);
  for (std::int64_t& element : result.data) {
    Index source(shape.size());
    for (std::size_t d = 0; d < order.size(); ++d) source[order[d]] = index[d];
    element = at(tensor, source);
    for (std::size_t d = shape.size(); d-- > 0 && ++index[d] == shape[d];) index[d] = 0;
  }
  return result;
}

struct Definition {
  /// Shapes of the weights as the definition writes them.
  std::vector<Index> weights;
  std::function<std::int64_t(const Index& o, const Exact& x, const std::vector<Exact>& w)> value;
};

// The order of weights and of the dimensions in a weight has no meaning: some order must give the definition's value.
void expect_defined_by(const ZooText& zoo, const Definition& definition) {
  SCOPED_TRACE(std::string(zoo.name));
  const Operator op = Operator::parse(zoo.text);
  const Values values = Binding::parse(zoo.binding).resolve(*op.variables());
  const OperatorShapes shapes = operator_shapes(op, values);
  const Exact x = random_integers(shapes.input, 1, 9);
  std::vector<Exact> weights;
  for (const Index& shape : definition.weights)
    weights.push_back(random_integers(shape, 2 + weights.size(), 9));

  Exact expected = zeros<std::int64_t>(shapes.output);
  Index o(shapes.output.size(), 0);
  for (std::int64_t& element : expected.data) {
    element = definition.value(o, x, weights);
    for (std::size_t d = o.size(); d-- > 0 && ++o[d] == shapes.output[d];) o[d] = 0;
  }

  ASSERT_EQ(shapes.weights.size(), weights.size());
  int fitting = 0;
  int equal = 0;
  std::vector<Exact> candidate(weights.size());
  std::vector<std::size_t> order(weights.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const std::function<void(std::size_t)> assign = [&](std::size_t t) {
    if (t == weights.size()) {
      ++fitting;
      equal += interpret(op, values, x, candidate) == expected;
      return;
    }
    const Exact& weight = weights[order[t]];
    if (weight.shape.size() != shapes.weights[t].size()) return;
    std::vector<std::size_t> dims(weight.shape.size());
    std::iota(dims.begin(), dims.end(), std::size_t{0});
    do {
      bool fits = true;
      for (std::size_t d = 0; d < dims.size(); ++d)
        fits = fits && weight.shape[dims[d]] == shapes.weights[t][d];
      if (!fits) continue;
      candidate[t] = transposed(weight, dims);
      assign(t + 1);
    } while (std::next_permutation(dims.begin(), dims.end()));
  };
  do assign(0);
  while (std::next_permutation(order.begin(), order.end()));
  EXPECT_GE(fitting, 1);
  EXPECT_EQ(equal, 1) << "of " << fitting << " orders";
}

TEST(Zoo, Conv2dIsItsDefinition) {
  expect_defined_by(kConv2d, {{{6, 4, 3, 3}}, [](const Index& o, const Exact& x, const auto& w) {
                                std::int64_t sum = 0;
                                for (int i = 0; i < 4; ++i)
                                  for (int a = 0; a < 3; ++a)
                                    for (int b = 0; b < 3; ++b)
                                      sum += padded(x, {o[0], i, o[2] + a - 1, o[3] + b - 1}) *
                                             at(w[0], {o[1], i, a, b});
                                return sum;
                              }});
}

TEST(Zoo, Conv1x1AndLinearAreTheirDefinitions) {
  expect_defined_by(kConv1x1, {{{6, 4}}, [](const Index& o, const Exact& x, const auto& w) {
                                 std::int64_t sum = 0;
                                 for (int i = 0; i < 4; ++i)
                                   sum += at(x, {o[0], i, o[2], o[3]}) * at(w[0], {o[1], i});
                                 return sum;
                               }});
  expect_defined_by(kLinear, {{{4, 6}}, [](const Index& o, const Exact& x, const auto& w) {
                                std::int64_t sum = 0;
                                for (int i = 0; i < 4; ++i)
                                  sum += at(x, {o[0], o[1], i}) * at(w[0], {i, o[2]});
                                return sum;
                              }});
}

TEST(Zoo, DepthwiseAndSeparableAreTheirDefinitions) {
  expect_defined_by(kDepthwise, {{{4, 3, 3}}, [](const Index& o, const Exact& x, const auto& w) {
                                   std::int64_t sum = 0;
                                   for (int a = 0; a < 3; ++a)
                                     for (int b = 0; b < 3; ++b)
                                       sum += padded(x, {o[0], o[1], o[2] + a - 1, o[3] + b - 1}) *
                                              at(w[0], {o[1], a, b});
                                   return sum;
                                 }});
  expect_defined_by(kSeparable,
                    {{{4, 3, 3}, {6, 4}}, [](const Index& o, const Exact& x, const auto& w) {
                       std::int64_t sum = 0;
                       for (int c = 0; c < 4; ++c)
                         for (int a = 0; a < 3; ++a)
                           for (int b = 0; b < 3; ++b)
                             sum += padded(x, {o[0], c, o[2] + a - 1, o[3] + b - 1}) *
                                    at(w[0], {c, a, b}) * at(w[1], {o[1], c});
                       return sum;
                     }});
}

TEST(Zoo, GroupedConvolutionsAreTheirDefinitions) {
  const auto grouped = [](bool shared) {
    return [shared](const Index& o, const Exact& x, const std::vector<Exact>& w) {
      const std::int64_t group = o[1] / 4;
      const std::int64_t c = o[1] % 4;
      std::int64_t sum = 0;
      for (int r = 0; r < 5; ++r)
        for (int a = 0; a < 3; ++a)
          for (int b = 0; b < 3; ++b)
            sum += padded(x, {o[0], group * 5 + r, o[2] + a - 1, o[3] + b - 1}) *
                   (shared ? at(w[0], {c, r, a, b}) : at(w[0], {group, c, r, a, b}));
      return sum;
    };
  };
  expect_defined_by(kGrouped, {{{2, 4, 5, 3, 3}}, grouped(false)});
  expect_defined_by(kGroupedShared, {{{4, 5, 3, 3}}, grouped(true)});
}

TEST(Zoo, DilatedConvolutionIsItsDefinition) {
  expect_defined_by(kDilated,
                    {{{6, 4, 3, 3}}, [](const Index& o, const Exact& x, const auto& w) {
                       std::int64_t sum = 0;
                       for (int i = 0; i < 4; ++i)
                         for (const int a : {0, 1, 2})
                           for (const int b : {0, 1, 2})
                             sum += padded(x, {o[0], i, o[2] + 3 * a - 4, o[3] + 3 * b - 4}) *
                                    at(w[0], {o[1], i, a, b});
                       return sum;
                     }});
}

TEST(Zoo, PooledConvolutionIsItsDefinition) {
  expect_defined_by(kPooledConv,
                    {{{6, 4, 3, 3}}, [](const Index& o, const Exact& x, const auto& w) {
                       std::int64_t sum = 0;
                       for (int i = 0; i < 4; ++i)
                         for (int a = 0; a < 3; ++a)
                           for (int b = 0; b < 3; ++b) {
                             const std::int64_t h = o[2] / 2 + a - 1;
                             const std::int64_t v = o[3] / 2 + b - 1;
                             std::int64_t pooled = 0;
                             for (int p = 0; p < 2; ++p)
                               for (int q = 0; q < 2; ++q)
                                 pooled += padded(x, {o[0], i, 2 * h + p, 2 * v + q});
                             sum += pooled * at(w[0], {o[1], i, a, b});
                           }
                       return sum;
                     }});
}

TEST(Zoo, PixelShufflesAreTheirDefinitions) {
  expect_defined_by(kPixelShuffle,
                    {{}, [](const Index& o, const Exact& x, const auto&) {
                       return at(x, {o[0], o[1] * 4 + o[2] % 2 * 2 + o[3] % 2, o[2] / 2, o[3] / 2});
                     }});
  expect_defined_by(kPixelUnshuffle,
                    {{}, [](const Index& o, const Exact& x, const auto&) {
                       return at(x, {o[0], o[1] / 4, o[2] * 2 + o[1] / 2 % 2, o[3] * 2 + o[1] % 2});
                     }});
}

TEST(Zoo, ShiftedAndSwappedConvolutionsAreTheirDefinitions) {
  expect_defined_by(kShiftConv, {{{6, 4}}, [](const Index& o, const Exact& x, const auto& w) {
                                   std::int64_t sum = 0;
                                   for (int i = 0; i < 4; ++i)
                                     sum += at(x, {o[0], i, (o[2] + 1) % 5, (o[3] + 1) % 7}) *
                                            at(w[0], {o[1], i});
                                   return sum;
                                 }});
  expect_defined_by(kSwappedConv1d,
                    {{{6, 4, 3}}, [](const Index& o, const Exact& x, const auto& w) {
                       std::int64_t sum = 0;
                       for (int i = 0; i < 4; ++i)
                         for (int a = 0; a < 3; ++a)
                           sum += padded(x, {o[0], i, o[3], o[2] + a - 1}) * at(w[0], {o[1], i, a});
                       return sum;
                     }});
}

TEST(Zoo, ProjectionsAreTheirDefinitions) {
  expect_defined_by(kTiledProjection, {{{4, 6}}, [](const Index& o, const Exact& x, const auto& w) {
                                         std::int64_t sum = 0;
                                         for (int i = 0; i < 4; ++i)
                                           sum += at(x, {o[0], o[1], i}) * at(w[0], {i, o[2] % 6});
                                         return sum;
                                       }});
  expect_defined_by(kGpt2Projection,
                    {{{6, 6, 3}}, [](const Index& o, const Exact& x, const auto& w) {
                       const std::int64_t j = o[2] / 6;
                       const std::int64_t m = o[2] % 6 / 3;
                       const std::int64_t c = o[2] % 3;
                       std::int64_t sum = 0;
                       for (int i = 0; i < 6; ++i)
                         sum += at(x, {o[0], o[1], 6 * m + i}) * at(w[0], {j, i, c});
                       return sum;
                     }});
}

TEST(Zoo, WindowsByRotationAreTheirDefinitions) {
  expect_defined_by(kWindowByRotation,
                    {{{2, 6, 3, 4}}, [](const Index& o, const Exact& x, const auto& w) {
                       std::int64_t sum = 0;
                       for (int q = 0; q < 2; ++q) {
                         const std::int64_t u = (o[2] * 2 + q + 1) % 10 / 2;
                         const std::int64_t p = (o[2] * 2 + q + 1) % 2;
                         for (int i = 0; i < 4; ++i)
                           for (int a = 0; a < 3; ++a)
                             sum +=
                                 padded(x, {o[0], i, u, o[3] + a - 1}) * at(w[0], {p, o[1], a, i});
                       }
                       return sum;
                     }});
  expect_defined_by(kOperator07795,
                    {{{6, 2}, {4, 3, 6}}, [](const Index& o, const Exact& x, const auto& w) {
                       std::int64_t sum = 0;
                       for (int q = 0; q < 2; ++q) {
                         const std::int64_t u = (o[2] * 2 + q + 1) % 10 / 2;
                         const std::int64_t p = (o[2] * 2 + q + 1) % 2;
                         for (int i = 0; i < 4; ++i)
                           for (int a = 0; a < 3; ++a)
                             sum += padded(x, {o[0], i, (o[3] + 1) % 5, u + a - 1}) *
                                    at(w[0], {o[1], p}) * at(w[1], {i, a, o[1]});
                       }
                       return sum;
                     }});
}

// Binding of the three: C_in=8, C_out=12, H=5, g=2, k=3, s=2; C_in/g = 4 and c < 3.
bool inside(std::int64_t h) {
  return 0 <= h && h < 5;
}

TEST(Zoo, Operator1IsItsDefinition) {
  expect_defined_by(
      kOperator1,
      {{{2, 3, 3, 12, 3}, {8, 3, 3}}, [](const Index& o, const Exact& x, const auto& w) {
         const auto z = [&](int group, std::int64_t h, std::int64_t v, int q, int c) {
           std::int64_t sum = 0;
           for (int r = 0; r < 4; ++r)
             sum +=
                 padded(x, {o[0], group * 4 + r, h, v + q - 1}) * at(w[1], {group * 4 + r, q, c});
           return sum;
         };
         std::int64_t sum = 0;
         for (int group = 0; group < 2; ++group)
           for (int a = 0; a < 3; ++a)
             for (int q = 0; q < 3; ++q)
               for (int c = 0; c < 3; ++c)
                 sum += z(group, o[2] + a - 1, o[3], q, c) * at(w[0], {group, a, q, o[1], c});
         return sum;
       }});
}

TEST(Zoo, Operator2IsItsDefinition) {
  expect_defined_by(kOperator2,
                    {{{12, 2, 3, 3}, {8, 3, 3}}, [](const Index& o, const Exact& x, const auto& w) {
                       const auto z = [&](int group, std::int64_t h, std::int64_t v, int c) {
                         std::int64_t sum = 0;
                         for (int r = 0; r < 4; ++r)
                           for (int q = 0; q < 3; ++q)
                             sum += padded(x, {o[0], group * 4 + r, h, v + q - 1}) *
                                    at(w[1], {group * 4 + r, q, c});
                         return sum;
                       };
                       std::int64_t sum = 0;
                       for (int group = 0; group < 2; ++group)
                         for (int a = 0; a < 3; ++a)
                           for (int c = 0; c < 3; ++c) {
                             const std::int64_t p = o[2] + a - 1;
                             if (!inside(p)) continue;
                             sum += z(group, (p + 1) % 5, o[3], c) * at(w[0], {o[1], group, a, c});
                           }
                       return sum;
                     }});
}

TEST(Zoo, StackedConvolutionIsItsDefinition) {
  expect_defined_by(
      kStackedConv,
      {{{2, 3, 3, 12, 3}, {8, 3, 3}}, [](const Index& o, const Exact& x, const auto& w) {
         const auto z = [&](int group, std::int64_t h, std::int64_t v, int c) {
           if (!inside(h) || !inside(v)) return std::int64_t{0};
           std::int64_t sum = 0;
           for (int r = 0; r < 4; ++r)
             for (int b = 0; b < 3; ++b)
               sum +=
                   padded(x, {o[0], group * 4 + r, h, v + b - 1}) * at(w[1], {group * 4 + r, b, c});
           return sum;
         };
         std::int64_t sum = 0;
         for (int group = 0; group < 2; ++group)
           for (int a = 0; a < 3; ++a)
             for (int b = 0; b < 3; ++b)
               for (int c = 0; c < 3; ++c)
                 sum += z(group, o[2] + a - 1, o[3] + b - 1, c) * at(w[0], {group, a, b, o[1], c});
         return sum;
       }});
}

}  // namespace
}  // namespace syno
