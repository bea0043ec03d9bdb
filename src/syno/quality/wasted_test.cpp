#include "syno/quality/wasted.h"

#include <algorithm>
#include <cstdio>
#include <gtest/gtest.h>

#include "syno/interp/interpreter.h"
#include "syno/interp/random_graph.h"
#include "syno/interp/zoo_texts_test.h"

namespace syno {
namespace {

using Exact = Tensor<std::int64_t>;

std::string wasted(const char* steps) {
  std::string result;
  for (const Rejection& rejection :
       wasted_steps(Operator::parse("syno operator 1\n" + std::string(steps)))) {
    result += (result.empty() ? "" : "\n") + std::string(rejection.reason) + ": " + rejection.text;
    EXPECT_FALSE(rejection.undecided);
  }
  return result;
}

TEST(Wasted, NothingInTheZoo) {
  for (const ZooText& zoo : kZooTexts) {
    const auto rejections = wasted_steps(Operator::parse(zoo.text));
    EXPECT_TRUE(rejections.empty()) << zoo.name << ": " << rejections[0].text;
  }
}

TEST(Wasted, ExpandOfReductions) {
  EXPECT_EQ(wasted("out [H]\nin [H]\nreduce k -> r0\nshift r0 1 -> c0\nexpand c0\n"
                   "contract o0:keep\nmatch o0\n"),
            "wasted_expand: expand of 'c0', which depends on reductions only: it only scales the "
            "result\nwasted_reduce: reduction 'r0' reaches neither data nor a weight");
  // An expanded window of an iterator is no plain factor: it counts the terms inside.
  EXPECT_EQ(wasted("out [H, W]\nin [W]\nreduce k -> r0\nunfold o0 r0 -> c0\nexpand c0\n"
                   "contract o1:keep\nmatch o1\n"),
            "wasted_reduce: reduction 'r0' reaches neither data nor a weight");
}

TEST(Wasted, UnfoldOfReductionsOutsideWeights) {
  EXPECT_EQ(wasted("out [H]\nin [C, H]\nreduce C -> r0\nreduce k -> r1\nunfold r0 r1 -> c0\n"
                   "contract o0:keep\nmatch c0 o0\n"),
            "wasted_unfold: unfold of 'r0' and 'r1', which depend on reductions only and are in no "
            "weight");
  EXPECT_EQ(wasted("out [H]\nin [C, H]\nreduce C -> r0\nreduce k -> r1\ncontract o0:keep r1:keep\n"
                   "unfold r0 r1 -> c0\nmatch c0 o0\n"),
            "");
  // Held before a view: the side is made of something in a weight.
  EXPECT_EQ(wasted("out [H]\nin [C, H]\nreduce C -> r0\nreduce k -> r1\ncontract o0:keep r1:keep\n"
                   "shift r1 1 -> c0\nunfold r0 c0 -> c1\nmatch c1 o0\n"),
            "");
}

TEST(Wasted, WeightThatAnotherOneHolds) {
  EXPECT_EQ(wasted("out [C_out]\nin [C_in]\nreduce C_in -> r0\ncontract o0:keep\n"
                   "contract o0:join r0:keep\nmatch r0\n"),
            "absorbed_weight: weight 0 holds only coordinates that weight 1 also holds: their "
            "product is equivalent to weight 1 alone");
  EXPECT_EQ(wasted("out [C_out]\nin [C_in]\nreduce C_in -> r0\ncontract r0:keep o0:keep\n"
                   "contract o0:join r0:keep\nmatch r0\n"),
            "absorbed_weight: weight 0 holds only coordinates that weight 1 also holds: their "
            "product is equivalent to weight 1 alone");
  // A low-rank pair shares one index; each has one of its own.
  EXPECT_EQ(wasted("out [C_out]\nin [C_in]\nreduce k -> r0\nreduce C_in -> r1\n"
                   "contract o0:drop r0:keep\ncontract r0:join r1:keep\nmatch r1\n"),
            "");
}

TEST(Wasted, ReduceThatReachesOneWeightOnly) {
  EXPECT_EQ(wasted("out [C_out]\nin [C_in]\nreduce k -> r0\nreduce C_in -> r1\nsplit o0 r0 -> c0\n"
                   "contract c0:drop r1:keep\nmatch r1\n"),
            "wasted_reduce: reduction 'r1' reaches only one weight: it sums that weight");
}

// A[u] * B[v] with u among v: the same operator with A = 1 and B' = A * B, in exact integers.
TEST(Wasted, AnAbsorbedWeightReallyIs) {
  RandomOptions options;
  options.min_weights = 2;
  options.max_terms = 2000;
  int checked = 0;
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    const RandomOperator sampled = random_operator(seed, options);
    const Graph& graph = sampled.op.graph();
    for (const Rejection& rejection : wasted_steps(sampled.op)) {
      if (rejection.reason != reason::kAbsorbedWeight) continue;
      int small = -1;
      int large = -1;
      ASSERT_EQ(std::sscanf(rejection.text.c_str(),
                            "weight %d holds only coordinates that weight %d", &small, &large),
                2);
      const OperatorShapes shapes = operator_shapes(sampled.op, sampled.values);
      const Exact x = random_integers(shapes.input, seed);
      std::vector<Exact> weights;
      for (const auto& shape : shapes.weights)
        weights.push_back(random_integers(shape, seed + 1 + weights.size()));
      const Exact y = interpret(sampled.op, sampled.values, x, weights);

      Exact& a = weights[static_cast<std::size_t>(small)];
      Exact& b = weights[static_cast<std::size_t>(large)];
      const auto& a_dims = graph.weights()[static_cast<std::size_t>(small)].dims;
      const auto& b_dims = graph.weights()[static_cast<std::size_t>(large)].dims;
      std::vector<std::int64_t> index(b_dims.size(), 0);
      for (std::int64_t& element : b.data) {
        std::int64_t flat = 0;
        for (std::size_t d = 0; d < a_dims.size(); ++d) {
          const auto place = std::find(b_dims.begin(), b_dims.end(), a_dims[d]) - b_dims.begin();
          flat = flat * a.shape[d] + index[static_cast<std::size_t>(place)];
        }
        element *= a.data[static_cast<std::size_t>(flat)];
        for (std::size_t d = index.size(); d-- > 0 && ++index[d] == b.shape[d];) index[d] = 0;
      }
      for (std::int64_t& element : a.data) element = 1;
      EXPECT_EQ(interpret(sampled.op, sampled.values, x, weights), y) << seed << sampled.op.text();
      ++checked;
    }
  }
  EXPECT_GT(checked, 100);
}

TEST(Wasted, PoolingCountsTheReductionsThatNoWeightTells) {
  const auto size = [](std::string_view text) {
    const Operator op = Operator::parse(text);
    return pooling_size(op).text(*op.variables());
  };
  EXPECT_EQ(size(kConv2d.text), "1");
  EXPECT_EQ(size(kPooledConv.text), "s^2");
  // A weight of 07795 holds p = (s*h + q + 1) mod s, which is q, cyclically shifted.
  EXPECT_EQ(size(kOperator07795.text), "1");
  EXPECT_EQ(size(kOperator1.text), "1");
  // The remainder is the Reduce, cyclically shifted.
  EXPECT_EQ(
      size("syno operator 1\nout [C_out, H]\nin [C_in, H]\nreduce C_in -> r0\nreduce k -> r1\n"
           "split o1 r1 -> c0\nshift c0 1 -> c1\nmerge c1 k -> c2 c3\n"
           "contract o0:drop r0:keep c3:drop\nmatch r0 c2\n"),
      "1");
}

}  // namespace
}  // namespace syno
