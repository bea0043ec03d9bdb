#include "syno/graph/graph.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "syno/graph/canonical.h"
#include "syno/graph/draw.h"
#include "syno/graph/operator.h"
#include "syno/support/error.h"
#include "syno/support/random.h"

namespace syno {
namespace {

const VariablesPtr kVariables = Variables::make({"N", "C_in", "C_out", "H", "k", "s"});

Size size(const char* text) {
  return Size::parse(text, *kVariables);
}
Shape shape(const char* text) {
  return parse_shape(text, *kVariables);
}

constexpr const char* kConv = R"(syno operator 1
out [N, C_out: unordered, H, H]
in [N, C_in: unordered, H, H]
reduce C_in -> r0
reduce k -> r1
reduce k -> r2
contract o1:drop r0:keep r1:keep r2:keep
unfold o2 r1 -> c0
unfold o3 r2 -> c1
match o0 r0 c0 c1
)";

template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

Operator conv(bool windows_first, bool swapped) {
  Graph graph(kVariables, shape("[N, C_out: unordered, H, H]"));
  CoordinateId a = 0;
  CoordinateId b = 0;
  CoordinateId i = 0;
  if (swapped) {
    b = graph.apply(Step::reduce(size("k"))).out[0];
    i = graph.apply(Step::reduce(size("C_in"))).out[0];
    a = graph.apply(Step::reduce(size("k"))).out[0];
  } else {
    i = graph.apply(Step::reduce(size("C_in"))).out[0];
    a = graph.apply(Step::reduce(size("k"))).out[0];
    b = graph.apply(Step::reduce(size("k"))).out[0];
  }
  const Step weight = Step::contract({{i, WeightRole::kKeep},
                                      {1, WeightRole::kDrop},
                                      {b, WeightRole::kKeep},
                                      {a, WeightRole::kKeep}});
  graph.apply(weight);
  CoordinateId u = 0;
  CoordinateId v = 0;
  if (windows_first) {
    v = graph.apply(Step::unfold(3, b)).out[0];
    u = graph.apply(Step::unfold(2, a)).out[0];
  } else {
    u = graph.apply(Step::unfold(2, a)).out[0];
    v = graph.apply(Step::unfold(3, b)).out[0];
  }
  return Operator(graph, shape("[N, C_in: unordered, H, H]"), {0, i, u, v});
}

TEST(Operator, DoesNotDependOnTheOrderOfStepsOrTheNamesOfReductions) {
  const Operator reference = conv(false, false);
  for (const bool windows_first : {false, true}) {
    for (const bool swapped : {false, true}) {
      const Operator other = conv(windows_first, swapped);
      EXPECT_EQ(other, reference);
      EXPECT_EQ(other.text(), reference.text());
    }
  }
  EXPECT_EQ(reference, Operator::parse(kConv));
}

TEST(Operator, TextRoundTrips) {
  const Operator op = Operator::parse(kConv);
  EXPECT_EQ(Operator::parse(op.text()), op);
  EXPECT_EQ(Operator::parse(op.text()).text(), op.text());
}

TEST(Operator, KnowsItsBatch) {
  EXPECT_EQ(Operator::parse(kConv).batch(), "N");
  EXPECT_TRUE(Operator::parse(kConv).passes_through(0));
  EXPECT_FALSE(Operator::parse(kConv).passes_through(1));
  const auto batch = [](const std::string& body) {
    return Operator::parse("syno operator 1\n" + body).batch();
  };
  EXPECT_EQ(batch("out [N, H]\nin [N, H]\nmatch o0 o1\n"), "N");
  // Another dimension or step has its variable.
  EXPECT_EQ(batch("out [N, N]\nin [N, N]\nmatch o0 o1\n"), std::nullopt);
  EXPECT_EQ(batch("out [N, s*N]\nin [N, s*N]\nmatch o0 o1\n"), std::nullopt);
  EXPECT_EQ(batch("out [N, H]\nin [N, H, N]\nreduce N -> r0\nmatch o0 o1 r0\n"), std::nullopt);
  EXPECT_EQ(batch("out [N, H]\nin [N, H]\nreduce N -> r0\nexpand r0\nmatch o0 o1\n"), std::nullopt);
  // It is no variable of its own.
  EXPECT_EQ(batch("out [s*N, H]\nin [s*N, H]\nmatch o0 o1\n"), std::nullopt);
  // It stands in another place, is looked up in a weight, or is touched by a step.
  EXPECT_EQ(batch("out [N, H]\nin [H, N]\nmatch o1 o0\n"), std::nullopt);
  EXPECT_EQ(batch("out [N, H]\nin [N, H]\ncontract o0:keep\nmatch o0 o1\n"), std::nullopt);
  EXPECT_EQ(batch("out [N, H]\nin [N, H]\nshift o0 1 -> c0\nmatch c0 o1\n"), std::nullopt);
  EXPECT_EQ(batch("out []\nin []\nmatch\n"), std::nullopt);
}

TEST(Operator, TransposedMatchingIsAnotherOperator) {
  Graph graph(kVariables, shape("[N, H, H]"));
  const Operator plain(graph, shape("[N, H, H]"), {0, 1, 2});
  const Operator transposed(graph, shape("[N, H, H]"), {0, 2, 1});
  EXPECT_NE(plain, transposed);
  EXPECT_EQ(matchings(graph, shape("[N, H, H]"), {{0, 0}}).size(), 2U);
}

TEST(Operator, MatchingsThatRenameReductionsAreOne) {
  Graph graph(kVariables, shape("[N, H]"));
  const CoordinateId r = graph.apply(Step::reduce(size("k"))).out[0];
  const CoordinateId q = graph.apply(Step::reduce(size("k"))).out[0];
  graph.apply(
      Step::contract({{1, WeightRole::kDrop}, {r, WeightRole::kKeep}, {q, WeightRole::kKeep}}));
  EXPECT_EQ(matchings(graph, shape("[N, k, k]"), {{0, 0}}).size(), 1U);
}

TEST(Operator, EveryMalformedTextHasAnErrorThatNamesTheLine) {
  const auto error = [](std::string text) { return error_of([&] { Operator::parse(text); }); };
  const auto replaced = [](std::string from, std::string to) {
    std::string text = kConv;
    return text.replace(text.find(from), from.size(), to);
  };
  EXPECT_EQ(error(""), "the text is empty\n  expected: a first line \"syno operator 1\"");
  EXPECT_EQ(error(replaced("operator 1", "operator 9")),
            "this version of the text format is not known: the file is from a newer Syno\n  in "
            "line 1: \"syno operator 9\"");
  EXPECT_EQ(error("hello"),
            "not a Syno text\n  expected: \"syno operator 1\"\n  in line 1: \"hello\"");
  EXPECT_EQ(error(replaced("unfold o2 r1", "unfold o2 r9")),
            "unknown coordinate 'r9'\n  expected: one of o0, o1, o2, o3, r0, r1, r2\n  in line 8: "
            "\"unfold o2 r9 -> c0\"");
  EXPECT_EQ(error(replaced("unfold o2 r1 ->", "fold o2 r1 ->")),
            "unknown step 'fold'\n  expected: split, merge, shift, expand, unfold, stride, reduce, "
            "contract, in, out or match\n"
            "  in line 8: \"fold o2 r1 -> c0\"");
  EXPECT_EQ(error(replaced("r2:keep", "r2:hold")),
            "expected coordinate:role with role keep, drop or join, got 'r2:hold'\n"
            "  in line 7: \"contract o1:drop r0:keep r1:keep r2:hold\"");
  EXPECT_EQ(
      error(replaced("match o0 r0 c0 c1\n", "")),
      "the line 'match' is missing: the text is cut off\n  in line 9: \"unfold o3 r2 -> c1\"");
  EXPECT_NE(error(replaced("match o0 r0 c0 c1", "match o0 c0 r0 c1"))
                .find("cannot be matched with input dimension 1"),
            std::string::npos);
  EXPECT_NE(error(replaced("o1:drop", "o1:join")).find("in no earlier weight: its role is 'drop'"),
            std::string::npos);
  EXPECT_NE(error(replaced("unfold o3 r2", "unfold o2 r2")).find("not in the frontier"),
            std::string::npos);
  EXPECT_NE(error(replaced("-> c1", "-> c0")).find("made twice"), std::string::npos);
  EXPECT_NE(
      error(replaced("-> c1", "")).find("produces 1 coordinates, got 0\n  expected: unfold OLD"),
      std::string::npos);
  // Messages have the names of the text, not those of the graph.
  EXPECT_EQ(
      error("syno operator 1\nout [H]\nin [H]\nreduce H -> sum\ncontract sum:keep sum:keep\n"),
      "coordinate 'sum' is taken twice by one weight\n  in step 2 (contract)\n  in line 5");
  EXPECT_EQ(error("syno operator 1\nout [H]\nin [H]\nreduce H -> sum\nmatch sum\n"),
            "the matching must use each coordinate of the frontier once\n  expected: each of 'o0', "
            "'sum'      got: 'sum'\n  in line 5: \"match sum\"");
}

TEST(Operator, TextNeverCrashesOnDamage) {
  CounterRandom random(5, 0);
  const std::string original = kConv;
  int accepted = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    std::string text = original;
    for (std::uint64_t n = 1 + random.below(3); n > 0; --n) {
      const std::size_t place = random.below(text.size());
      switch (random.below(3)) {
        case 0: text.erase(place, 1 + random.below(9)); break;
        case 1: text[place] = static_cast<char>(32 + random.below(95)); break;
        default:
          text.insert(place, text.substr(random.below(text.size()), random.below(12)));
          break;
      }
    }
    try {
      const Operator op = Operator::parse(text);
      EXPECT_EQ(Operator::parse(op.text()), op) << text;
      ++accepted;
    } catch (const UserError&) {
    }
  }
  EXPECT_GT(accepted, 0);
}

TEST(Primitive, TraitsAgreeWithEachOther) {
  for (std::size_t p = 0; p < kPrimitiveCount; ++p) {
    const PrimitiveInfo& info = primitive_info(static_cast<Primitive>(p));
    SCOPED_TRACE(info.name);
    EXPECT_EQ(static_cast<std::size_t>(info.primitive), p);
    EXPECT_EQ(find_primitive(info.name), info.primitive);
    EXPECT_TRUE(info.form.starts_with(std::string(info.name) + " "));
    EXPECT_EQ(info.form.find("->") != std::string_view::npos, info.produces > 0);
    for (int i = 0; i < 2; ++i) {
      const bool made = info.makes[static_cast<std::size_t>(i)] != ExpressionKind::kIterator;
      EXPECT_EQ(made, i < info.produces);
    }
    EXPECT_EQ(info.kind == StepKind::kView, info.consumes > 0 && info.produces > 0);
    EXPECT_EQ(info.kind == StepKind::kReduction, info.makes[0] == ExpressionKind::kReduction);
    EXPECT_EQ(info.kind == StepKind::kContraction, info.argument == Argument::kRoles);
    EXPECT_EQ(info.kind == StepKind::kContraction, info.charge == Charge::kWeightDims);
    EXPECT_EQ(info.charge == Charge::kMadeUp, info.argument == Argument::kBlock);
    if (info.charge == Charge::kSize) {
      EXPECT_TRUE(takes_size(info.argument));
    }
    if (info.relation != Relation::kNone) {
      EXPECT_EQ(info.kind, StepKind::kView);
    }
    if (info.argument == Argument::kCausal) {
      EXPECT_EQ(info.consumes, 2);
    }
  }
}

TEST(Graph, AFailedStepLeavesItUnchanged) {
  Graph graph(kVariables, shape("[N, H]"));
  const Graph before = graph;
  EXPECT_THROW(graph.apply(Step::split(1, 1)), UserError);
  EXPECT_THROW(graph.apply(Step::contract({{1, WeightRole::kKeep}, {0, WeightRole::kJoin}})),
               UserError);
  EXPECT_THROW(graph.apply(Step::contract({})), UserError);
  EXPECT_THROW(graph.apply(Step::shift(1, 0)), UserError);
  EXPECT_THROW(graph.apply(Step::merge(1, Size())), UserError);
  EXPECT_EQ(graph, before);
  EXPECT_EQ(graph.frontier(), before.frontier());
  EXPECT_TRUE(graph.weights().empty());
}

TEST(Graph, TextRoundTrips) {
  Graph graph(kVariables, shape("[N, H]"));
  const Step merged = graph.apply(Step::merge(1, size("s")));
  graph.apply(Step::shift(merged.out[1], -1));
  EXPECT_EQ(graph_text(parse_graph(graph_text(graph))), graph_text(graph));
  EXPECT_EQ(structure_hash(parse_graph(graph_text(graph))), structure_hash(graph));
}

TEST(Graph, ContractionAndIndependentViewCommute) {
  Graph a(kVariables, shape("[N, C_out, H]"));
  a.apply(Step::contract({{1, WeightRole::kDrop}}));
  a.apply(Step::shift(2, 1));
  Graph b(kVariables, shape("[N, C_out, H]"));
  b.apply(Step::shift(2, 1));
  b.apply(Step::contract({{1, WeightRole::kDrop}}));
  EXPECT_EQ(structure_hash(a), structure_hash(b));
  EXPECT_EQ(graph_text(a), graph_text(b));
  // Sharing what was shifted is another graph than shifting what was shared.
  Graph c(kVariables, shape("[N, C_out, H]"));
  c.apply(Step::contract({{2, WeightRole::kKeep}}));
  c.apply(Step::shift(2, 1));
  Graph d(kVariables, shape("[N, C_out, H]"));
  const CoordinateId shifted = d.apply(Step::shift(2, 1)).out[0];
  d.apply(Step::contract({{shifted, WeightRole::kKeep}}));
  EXPECT_NE(structure_hash(c), structure_hash(d));
}

TEST(Graph, DrawingNamesEveryStepOnce) {
  const std::string dot = to_dot(Operator::parse(kConv));
  EXPECT_NE(dot.find("weight 0"), std::string::npos);
  EXPECT_NE(dot.find("Unfold"), std::string::npos);
  EXPECT_EQ(std::count(dot.begin(), dot.end(), '{'), std::count(dot.begin(), dot.end(), '}'));
}

TEST(Shape, EveryMalformedStringNamesTheColumn) {
  const auto error = [](const char* text) {
    return error_of([&] { parse_shape(text, *kVariables); });
  };
  EXPECT_EQ(error("[N, H"),
            "expected ']' at the end of a shape, got the end\n  in shape \"[N, H\", column 6");
  EXPECT_EQ(error("N"),
            "expected '[' at the start of a shape, got 'N'\n  in shape \"N\", column 1");
  EXPECT_EQ(
      error("[H: odd]"),
      "unknown flag 'odd'; known flags: unordered, causal\n  in shape \"[H: odd]\", column 5");
  EXPECT_EQ(error("[Q]"),
            "unknown variable 'Q'; known variables: k, s, C_in, C_out, H, N\n  in shape \"[Q]\", "
            "column 2");
  EXPECT_EQ(error("[H,]"), "expected a name of a variable, got ']'\n  in shape \"[H,]\", column 4");
  EXPECT_EQ(error("[H] x"), "expected the end, got 'x'\n  in shape \"[H] x\", column 5");
  EXPECT_NE(error("[H: unordered: causal]"), "no error");
  EXPECT_EQ(error("[]"), "no error");
  EXPECT_EQ(shape_text(shape("[ N , s^-1*C_in:unordered, H : causal ]"), *kVariables),
            "[N, s^-1*C_in: unordered, H: causal]");
}

TEST(Primitives, EachViewHasOneTraitThatSaysWhatItDoes) {
  for (std::size_t p = 0; p < kPrimitiveCount; ++p) {
    const PrimitiveInfo& info = primitive_info(static_cast<Primitive>(p));
    const int traits = info.joins() + info.cuts() + info.permutes() + info.scales() + info.slides();
    EXPECT_EQ(traits, info.kind == StepKind::kView ? 1 : 0) << info.name;
    EXPECT_TRUE(info.kind == StepKind::kView || !info.copies) << info.name;
    for (std::size_t i = 0; i < static_cast<std::size_t>(info.produces); ++i)
      EXPECT_EQ(is_summed(info.makes[i]), info.kind == StepKind::kReduction) << info.name;
  }
  EXPECT_EQ(primitive_info(kReductionPrimitive).kind, StepKind::kReduction);
  EXPECT_EQ(primitive_info(kContractionPrimitive).kind, StepKind::kContraction);
}

}  // namespace
}  // namespace syno
