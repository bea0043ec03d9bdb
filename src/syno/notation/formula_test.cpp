#include "syno/notation/formula.h"

#include <gtest/gtest.h>

#include "syno/interp/interpreter.h"
#include "syno/interp/random_graph.h"
#include "syno/interp/zoo_texts_test.h"
#include "syno/notation/evaluator_test.h"

namespace syno {
namespace {

void expect_true(const Operator& op, const Binding& binding, std::uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + formula(op) + "\n" + op.text() +
               binding.text());
  const Values values = binding.resolve(*op.variables());
  const OperatorShapes shapes = operator_shapes(op, values);
  const Exact x = random_integers(shapes.input, seed);
  std::vector<Exact> weights;
  for (const auto& shape : shapes.weights)
    weights.push_back(random_integers(shape, seed + 1 + weights.size()));
  Named variables;
  for (std::size_t v = 0; v < values.size(); ++v) variables[op.variables()->name(v)] = values[v];
  ASSERT_EQ(Evaluator(formula(op), variables, x, weights).run(shapes.output),
            interpret(op, values, x, weights));
}

TEST(Formula, SaysWhatTheOperatorComputes) {
  RandomOptions options;
  options.max_terms = 800;
  options.causal_windows = 0.2;
  options.wide_windows = 0.3;
  options.scalar_input = true;
  int masked = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    const RandomOperator sampled = random_operator(seed, options);
    masked += formula(sampled.op).find(" where ") != std::string::npos;
    expect_true(sampled.op, sampled.binding, seed);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(masked, 100);
}

TEST(Formula, WritesShiftsOfShiftsAsOne) {
  const auto of = [](int a, int b) {
    std::vector<std::string> texts;
    for (const std::string& text : shifted_twice(a, b))
      texts.push_back(formula(Operator::parse(text)));
    return texts;
  };
  EXPECT_EQ(of(1, 1),
            (std::vector<std::string>{"y[h] = x[(h+2) mod H]",
                                      "y[h] = sum(a:k) x[(h+a-k/2+2) mod H] where 0 <= h+a-k/2 < H",
                                      "y[h] = x[h/s,((((h mod s)+1) mod s)+1) mod s]"}));
  EXPECT_EQ(of(1, -1), (std::vector<std::string>{
                           "y[h] = x[h]", "y[h] = sum(a:k) x[h+a-k/2] where 0 <= h+a-k/2 < H",
                           "y[h] = x[h/s,((((h mod s)+1) mod s)-1) mod s]"}));
  const Binding binding = Binding::parse("H=12, s=4, k=3");
  for (int a = -5; a <= 5; ++a) {
    for (int b = -5; b <= 5; ++b) {
      for (const std::string& text : shifted_twice(a, b)) {
        if (a != 0 && b != 0) expect_true(Operator::parse(text), binding, 1);
      }
    }
  }
}

TEST(Formula, OfTheZooSaysWhatItComputes) {
  for (const ZooText& zoo : kZooTexts)
    expect_true(Operator::parse(zoo.text), Binding::parse(zoo.binding), 1);
}

// Weights stand in the operator's canonical order.
TEST(Formula, ReadsAsOneWouldWriteIt) {
  const auto of = [](const ZooText& zoo) { return formula(Operator::parse(zoo.text)); };
  EXPECT_EQ(of(kConv2d).substr(0, of(kConv2d).find(" *")),
            "y[n,o,h,w] = sum(i:C_in, a:k, b:k) x[n,i,h+a-k/2,w+b-k/2]");
  EXPECT_EQ(of(kConv1x1), "y[n,o,h,w] = sum(i:C_in) x[n,i,h,w] * w0[o,i]");
  EXPECT_EQ(of(kLinear), "y[n,t,o] = sum(i:C_in) x[n,t,i] * w0[o,i]");
  EXPECT_EQ(of(kDepthwise), "y[n,c,h,w] = sum(a:k, b:k) x[n,c,h+a-k/2,w+b-k/2] * w0[c,a,b]");
  EXPECT_EQ(of(kGrouped).substr(0, of(kGrouped).find(" *")),
            "y[n,o,h,w] = sum(i:C_in/g, a:k, b:k) "
            "x[n,o/(C_out/g)*C_in/g+i,h+a-k/2,w+b-k/2]");
  EXPECT_EQ(of(kPixelShuffle), "y[n,o,h,w] = x[n,(o*s+(h mod s))*s+(w mod s),h/s,w/s]");
  EXPECT_EQ(of(kDilated).substr(0, of(kDilated).find(" *")),
            "y[n,o,h,w] = sum(i:C_in, a:k, b:k) x[n,i,h+a*k-k^2/2,w+b*k-k^2/2]");
  EXPECT_EQ(of(kShiftConv), "y[n,o,h,w] = sum(i:C_in) x[n,i,(h+1) mod H,(w+1) mod W] * w0[o,i]");
  EXPECT_EQ(of(kPooledConv).substr(0, of(kPooledConv).find(" *")),
            "y[n,o,h,w] = sum(i:C_in, a:k, b:s, c:k, d:s) "
            "x[n,i,(h/s+a-k/2)*s+b,(w/s+c-k/2)*s+d]");
  EXPECT_EQ(of(kOperator1).substr(0, of(kOperator1).find(" *")),
            "y[n,o,h,w] = sum(a:g, i:C_in/g, b:k, c:k, j:C_out/(g*s)) "
            "x[n,a*C_in/g+i,h+b-k/2,w+c-k/2]");
}

TEST(Formula, NotesAWindowThatCouldComeBackInside) {
  const std::string rotated = formula(Operator::parse(kOperator2.text));
  EXPECT_NE(rotated.find("(h+b-k/2+1) mod H"), std::string::npos) << rotated;
  EXPECT_EQ(rotated.substr(rotated.find(" where ")), " where 0 <= h+b-k/2 < H");
  const std::string nested = formula(Operator::parse(kStackedConv.text));
  EXPECT_EQ(nested.substr(nested.find(" where ")), " where 0 <= w+c-k/2 < H");
  EXPECT_EQ(
      formula(Operator::parse("syno operator 1\nout [T: causal]\nin [T: causal]\nreduce k -> r0\n"
                              "unfold o0 r0 causal -> c0\nmatch c0\n")),
      "y[t] = sum(a:k) x[t+a-k+1]");
  EXPECT_EQ(formula(Operator::parse(
                "syno operator 1\nout [H]\nin [H]\nreduce k -> r0\nunfold o0 r0 -> c0\n"
                "shift c0 -1 -> c1\nmatch c1\n")),
            "y[h] = sum(a:k) x[(h+a-k/2-1) mod H] where 0 <= h+a-k/2 < H");
}

TEST(Formula, NamesAreNeverVariablesAndNeverTwice) {
  EXPECT_EQ(formula(Operator::parse("syno operator 1\nout [h, h, a, H, H]\nin [h, a, H, k]\n"
                                    "reduce k -> r0\nexpand o0\ncontract o3:drop\n"
                                    "match o1 o2 o4 r0\n")),
            "y[w,u,v,p,q] = sum(b:k) x[u,v,q,b] * w0[p]");
}

}  // namespace
}  // namespace syno
