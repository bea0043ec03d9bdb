#include "syno/notation/parse.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <functional>
#include <gtest/gtest.h>
#include <numeric>

#include "syno/interp/interpreter.h"
#include "syno/interp/random_graph.h"
#include "syno/interp/zoo_texts_test.h"
#include "syno/key/key.h"
#include "syno/notation/evaluator_test.h"
#include "syno/notation/formula.h"
#include "syno/support/error.h"
#include "syno/support/random.h"

namespace syno {
namespace {

FormulaShapes shapes_of(const Operator& op) {
  return {shape_text(op.input(), *op.variables()), shape_text(op.output(), *op.variables()), {}};
}

// The weight of the operator from the weight as the text has it.
Exact reordered(const Exact& from, const std::vector<int>& dims) {
  std::vector<std::int64_t> shape;
  for (const int d : dims) shape.push_back(from.shape[static_cast<std::size_t>(d)]);
  Exact result = zeros<std::int64_t>(shape);
  std::vector<std::int64_t> index(shape.size(), 0);
  for (std::int64_t& element : result.data) {
    std::vector<std::int64_t> source(shape.size());
    for (std::size_t d = 0; d < dims.size(); ++d)
      source[static_cast<std::size_t>(dims[d])] = index[d];
    std::int64_t flat = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) flat = flat * from.shape[d] + source[d];
    element = from.data[static_cast<std::size_t>(flat)];
    for (std::size_t d = shape.size(); d-- > 0 && ++index[d] == shape[d];) index[d] = 0;
  }
  return result;
}

// What `parsed` gives for the weights that the formula of `op` calls w0, w1, ...
void expect_same_value(const Operator& op, const ParsedFormula& parsed, const Binding& binding,
                       std::uint64_t seed) {
  const Values values = binding.resolve(*op.variables());
  const OperatorShapes shapes = operator_shapes(op, values);
  const Exact x = random_integers(shapes.input, seed);
  std::vector<Exact> weights;
  for (const auto& shape : shapes.weights)
    weights.push_back(random_integers(shape, seed + 1 + weights.size()));
  std::vector<Exact> own;
  for (const NamedWeight& weight : parsed.weights)
    own.push_back(reordered(weights.at(std::stoul(weight.name.substr(1))), weight.dims));
  ASSERT_EQ(interpret(parsed.op, binding.resolve(*parsed.op.variables()), x, own),
            interpret(op, values, x, weights));
}

Hash128 key_under(const Operator& op, const RandomOperator& sampled) {
  std::vector<Values> bindings;
  for (const Binding& binding : sampled.bindings)
    bindings.push_back(binding.resolve(*op.variables()));
  return semantic_key(op, bindings);
}

struct Shares {
  int sampled = 0;
  int recognised = 0;
  int keys = 0;
};

Shares round_trip(std::uint64_t first, std::uint64_t count, const RandomOptions& options,
                  bool stages = false) {
  Shares shares;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const RandomOperator sampled = random_operator(seed, options);
    const std::string text = formula(sampled.op, stages);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text + "\n" + sampled.op.text() +
                 sampled.binding.text());
    ++shares.sampled;
    try {
      const ParsedFormula parsed = parse_formula(text, shapes_of(sampled.op));
      ++shares.recognised;
      const bool same = key_under(parsed.op.in_table(sampled.op.variables()), sampled) ==
                        key_under(sampled.op, sampled);
      shares.keys += same;
      expect_same_value(sampled.op, parsed, sampled.binding, seed);
    } catch (const UserError& error) {
      ADD_FAILURE() << error.what();
    }
    if (testing::Test::HasFatalFailure()) break;
  }
  return shares;
}

TEST(ParseFormula, ReadsWhatFormulaPrintsOfRandomOperators) {
  RandomOptions options;
  options.max_terms = 800;
  options.causal_windows = 0.2;
  options.wide_windows = 0.3;
  options.scalar_input = true;
  const Shares shares =
      round_trip(0, std::getenv("SYNO_THOROUGH") != nullptr ? 30'000 : 2000, options);
  EXPECT_EQ(shares.recognised, shares.sampled);
  EXPECT_EQ(shares.keys, shares.sampled);
}

TEST(ParseFormula, ReadsTheStagesOfRandomOperators) {
  RandomOptions options;
  options.max_terms = 800;
  options.min_weights = 2;
  options.causal_windows = 0.2;
  options.wide_windows = 0.3;
  options.scalar_input = true;
  const Shares shares =
      round_trip(100'000, std::getenv("SYNO_THOROUGH") != nullptr ? 10'000 : 1000, options, true);
  EXPECT_EQ(shares.recognised, shares.sampled);
  EXPECT_EQ(shares.keys, shares.sampled);
}

TEST(ParseFormula, ReadsShiftsOfShiftsAsOne) {
  const Binding binding = Binding::parse("H=12, s=4, k=3");
  for (const int a : {-5, -2, -1, 1, 2, 5}) {
    for (const int b : {-2, -1, 1, 2}) {
      for (const std::string& text : shifted_twice(a, b)) {
        const Operator op = Operator::parse(text);
        SCOPED_TRACE(text + formula(op));
        const ParsedFormula parsed = parse_formula(formula(op), shapes_of(op));
        expect_same_value(op, parsed, binding, 1);
        if (op.graph().count(Primitive::kMerge) == 0 && std::abs(a) == 1 && std::abs(b) == 1) {
          EXPECT_EQ(parsed.op.graph().count(Primitive::kShift), a + b == 0 ? 0 : 1);
        }
        const auto key = [&](const Operator& each) {
          return semantic_key(each.in_table(op.variables()), {binding.resolve(*op.variables())});
        };
        EXPECT_EQ(key(parsed.op), key(op));
      }
    }
  }
}

// One thing of a formula changed: a condition left out, an index in place of another, a number, a term.
std::string damaged(std::string text, CounterRandom& random) {
  const auto any = [&](std::size_t count) { return static_cast<std::size_t>(random.below(count)); };
  const auto places = [&](const std::function<bool(std::size_t)>& fits) {
    std::vector<std::size_t> found;
    for (std::size_t i = text.find("x["); i < text.size(); ++i) {
      if (fits(i)) found.push_back(i);
    }
    return found;
  };
  const std::size_t where = text.find(" where ");
  switch (any(4)) {
    case 0:
      if (where != std::string::npos) text.resize(where);
      return text;
    case 1: {
      const auto letters = places([&](std::size_t i) {
        return std::islower(static_cast<unsigned char>(text[i])) != 0 && i > 0 &&
               std::string_view("[,(+").find(text[i - 1]) != std::string_view::npos &&
               std::string_view("],)+-").find(text[i + 1]) != std::string_view::npos;
      });
      if (letters.size() < 2) return text;
      std::swap(text[letters[any(letters.size())]], text[letters[any(letters.size())]]);
      return text;
    }
    case 2: {
      const auto digits = places([&](std::size_t i) {
        return text[i] >= '1' && text[i] <= '3' && text[i - 1] != 'w' && text[i - 1] != '_';
      });
      if (!digits.empty()) text[digits[any(digits.size())]] = static_cast<char>('1' + any(3));
      return text;
    }
    default: {
      const auto terms = places([&](std::size_t i) { return text[i] == '-' || text[i] == '+'; });
      if (terms.empty()) return text;
      const std::size_t begin = terms[any(terms.size())];
      const std::size_t end = text.find_first_of("+-,])", begin + 1);
      const std::string term = text.substr(begin, end - begin);
      if (std::count(term.begin(), term.end(), '(') == 0) text.erase(begin, end - begin);
      return text;
    }
  }
}

// Most damaged formulas are refused; what is read must compute what the text says.
TEST(ParseFormula, NeverReadsAnotherOperatorThanTheTextSays) {
  RandomOptions options;
  options.max_terms = 500;
  options.causal_windows = 0.2;
  options.wide_windows = 0.3;
  options.extents = {1, 2, 3, 4};
  int read = 0;
  int changed = 0;
  const std::uint64_t count = std::getenv("SYNO_THOROUGH") != nullptr ? 5'000 : 1'000;
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    const RandomOperator sampled = random_operator(500'000 + seed, options);
    CounterRandom random(seed, 7);
    const std::string before = formula(sampled.op);
    const std::string text = damaged(before, random);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + before + "\n" + text);
    ParsedFormula parsed;
    OperatorShapes shapes;
    Values values;
    try {
      FormulaShapes given = shapes_of(sampled.op);
      if (random.below(2) == 0) given.input.clear();
      parsed = parse_formula(text, given);
      values = sampled.binding.resolve(*parsed.op.variables());
      shapes = operator_shapes(parsed.op, values);
    } catch (const UserError&) {
      continue;  // refused, or too large a size for the binding
    }
    SCOPED_TRACE(parsed.op.text() + sampled.binding.text());
    const auto elements = [](const std::vector<std::int64_t>& shape) {
      return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
    };
    constexpr std::int64_t kMostElements = 5000;
    if (elements(shapes.input) > kMostElements) continue;
    ++read;
    changed += text != before;
    const Exact x = random_integers(shapes.input, seed);
    std::vector<Exact> own;
    std::vector<Exact> in_text(parsed.weights.size());
    for (std::size_t t = 0; t < parsed.weights.size(); ++t) {
      own.push_back(random_integers(shapes.weights[t], seed + 1 + t));
      std::vector<int> back(parsed.weights[t].dims.size());
      for (std::size_t d = 0; d < back.size(); ++d)
        back[static_cast<std::size_t>(parsed.weights[t].dims[d])] = static_cast<int>(d);
      in_text.at(std::stoul(parsed.weights[t].name.substr(1))) = reordered(own.back(), back);
    }
    Named variables;
    for (const auto& [name, value] : sampled.binding.values()) variables[name] = value;
    ASSERT_EQ(interpret(parsed.op, values, x, own),
              Evaluator(text, variables, x, in_text).run(shapes.output));
    if (HasFailure()) return;
  }
  EXPECT_GT(read, static_cast<int>(count / 3));
  EXPECT_GT(changed, static_cast<int>(count / 30));
}

TEST(ParseFormula, ReadsWhatFormulaPrintsOfTheZoo) {
  for (const ZooText& zoo : kZooTexts) {
    const Operator op = Operator::parse(zoo.text);
    SCOPED_TRACE(formula(op));
    const ParsedFormula parsed = parse_formula(formula(op), shapes_of(op));
    const Binding binding = Binding::parse(zoo.binding);
    EXPECT_EQ(semantic_key(parsed.op.in_table(op.variables()), {binding.resolve(*op.variables())}),
              semantic_key(op, {binding.resolve(*op.variables())}));
    expect_same_value(op, parsed, binding, 3);
  }
}

TEST(Formula, PrintsOperatorsOfTwoWeightsAsStages) {
  const auto of = [](const ZooText& zoo) { return formula(Operator::parse(zoo.text), true); };
  EXPECT_EQ(of(kSeparable),
            "Z[n,i,h,w] = sum(a:k, b:k) x[n,i,h+a-k/2,w+b-k/2] * w1[i,a,b]\n"
            "y[n,o,h,w] = sum(i:C_in) Z[n,i,h,w] * w0[o,i]");
  EXPECT_EQ(of(kOperator1),
            "Z[n,a,h,w,c,j] = sum(i:C_in/g) x[n,a*C_in/g+i,h,w+c-k/2] * w1[j,c,a*C_in/g+i]\n"
            "y[n,o,h,w] = sum(a:g, b:k, c:k, j:C_out/(g*s)) Z[n,a,h+b-k/2,w,c,j] * w0[o,j,c,b,a]");
  // The window of k rows is bounded by the stage, and cyclically shifted inside it.
  EXPECT_EQ(of(kOperator2),
            "Z[n,a,h,w,j] = sum(i:C_in/g, c:k) x[n,a*C_in/g+i,(h+1) mod H,w+c-k/2] * "
            "w1[j,c,a*C_in/g+i]\n"
            "y[n,o,h,w] = sum(a:g, b:k, j:C_out/(g*s)) Z[n,a,h+b-k/2,w,j] * w0[o,j,b,a]");
  EXPECT_EQ(of(kConv1x1), "y[n,o,h,w] = sum(i:C_in) x[n,i,h,w] * w0[o,i]");
}

// By hand, as papers write operators, against the steps.
struct ByHand {
  const ZooText& zoo;
  const char* text;
  const char* values = nullptr;
};

TEST(ParseFormula, ReadsTheZooAsOneWouldWriteIt) {
  const ByHand cases[] = {
      {kConv2d, "y[n,o,h,w] = sum(i,a,b) x[n,i,h+a-k/2,w+b-k/2] * W0[o,i,a,b]"},
      {kConv1x1, "y[n,o,h,w] = sum(i) x[n,i,h,w] * W0[o,i]"},
      {kLinear, "y[n,t,o] = sum(i) x[n,t,i] * W0[i,o]"},
      {kDepthwise, "y[n,c,h,w] = sum(a,b) x[n,c,h+a-k/2,w+b-k/2] * W0[c,a,b]"},
      {kGrouped,
       "y[n,G*C_out/g+c,h,w] = sum(r,a,b) x[n,G*C_in/g+r,h+a-k/2,w+b-k/2] * W0[G,c,r,a,b]"},
      {kGroupedShared,
       "y[n,G*C_out/g+c,h,w] = sum(r,a,b) x[n,G*C_in/g+r,h+a-k/2,w+b-k/2] * W0[c,r,a,b]"},
      {kSeparable,
       "Z[n,c,h,w] = sum(a,b) x[n,c,h+a-k/2,w+b-k/2] * W2[c,a,b]\n"
       "y[n,o,h,w] = sum(c:C_in) Z[n,c,h,w] * W1[o,c]"},
      {kDilated, "y[n,o,h,w] = sum(i, a:k, b:k) x[n,i,h+k*a-k^2/2,w+k*b-k^2/2] * W0[o,i,a,b]"},
      {kPooledConv,
       "P[n,i,h,w] = sum(b:s, d:s) x[n,i,h*s+b,w*s+d]\n"
       "C[n,o,h,w] = sum(i:C_in, a:k, c:k) P[n,i,h+a-k/2,w+c-k/2] * W0[o,i,a,c]\n"
       "y[n,o,h,w] = C[n,o,h/s,w/s]"},
      {kPixelShuffle, "y[n,c,h*s+a,w*s+b] = x[n,c*s*s+a*s+b,h,w]"},
      {kPixelUnshuffle, "y[n,c*s^2+a*s+b,h,w] = x[n,c,h*s+a,w*s+b]"},
      {kPixelUnshuffle, "y[n,4c+2a+b,h,w] = x[n,c,2h+a,2*w+b]", "s=2"},
      {kShiftConv, "y[n,o,h,w] = sum(i) x[n,i,(h+1) mod H,(w+1) mod W] * K[o,i]"},
      {kShiftConv, "y[n,o,h,w] = sum(i) x[n,i,(h+1) % H,(w+1) % W] * K[o,i]"},
      {kSwappedConv1d, "y[n,o,h,w] = sum(i,a) x[n,i,w,h+a-k/2] * K[o,i,a]"},
      {kTiledProjection, "y[n,q,r*H+j] = sum(i) x[n,q,i] * K[i,j]"},
      {kGpt2Projection, "y[n,q,g*j+g/k*m+c] = sum(i) x[n,q,H/k*m+i] * K[j,i,c] where c < g/k"},
      {kWindowByRotation,
       "u = ((h*s+q+1) mod (s*H)) / s; p = (h*s+q+1) mod s\n"
       "y[n,o,h,w] = sum(i,a,q<s) x[n,i,u,w+a-k/2] * K[p,o,a,i]"},
      {kStackedConv,
       "m = C_out/(g*s)\n"
       "Z[n,G,h,w,c] = sum(r<C_in/g, b) x[n,G*C_in/g+r,h,w+b-k/2] * W2[G*C_in/g+r,b,c]\n"
       "y[n,o,h,w] = sum(G<g,a<k,b<k,c<m) Z[n,G,h+a-k/2,w+b-k/2,c] * W1[G,a,b,o,c]"},
      {kOperator1,
       "m = C_out/(g*s)\n"
       "Z[n,G,h,w,q,c] = sum(r<C_in/g) x[n,G*C_in/g+r,h,w+q-k/2] * W2[G*C_in/g+r,q,c]\n"
       "y[n,o,h,w] = sum(G<g,a<k,q<k,c<m) Z[n,G,h+a-k/2,w,q,c] * W1[G,a,q,o,c]"},
      {kOperator2,
       "Z[n,G,h,w,c] = sum(r,q) x[n,G*C_in/g+r,h,w+q-k/2] * W2[G*C_in/g+r,q,c]\n"
       "Zs[n,G,p,w,c] = Z[n,G,(p+1) mod H,w,c]\n"
       "y[n,o,h,w] = sum(G<g,a,c<C_out/(g*s)) Zs[n,G,h+a-k/2,w,c] * W1[o,G,a,c]\n"
       "# the window of k rows is bounded, then rotated"},
      {kOperator07795,
       "y[n,o,h,w] = sum(i,a,q<s) x[n,i,(w+1) mod H,u+a-k/2] * A[o,p] * B[i,a,o]\n"
       "u = ((h*s+q+1) mod (s*H)) / s\n"
       "p = (h*s+q+1) mod s"},
  };
  for (const ByHand& hand : cases) {
    SCOPED_TRACE(hand.text);
    const Operator op = Operator::parse(hand.zoo.text);
    FormulaShapes shapes = shapes_of(op);
    if (hand.values != nullptr) shapes.values = Binding::parse(hand.values).values();
    const ParsedFormula parsed = parse_formula(hand.text, shapes);
    const Values values = Binding::parse(hand.zoo.binding).resolve(*op.variables());
    EXPECT_EQ(semantic_key(parsed.op.in_table(op.variables()), {values}),
              semantic_key(op, {values}))
        << parsed.op.text() << op.text();
  }
}

// What `text` says is refused for; "" where it is not.
std::string refusal(const std::string& text, const FormulaShapes& shapes = {}) {
  try {
    parse_formula(text, shapes);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(ParseFormula, SaysWhyATextIsOutsideTheEightPrimitives) {
  const auto expect = [](const std::string& text, const std::string& reason) {
    const std::string found = refusal(text, {"", "", {}});
    EXPECT_NE(found.find(reason), std::string::npos) << text << "\n" << found;
    EXPECT_NE(found.find("column"), std::string::npos) << found;
  };
  expect("y[h:H] = x[h] * x[h]", "x is read twice");
  expect("y[h:H] = x[h] * w[h] * w[h]", "weight 'w' is read twice");
  expect("y[h:H] = x[h] + x[h]", "a sum of two terms");
  expect("y[h:H] = max(x[h])", "'max(...)' is outside the eight primitives");
  expect("y[h:H] = 2*x[h]", "a constant factor only scales");
  expect("y[h:H] = sum(i:C) x[i*h]", "the product of");
  expect("y[h:H] = x[h,h]", "needs the coordinate of 'h' a second time");
  expect("y[h:H] = x[h] * w[h,h]", "at one coordinate in two dimensions");
  expect("y[h:H] = sum(j:H) x[j] * w[h+j-H/2]", "a second time");
  expect("y[h:H] = x[H-h]", "subtracts an index");
  expect("y[h:H] = x[h+1]", "needs mod");
  expect("y[h:H] = x[2*h]", "the factor 2, which is no size");
  expect("y[h:H] = sum(a:k) x[(h+a-k/2) mod H]", "add where 0 <= i < N");
  expect("y[h:H] = sum(a:k, b:k) x[h+a-k/2+b-k/2]", "add where 0 <= i < N");
  expect("y[h:H] = sum(a:k) x[h+a-(k-1)/2]", "-k/2");
  expect("y[h:H] = x[k]", "is constant");
  const FormulaShapes shaped{"[H]", "[H]", {}};
  for (const std::string index : {"h+d*(a-k/2)", "d*a-d*(k/2)+h"}) {
    const std::string found =
        refusal("y[h] = sum(a:k) x[" + index + "] * w[a]", {"[H]", "[H]", {{"d", 2}, {"k", 3}}});
    EXPECT_NE(found.find("taps of a dilated window are at h+d*a-(d*k)/2"), std::string::npos)
        << index << "\n"
        << found;
  }
  EXPECT_EQ(parse_formula("y[h] = sum(a:k) x[h+d*a-(d*k)/2] * w[a]", shaped).weights.size(), 1U);
  expect("y[h:H] = w[h]", "does not read x");
  expect("y[h:H, o] = x[h] * w[o]", "how far 'o' runs is not known");
  expect("y[h:H] = sum(a:k) x[h+a-k/2] * w[h, h+a-k/2]", "no order of steps");
  expect("Z[h] = x[h]\ny[h:H] = Z[h] * Z[h]", "stage 'Z' is read twice");
  expect("Z[h] = x[h]\ny[h:H] = x[h]", "two statements make what nothing reads");
  expect("y[h:H] = x[(h+a) mod H]; a = b; b = a", "is defined by itself");
  // Without padding: the window would read part of x.
  expect("y[l:L] = sum(k:K) x[l+k] * w[k]", "is outside the eight primitives");
  expect("y[l:L] = sum(k:K) x[l-k] * w[k]", "subtracts an index");
  const std::string part = refusal("y[h] = x[h/s]", {"[H]", "[H]", {}});
  EXPECT_NE(part.find("runs up to s^-1*H"), std::string::npos) << part;
}

// A window whose cyclic shift is not bounded reads on round the border, which no Unfold does.
TEST(ParseFormula, BoundsWindowsByConditionsAndStages) {
  const Operator conv =
      parse_formula("y[h:H] = sum(a:k) x[(h+a-k/2+1) mod H] where 0 <= h+a-k/2 < H").op;
  EXPECT_EQ(conv.text(),
            "syno operator 1\nout [H]\nin [H]\nreduce k -> r0\nunfold o0 r0 -> c0\n"
            "shift c0 1 -> c1\nmatch c1\n");
  EXPECT_EQ(parse_formula("Z[p] = x[(p+1) mod H]; y[h:H] = sum(a:k) Z[h+a-k/2]").op, conv);
  EXPECT_NE(refusal("y[h:H] = sum(a:k) x[(h+a-k/2+1) mod H] where 0 <= h+a-k/2 < k")
                .find("come back inside"),
            std::string::npos);
  // Of a window and its index of one size, the text does not say which is which.
  EXPECT_NE(refusal("y[h:H] = sum(a:k, b:k) x[b] * w[(a*s+b*t-k*t/2) mod (k*s)]"), "");
}

TEST(ParseFormula, FindsExtentsWhereTheyFollow) {
  const Operator op =
      parse_formula("y[n,o:C_out,h,w] = sum(i,a,b) x[n,i,h+a-k/2,w+b-k/2] * W[o,i,a,b]",
                    {"[N, C_in: unordered, H, W]", "", {}})
          .op;
  EXPECT_EQ(shape_text(op.output(), *op.variables()), "[N, C_out, H, W]");
  EXPECT_EQ(op.graph().count(Primitive::kUnfold), 2);
  const Operator shuffle =
      parse_formula("y[c,h*s+a] = x[c*s+a,h] where a < s", {"[s*C, H]", "", {}}).op;
  EXPECT_EQ(shape_text(shuffle.output(), *shuffle.variables()), "[C, s*H]");
}

TEST(ParseFormula, TakesNumbersForVariablesWithTheirValue) {
  const FormulaShapes shapes{"[C, H]", "[C, H]", {{"k", 3}, {"s", 2}}};
  const Operator conv = parse_formula("y[c,h] = sum(a:k) x[c,h+a-k/2] * w[a]", shapes).op;
  EXPECT_EQ(parse_formula("y[c,h] = sum(a:3) x[c,h+a-1] * w[a]", shapes).op, conv);
  EXPECT_EQ(parse_formula("y[c,h] =\n  sum(a : k)  # taps\n  x[c,h+a-1]\n  * w[a]\n", shapes).op,
            conv);
  EXPECT_NE(refusal("y[c,h] = sum(a:k) x[c,h+a-2] * w[a]", shapes).find("needs mod"),
            std::string::npos);
  const FormulaShapes blocks{"[C]", "[D]", {}};
  EXPECT_EQ(
      parse_formula("y[G*(D/g)+c] = sum(r) x[C/g*G+r] * W[G,c,r]", blocks).op,
      parse_formula("y[o] = sum(r:C/g) x[o/(D/g)*C/g+r] * W[o/(D/g),o mod (D/g),r]", blocks).op);
}

TEST(ParseFormula, NamesTheWeightsOfTheText) {
  const ParsedFormula parsed =
      parse_formula("y[o:O] = sum(i:I, m:M) x[i] * first[i,m] * second[m,o]");
  ASSERT_EQ(parsed.weights.size(), 2U);
  for (std::size_t t = 0; t < 2; ++t) {
    const std::vector<Size> shape = parsed.op.weight_shapes()[t];
    const bool first = parsed.weights[t].name == "first";
    const std::vector<std::string> in_text =
        first ? std::vector<std::string>{"I", "M"} : std::vector<std::string>{"M", "O"};
    for (std::size_t d = 0; d < 2; ++d) {
      EXPECT_EQ(shape[d].text(*parsed.op.variables()),
                in_text[static_cast<std::size_t>(parsed.weights[t].dims[d])]);
    }
  }
}

}  // namespace
}  // namespace syno
