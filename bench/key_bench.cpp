// Semantic keys a second: what the operators of a search cost, alone, in a row, and again.
#include <benchmark/benchmark.h>

#include "syno/interp/random_graph.h"
#include "syno/interp/zoo_texts_test.h"
#include "syno/key/key.h"
#include "syno/space/enumerate.h"

#include "population.h"

namespace {

using syno::bench::resnet18;

// The population is fixed: all operators of paper/resnet18 with up to 6 primitives, quality aside, one
// of each key.
const std::vector<syno::Operator>& resnet18_operators() {
  static const std::vector<syno::Operator> operators = [] {
    std::vector<syno::Operator> all;
    syno::EnumerateOptions options;
    options.max_depth = 6;
    options.max_nodes = 1'000'000;
    options.quality = false;
    const auto found = syno::enumerate(resnet18(), options);
    for (const auto& one : found.operators) all.push_back(one.op.in_table(resnet18().variables()));
    return all;
  }();
  return operators;
}

void report(benchmark::State& state, std::int64_t keys, const syno::KeyCounts& counts) {
  state.SetItemsProcessed(keys);
  state.counters["fallbacks"] = static_cast<double>(counts.fallbacks);
  state.counters["normal_forms"] = static_cast<double>(counts.normal_forms);
}

/// Items are operators; nothing is kept from one to the next.
void keys_alone(benchmark::State& state) {
  std::int64_t count = 0;
  const auto& operators = resnet18_operators();
  const std::size_t step = operators.size() / 500 + 1;
  for (auto _ : state) {
    for (std::size_t i = 0; i < operators.size(); i += step, ++count)
      benchmark::DoNotOptimize(syno::semantic_key(operators[i], resnet18().bindings()));
  }
  state.SetItemsProcessed(count);
}
BENCHMARK(keys_alone)->Unit(benchmark::kMillisecond);

/// Items are operators; one Keyer from cold, as in a search.
void keys_of_a_search(benchmark::State& state) {
  std::int64_t count = 0;
  syno::KeyCounts counts;
  const auto& operators = resnet18_operators();
  for (auto _ : state) {
    syno::Keyer keyer(resnet18().variables(), resnet18().bindings());
    for (const syno::Operator& op : operators) benchmark::DoNotOptimize(keyer.key(op));
    count += static_cast<std::int64_t>(operators.size());
    counts = keyer.counts();
  }
  report(state, count, counts);
}
BENCHMARK(keys_of_a_search)->Unit(benchmark::kMillisecond);

void keys_of_all(benchmark::State& state, const std::vector<syno::Operator>& operators) {
  std::int64_t count = 0;
  syno::KeyCounts counts;
  for (auto _ : state) {
    syno::Keyer keyer(resnet18().variables(), resnet18().bindings());
    for (const syno::Operator& op : operators)
      benchmark::DoNotOptimize(keyer.key(op.graph(), op.input(), op.match()));
    count += static_cast<std::int64_t>(operators.size());
    counts = keyer.counts();
  }
  report(state, count, counts);
  state.counters["operators"] = static_cast<double>(operators.size());
}

/// Items are operators of 8 primitives, of 11 or 12 primitives; one Keyer from cold, all bindings.
void keys_at_8(benchmark::State& state) {
  keys_of_all(state, syno::bench::operators_of_8());
}
void keys_at_12(benchmark::State& state) {
  keys_of_all(state, syno::bench::operators_of_12());
}
BENCHMARK(keys_at_8)->Unit(benchmark::kMillisecond);
BENCHMARK(keys_at_12)->Unit(benchmark::kMillisecond);

/// Items are operators; the Keyer knows all their sections.
void keys_once_more(benchmark::State& state) {
  std::int64_t count = 0;
  const auto& operators = resnet18_operators();
  syno::Keyer keyer(resnet18().variables(), resnet18().bindings());
  for (const syno::Operator& op : operators) keyer.key(op);
  for (auto _ : state) {
    for (const syno::Operator& op : operators) benchmark::DoNotOptimize(keyer.key(op));
    count += static_cast<std::int64_t>(operators.size());
  }
  report(state, count, keyer.counts());
}
BENCHMARK(keys_once_more)->Unit(benchmark::kMillisecond);

/// Items are operators of all kinds, each under its own bindings.
void keys_of_random_operators(benchmark::State& state) {
  syno::RandomOptions options;
  options.unordered = 0.3;
  std::vector<syno::RandomOperator> operators;
  for (std::uint64_t seed = 0; seed < 300; ++seed)
    operators.push_back(syno::random_operator(seed, options));
  std::int64_t count = 0;
  for (auto _ : state) {
    for (const auto& one : operators)
      benchmark::DoNotOptimize(syno::semantic_key(one.op, {one.values}));
    count += static_cast<std::int64_t>(operators.size());
  }
  state.SetItemsProcessed(count);
}
BENCHMARK(keys_of_random_operators)->Unit(benchmark::kMillisecond);

void keys_of(benchmark::State& state, const syno::ZooText& zoo) {
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
  keys_of(state, syno::kConv2d);
}
void operator1_key(benchmark::State& state) {
  keys_of(state, syno::kOperator1);
}
void window_by_rotation_key(benchmark::State& state) {
  keys_of(state, syno::kWindowByRotation);
}
BENCHMARK(conv2d_key)->Unit(benchmark::kMicrosecond);
BENCHMARK(operator1_key)->Unit(benchmark::kMicrosecond);
BENCHMARK(window_by_rotation_key)->Unit(benchmark::kMicrosecond);

}  // namespace
