// What the source looks like. That it computes the operator is checked where Triton is: tests/property.
#include "syno/emit/triton/triton.h"

#include <gtest/gtest.h>

#include "syno/emit/triton/kernel.h"
#include "syno/interp/random_graph.h"
#include "syno/interp/zoo_texts_test.h"
#include "syno/plan/loop_transform.h"
#include "syno/support/text.h"

namespace syno {
namespace {

Plan tiled(const ZooText& zoo, std::string_view binding = {}) {
  const Operator op = Operator::parse(zoo.text);
  const std::string_view sizes = binding.empty() ? zoo.binding : binding;
  return plan(op, Binding::parse(sizes).resolve(*op.variables()));
}

std::string kernel_text(const Source& source) {
  const std::size_t from = source.text.find("@triton.jit");
  return source.text.substr(from, source.text.find("\n\n\n", from) - from);
}

TEST(Triton, AConvolutionIsAMatrixProductOverTiles) {
  EXPECT_EQ(kernel_text(emit_triton(tiled(kConv2d, "N=1, C_in=8, C_out=16, H=5, W=7, k=3"))),
            R"(@triton.jit
def y_kernel(
    x,
    w0,
    y,
    batch,
    device: tl.constexpr,
    precision: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    TERMS: tl.constexpr,
):
    # Rows: c; columns: image h w; terms: i k l.
    tile = tl.program_id(0)
    down = tl.cdiv(16, ROWS)
    row = (tile % down * ROWS + tl.arange(0, ROWS))[:, None]
    column = (tile // down * COLUMNS + tl.arange(0, COLUMNS))[None, :]
    c = row
    image = column // 35
    h = column // 7 % 5
    w = column % 7
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, 72, TERMS):
        term = start + tl.arange(0, TERMS)
        i = term // 9
        k = term // 3 % 3
        l = term % 3
        x_in = (column < batch * 35) & (term < 72)[:, None]
        x_in &= (h - 1) + k[:, None] >= 0
        x_in &= (h - 1) + k[:, None] < 5
        x_in &= (w - 1) + l[:, None] >= 0
        x_in &= (w - 1) + l[:, None] < 7
        x_at = 280*image + (7*h + w - 8) + (35*i + 7*k + l)[:, None]
        w0_in = (row < 16) & (term < 72)[None, :]
        w0_at = 72*c + (9*i + 3*k + l)[None, :]
        left = tl.load(w0 + w0_at, w0_in, 0.0)
        right = tl.load(x + x_at, x_in, 0.0)
        total += tl.dot(left, right, input_precision=precision)
    y_in = (row < 16) & (column < batch * 35)
    y_at = 560*image + 35*c + 7*h + w
    tl.store(y + y_at, total, y_in))");
}

TEST(Triton, AFewRowsAreSummedForEachPosition) {
  const std::string text = kernel_text(emit_triton(tiled(kDepthwise)));
  EXPECT_EQ(text.find("tl.dot"), std::string::npos) << text;
  EXPECT_NE(text.find("tl.sum(total, 0, keep_dims=True)"), std::string::npos) << text;
  const Source forced = emit_triton(tiled(kLinear), {.formula = "", .least_product = 1});
  EXPECT_NE(forced.text.find("tl.dot"), std::string::npos);
}

TEST(Triton, WhatSumsNothingIsComputedWhereItIsRead) {
  const Operator op = Operator::parse(
      "syno operator 1\nout [C, H]\nin [C, H]\nreduce C -> r0\ncontract o0:drop r0:keep\n"
      "contract r0:keep o1:keep\nmatch r0 o1\n");
  const Source source =
      emit_triton(plan(op, Binding::parse("C=16, H=16").resolve(*op.variables())));
  EXPECT_EQ(source.text.find("t0"), std::string::npos) << source.text;
  EXPECT_NE(source.text.find("        right = tl.load(x + x_at, x_in, 0.0)\n"
                             "        right *= tl.load(w1 + w1_at, w1_in, 0.0)\n"),
            std::string::npos)
      << source.text;
}

TEST(Triton, AxesHaveTheRolesOfAMatrixProduct) {
  const LoopProgram program = loop_program(tiled(kGrouped));
  const LoopNest nest = merged(program, without_batch(program, program.nests.back()));
  const AxisRoles roles = axis_roles(nest);
  const auto extents = [&](const std::vector<int>& axes) {
    std::int64_t product = 1;
    for (const int axis : axes) product *= nest.axes[static_cast<std::size_t>(axis)].extent;
    return product;
  };
  EXPECT_GT(extents(roles.groups), 1);
  // The weight has what is a group, a row or a term; the result what is a group, a row or a column.
  EXPECT_EQ(extents(roles.groups) * extents(roles.rows) * extents(roles.terms),
            program.buffer(program.weights[0]).elements());
  const Buffer& y = program.buffer(program.output);
  EXPECT_EQ(extents(roles.positions()) * y.shape[0], y.elements());
}

TEST(Triton, EveryLineFitsItsShapeOnTheScreen) {
  for (const ZooText& zoo : kZooTexts) {
    for (const std::string_view line : split_lines(emit_triton(tiled(zoo)).text))
      EXPECT_LE(line.size(), 100U) << line;
  }
}

TEST(Triton, RandomPlansArePrintedTheSameTwice) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const RandomOperator random = random_operator(seed);
    const Plan chosen = plan(random.op, random.values);
    EXPECT_EQ(emit_triton(chosen).text, emit_triton(chosen).text);
  }
}

}  // namespace
}  // namespace syno
