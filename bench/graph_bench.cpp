// Reading, writing and bringing an operator into canonical form: what every stored or proposed operator costs.
#include <benchmark/benchmark.h>

#include "syno/graph/canonical.h"
#include "syno/graph/operator.h"

namespace {

constexpr const char* kConv2d = R"(syno operator 1
out [N, C_out: unordered, H, W]
in [N, C_in: unordered, H, W]
reduce C_in -> r0
reduce k -> r1
reduce k -> r2
contract o1:drop r0:keep r1:keep r2:keep
unfold o2 r1 -> c0
unfold o3 r2 -> c1
match o0 r0 c0 c1
)";

void parse_operator(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(syno::Operator::parse(kConv2d));
}
BENCHMARK(parse_operator);

void print_operator(benchmark::State& state) {
  const syno::Operator op = syno::Operator::parse(kConv2d);
  for (auto _ : state) benchmark::DoNotOptimize(op.text());
}
BENCHMARK(print_operator);

void hash_structure(benchmark::State& state) {
  const syno::Operator op = syno::Operator::parse(kConv2d);
  for (auto _ : state) benchmark::DoNotOptimize(syno::structure_hash(op.graph()));
}
BENCHMARK(hash_structure);

}  // namespace
