// Semantic keys a second, under the seven bindings of ResNet-18 at 224 px.
#include <benchmark/benchmark.h>

#include "syno/access/key.h"
#include "syno/access/zoo_texts_test.h"

namespace {

void keys(benchmark::State& state, const syno::ZooText& zoo) {
  const syno::Operator op = syno::Operator::parse(zoo.text);
  std::vector<syno::Values> bindings;
  for (const char* layer :
       {"C_in=64, C_out=64, H=56", "C_in=64, C_out=128, H=28", "C_in=128, C_out=128, H=28",
        "C_in=128, C_out=256, H=14", "C_in=256, C_out=256, H=14", "C_in=256, C_out=512, H=7",
        "C_in=512, C_out=512, H=7"}) {
    std::map<std::string, std::int64_t> values = syno::Binding::parse(layer).values();
    values.insert({{"N", 1}, {"W", values.at("H")}, {"k", 3}, {"s", 2}, {"g", 32}});
    bindings.push_back(syno::Binding(values).resolve(*op.variables()));
  }
  for (auto _ : state) benchmark::DoNotOptimize(syno::semantic_key(op, bindings));
  state.SetItemsProcessed(state.iterations());
}

void conv2d_key(benchmark::State& state) {
  keys(state, syno::kConv2d);
}
void operator1_key(benchmark::State& state) {
  keys(state, syno::kOperator1);
}
void window_by_rotation_key(benchmark::State& state) {
  keys(state, syno::kWindowByRotation);
}
BENCHMARK(conv2d_key)->Unit(benchmark::kMicrosecond);
BENCHMARK(operator1_key)->Unit(benchmark::kMicrosecond);
BENCHMARK(window_by_rotation_key)->Unit(benchmark::kMicrosecond);

}  // namespace
