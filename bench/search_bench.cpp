// What a search does again and again: list the operators of a small specification, tell them apart, cost them.
#include <benchmark/benchmark.h>

#include "syno/key/key.h"
#include "syno/plan/plan.h"
#include "syno/space/enumerate.h"
#include "syno/spec/specification.h"

namespace {

syno::Specification small_convolutions() {
  syno::SpecificationSource source;
  source.input = "[N, C_in: unordered, H, W]";
  source.output = "[N, C_out: unordered, H, W]";
  source.primary = {"N: 0", "C_in: 2", "C_out: 2", "H: 0", "W: 0"};
  source.coefficient = {"k=3: 2"};
  source.bindings = {syno::Binding::parse("N=1, C_in=16, C_out=16, H=8, W=8")};
  source.passed_through = {{0, 0}};
  return syno::Specification(source);
}

const std::vector<syno::Operator>& some_operators() {
  static const std::vector<syno::Operator> operators = [] {
    const syno::Specification spec = small_convolutions();
    std::vector<syno::Operator> all;
    for (const auto& found : syno::enumerate(spec, {.max_depth = 6, .max_nodes = 20'000}).operators)
      all.push_back(found.op.in_table(spec.variables()));
    return all;
  }();
  return operators;
}

/// Items are nodes: partial graphs visited.
void enumerate_operators(benchmark::State& state) {
  const syno::Specification spec = small_convolutions();
  std::int64_t nodes = 0;
  for (auto _ : state)
    nodes += syno::enumerate(spec, {.max_depth = state.range(0), .max_nodes = 1'000'000}).nodes;
  state.SetItemsProcessed(nodes);
}
BENCHMARK(enumerate_operators)->Arg(5)->Arg(6)->Unit(benchmark::kMillisecond);

/// Items are operators.
void key_operators(benchmark::State& state) {
  const syno::Specification spec = small_convolutions();
  std::int64_t count = 0;
  for (auto _ : state) {
    for (const syno::Operator& op : some_operators()) {
      benchmark::DoNotOptimize(syno::semantic_key(op, spec.bindings()));
      ++count;
    }
  }
  state.SetItemsProcessed(count);
}
BENCHMARK(key_operators)->Unit(benchmark::kMillisecond);

/// Items are operators.
void plan_operators(benchmark::State& state) {
  const syno::Specification spec = small_convolutions();
  std::int64_t count = 0;
  for (auto _ : state) {
    for (const syno::Operator& op : some_operators()) {
      benchmark::DoNotOptimize(syno::plan(op, spec.bindings().front()));
      ++count;
    }
  }
  state.SetItemsProcessed(count);
}
BENCHMARK(plan_operators)->Unit(benchmark::kMillisecond);

}  // namespace
