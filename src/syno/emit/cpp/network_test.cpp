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
  program.kernels = {"// the kernel"};
  program.layers = {{0, {6, 2}}, {0, {}}};
  NetworkCall first;
  first.x = {"x", 4};
  first.y = {"arena", 4};
  NetworkCall second = first;
  second.layer = 1;
  second.samples = 2;
  second.x = {"arena", 4};
  second.channel = {"(constants + 16)", 2};
  second.y = {"y", 4};
  program.steps = {
      {"first", "", first}, {"second", "", second}, {"third", "y[0] = 0;\ny[1] = 1;", {}}};
  program.input = {2, 2};
  program.output = {4};
  program.arena = 16;
  program.floats = 8;
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
  EXPECT_TRUE(holds(made.code, "[N, 2, 2] -> [N, 4]"));
  EXPECT_TRUE(holds(made.code, "header.fingerprint != 0x0000000000000abcULL"));
  EXPECT_TRUE(holds(made.header, "int tiny_run(struct tiny_network* network, const float* x"));
}

TEST(Network, CallsKernelsForEachSample) {
  const std::string code = emit_network(small()).code;
  EXPECT_TRUE(holds(code, "    tiny_k0_phase(phase, x, net.packed[0], nullptr, nullptr, arena,"));
  EXPECT_TRUE(holds(code,
                    "    for (long sample = 0; sample < 2; ++sample) {\n"
                    "      if (sample > 0) wait_for_team(team);\n"));
  EXPECT_TRUE(holds(code,
                    "tiny_k0_phase(phase, arena + sample * 2, net.packed[1], "
                    "(constants + 16), nullptr, y + sample * 2,"));
  EXPECT_TRUE(holds(code, "  {  // 2: third\n    y[0] = 0;\n    y[1] = 1;\n    wait_for_team"));
  EXPECT_TRUE(holds(code, "weights[] = {from + 0, from + 6};"));
  EXPECT_TRUE(holds(code, "weights[] = {nullptr};"));
}

TEST(Network, OfTokensChecksThem) {
  NetworkProgram program = small();
  EXPECT_FALSE(holds(emit_network(program).code, "the token id"));
  program.tokens = 77;
  const NetworkSource made = emit_network(program);
  EXPECT_TRUE(holds(made.code,
                    "for (long i = 0; i < batch * 4; ++i) {\n"
                    "    if (x[i] >= 0 && x[i] < 77) continue;"));
  EXPECT_TRUE(holds(made.code, "const std::int64_t* x"));
  EXPECT_TRUE(holds(made.header, "const int64_t* x"));
}

TEST(Network, HasSoManyPiecesAsKernelsUpToEight) {
  NetworkProgram program = small();
  program.kernels.assign(10, "// a kernel");
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
