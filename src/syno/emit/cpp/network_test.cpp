#include "syno/emit/cpp/network.h"

#include <gtest/gtest.h>

namespace syno {
namespace {

// Two layers that share a kernel, and a step of its own.
NetworkProgram small() {
  NetworkProgram program;
  program.name = "tiny";
  program.file = "tiny.cpp";
  program.library = "tiny.so";
  program.kernels = {{"// the kernel"}};
  program.layers = {{0, {6, 2}}, {0, {}}};
  NetworkCall first;
  first.x = {"x", 16};
  first.y = {"arena", 16};
  NetworkCall second = first;
  second.layer = 1;
  second.samples = 2;
  second.x = {"arena", 16};
  second.channel = {"(constants + 16)", 8};
  second.y = {"y", 16};
  program.steps = {
      {"first", "", first}, {"second", "", second}, {"third", "y[0] = 0;\ny[1] = 1;", {}}};
  program.inputs = {{{2, 2}}};
  program.outputs = {{4}};
  program.arena = 16;
  program.words = 8;
  program.fingerprint = 0xABC;
  return program;
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Network, FillsEveryNameOfItsTexts) {
  const NetworkSource made = emit_network(small());
  EXPECT_FALSE(holds(made.code, "@"));
  EXPECT_FALSE(holds(made.header, "@"));
  EXPECT_EQ(made.parts, 1U);
  EXPECT_TRUE(holds(made.code, "[N, 2, 2] float32 -> [N, 4] float32"));
  EXPECT_TRUE(holds(made.code, "head.fingerprint != 0x0000000000000abcULL"));
  EXPECT_TRUE(holds(made.header, "int tiny_run(struct tiny_network* network, const float* x"));
}

TEST(Network, CallsKernelsForEachSample) {
  const std::string code = emit_network(small()).code;
  EXPECT_TRUE(holds(code, "    layer(0, 1, x, 16, nullptr, nullptr, arena, 16);"));
  EXPECT_TRUE(holds(code, "    layer(1, 2, arena, 8, (constants + 16), nullptr, y, 8);"));
  EXPECT_TRUE(
      holds(code, "  // third\n  void step_2() const {\n    y[0] = 0;\n    y[1] = 1;\n  }"));
  EXPECT_TRUE(holds(code, "weights[] = {values.get() + 0, values.get() + 6};"));
  EXPECT_TRUE(holds(code, "read_float32(values.get() + 6, 2)) return cut(given);"));
  EXPECT_TRUE(holds(code, "weights[] = {nullptr};"));
  EXPECT_TRUE(holds(code, "kKernelOf[] = {0, 0, 0};"));
}

TEST(Network, ComputesLayersTogetherWhoseWeightsAreLargerThanTheirMaps) {
  NetworkProgram program = small();
  EXPECT_TRUE(holds(emit_network(program).code, "kGroups[] = {{0, 3, false}};"));
  EXPECT_TRUE(holds(emit_network(program).code, "kTogether = 1;"));
  program.layers[0].weights = {9};
  const std::string code = emit_network(program).code;
  EXPECT_TRUE(holds(code, "kGroups[] = {{0, 1, true}, {1, 3, false}};"));
  EXPECT_TRUE(holds(code, "kTogether = 8;"));
  program.arena = 3 << 20;
  EXPECT_TRUE(holds(emit_network(program).code, "kTogether = 2;"));
}

TEST(Network, OfTokensChecksThem) {
  NetworkProgram program = small();
  EXPECT_FALSE(holds(emit_network(program).code, "the token id"));
  program.inputs[0].tokens = 77;
  const NetworkSource made = emit_network(program);
  EXPECT_TRUE(holds(made.code,
                    "for (long i = 0; i < batch * 4; ++i)\n"
                    "    if (all.x[i] < 0 || all.x[i] >= 77)"));
  EXPECT_TRUE(holds(made.code, "const std::int64_t* x"));
  EXPECT_TRUE(holds(made.header, "const int64_t* x"));
}

TEST(Network, HasSeveralInputsAndOutputs) {
  NetworkProgram program = small();
  program.inputs = {{{2, 2}}, {{3}, 7}, {{5}, 0, true}};
  program.outputs = {{4}, {}};
  const NetworkSource made = emit_network(program);
  EXPECT_FALSE(holds(made.code, "@"));
  EXPECT_TRUE(holds(made.header,
                    "int tiny_run(struct tiny_network* network, const float* x0, const int64_t* "
                    "x1, const float* x2, float* y0, float* y1, long batch, int threads);"));
  EXPECT_TRUE(holds(made.header,
                    "[N, 2, 2] float32, [N, 3] int64, [5] float32 -> [N, 4] float32, [N] float32"));
  EXPECT_TRUE(holds(made.code, "return {x0 + n * 4, x1 + n * 3, x2, y0 + n * 4, y1 + n * 1};"));
  EXPECT_TRUE(holds(made.code, "!x0 || !x1 || !x2 || !y0 || !y1"));
}

TEST(Network, AsAProgramHasTheKernelsOfItsHost) {
  NetworkProgram program = small();
  program.kernels.clear();
  const std::string code = emit_program(program);
  EXPECT_FALSE(holds(code, "@"));
  EXPECT_FALSE(holds(code, "tiny"));
  EXPECT_TRUE(holds(code, "const float* const* const constants = net.constants;"));
  EXPECT_TRUE(holds(code, "{static_cast<const float*>(inputs[0]), outputs[0]}"));
}

TEST(Network, HasSoManyPiecesAsKernelsUpToEight) {
  NetworkProgram program = small();
  program.kernels.assign(10, {"// a kernel"});
  const NetworkSource made = emit_network(program);
  EXPECT_EQ(made.parts, 8U);
  EXPECT_TRUE(holds(made.code, "SYNO_PART == 2\n// a kernel\n// a kernel\n#endif"));
  EXPECT_TRUE(holds(made.code, "SYNO_PART == 3\n// a kernel\n#endif"));
  program.kernels.clear();
  program.layers.clear();
  program.steps.resize(3);
  program.steps.erase(program.steps.begin(), program.steps.begin() + 2);
  EXPECT_EQ(emit_network(program).parts, 0U);
}

}  // namespace
}  // namespace syno
