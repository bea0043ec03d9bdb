// Syno from C++: an operator is read from text, planned and evaluated by its definition, and the operators one move away
// are listed; then operators for the same layer are searched, and the one with the fewest MACs is printed as a PyTorch module.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <numeric>
#include <vector>

#include "syno/emit/pytorch/pytorch.h"
#include "syno/graph/operator.h"
#include "syno/interp/interpreter.h"
#include "syno/notation/formula.h"
#include "syno/plan/plan.h"
#include "syno/search/moves.h"
#include "syno/space/enumerate.h"
#include "syno/spec/specification.h"

namespace {

// A convolution with a window along the height alone: kernel [k, 1].
constexpr const char* kText = R"(syno operator 1
out [N, C_out: unordered, H, W]
in [N, C_in: unordered, H, W]
reduce C_in -> r0
reduce k -> r1
contract o1:drop r0:keep r1:keep
unfold o2 r1 -> c0
match o0 r0 c0 o3
)";

void evaluate() {
  const syno::Operator op = syno::Operator::parse(kText);
  const syno::Values values =
      syno::Binding::parse("N=1, C_in=3, C_out=2, H=4, W=4, k=3").resolve(*op.variables());

  std::printf("%s\n%s\n", op.text().c_str(), syno::plan(op, values).text().c_str());

  const syno::OperatorShapes shapes = syno::operator_shapes(op, values);
  auto x = syno::zeros<std::int64_t>(shapes.input);
  std::iota(x.data.begin(), x.data.end(), 1);
  std::vector<syno::Tensor<std::int64_t>> weights;
  for (const std::vector<std::int64_t>& shape : shapes.weights) {
    weights.push_back(syno::zeros<std::int64_t>(shape));
    std::fill(weights.back().data.begin(), weights.back().data.end(), 1);
  }
  const auto y = syno::interpret(op, values, x, weights);
  std::printf("y %s, first row:", syno::shape_text(y.shape).c_str());
  for (std::size_t i = 0; i < 4; ++i) std::printf(" %lld", static_cast<long long>(y.data[i]));
  std::printf("\n");
}

void list_moves() {
  const auto near = syno::moved_operators(syno::Operator::parse(kText), {{"k", 3}});
  std::printf("\n%zu operators one move away:\n", near.size());
  for (const syno::MovedOperator& each : near) std::printf("%s\n", syno::formula(each.op).c_str());
}

void search() {
  syno::SpecificationSource source;
  source.input = "[N, C_in: unordered, H, W]";
  source.output = "[N, C_out: unordered, H, W]";
  source.primary = {"N: 0", "C_in: 2", "C_out: 2", "H: 0", "W: 0"};
  source.coefficient = {"k=3: 2"};
  source.bindings = {syno::Binding::parse("N=1, C_in=16, C_out=16, H=8, W=8")};
  source.passed_through = {{0, 0}};
  source.limits.max_depth = 6;
  const syno::Specification spec(source);

  const syno::Enumeration found = syno::enumerate(spec, {.max_nodes = 20'000});
  if (found.operators.empty()) throw syno::UserError("no operator was found");
  const auto cost = [&](const syno::FoundOperator& candidate) {
    return syno::macs(candidate.op.in_table(spec.variables()), spec.bindings().front());
  };
  const auto best = std::ranges::min_element(found.operators, {}, cost);
  std::printf("\n%zu operators in %lld nodes; the cheapest:\n\n%s\n", found.operators.size(),
              static_cast<long long>(found.nodes), best->op.text().c_str());
  const syno::Plan plan = syno::plan(best->op.in_table(spec.variables()), spec.bindings().front());
  std::printf("%s", syno::emit_pytorch(plan).text.c_str());
}

}  // namespace

int main() {
  try {
    evaluate();
    list_moves();
    search();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
