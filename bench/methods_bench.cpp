// Search methods: how long `ask` takes if 64 workers share one search of 100,000 partial graphs.
#include <algorithm>
#include <benchmark/benchmark.h>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "syno/search/evolution.h"
#include "syno/search/graph_search.h"
#include "syno/search/local_search.h"
#include "syno/search/tree_search.h"
#include "syno/support/error.h"
#include "syno/support/mix.h"
#include "syno/support/random.h"

namespace {

using namespace syno;

constexpr std::size_t kOperators = 12'000;
constexpr std::size_t kWorkers = 64;
constexpr std::size_t kAsks = 60;  // of each worker
constexpr std::chrono::milliseconds kTrial{20};

/// Operators of six independent steps out of thirty: every subset of them is a partial graph.
const std::vector<LabeledSteps>& operators() {
  static const std::vector<LabeledSteps> made = [] {
    std::vector<LabeledSteps> list;
    CounterRandom random(1, 0);
    for (std::size_t i = 0; i < kOperators; ++i) {
      std::vector<std::uint64_t> labels;
      while (labels.size() < 6) {
        const std::uint64_t label = random.below(30);
        if (std::find(labels.begin(), labels.end(), label) == labels.end()) labels.push_back(label);
      }
      LabeledSteps steps;
      for (const std::uint64_t label : labels)
        steps.push_back({static_cast<std::uint8_t>(label % kPrimitiveCount), label, mix_bits(label),
                         mix_bits(label + 1000), 0});
      steps.push_back({kMatchStep, 2000, i, mix_bits(i + 3000), 63});
      list.push_back(std::move(steps));
    }
    return list;
  }();
  return made;
}

const std::shared_ptr<const Lattice>& lattice() {
  static const auto made = std::make_shared<const Lattice>(operators());
  ensure(made->node_count() >= 100'000, "methods_bench: too few partial graphs");
  return made;
}

/// Each worker asks, works for 20 ms, and answers. Counters are milliseconds of one `ask`.
void measure(benchmark::State& state, SearchMethod& method) {
  std::vector<std::vector<double>> spent(kWorkers);
  std::vector<std::thread> threads;
  for (std::size_t worker = 0; worker < kWorkers; ++worker)
    threads.emplace_back([&, worker] {
      for (std::size_t i = 0; i < kAsks; ++i) {
        const auto before = std::chrono::steady_clock::now();
        const auto op = method.ask(worker + i * kWorkers);
        const std::chrono::duration<double, std::milli> time =
            std::chrono::steady_clock::now() - before;
        spent[worker].push_back(time.count());
        std::this_thread::sleep_for(kTrial);
        method.answer(*op, static_cast<double>(mix_bits(*op) >> 11) * 0x1.0p-53);
      }
    });
  for (std::thread& thread : threads) thread.join();
  std::vector<double> all;
  for (const auto& each : spent) all.insert(all.end(), each.begin(), each.end());
  std::sort(all.begin(), all.end());
  state.counters["median_ms"] = all[all.size() / 2];
  state.counters["p99_ms"] = all[all.size() * 99 / 100];
  state.counters["most_ms"] = all.back();
  state.counters["graphs"] = static_cast<double>(lattice()->node_count());
}

void ask_local(benchmark::State& state) {
  const auto neighbors = std::make_shared<const Neighbors>(operators());
  for (auto _ : state) {
    LocalSearch method(neighbors, 1, LocalSearchOptions());
    measure(state, method);
  }
}
BENCHMARK(ask_local)->Iterations(1)->UseRealTime()->Unit(benchmark::kMillisecond);

void ask_evolution(benchmark::State& state) {
  const auto neighbors = std::make_shared<const Neighbors>(operators());
  for (auto _ : state) {
    Evolution method(neighbors, 1, EvolutionOptions());
    measure(state, method);
  }
}
BENCHMARK(ask_evolution)->Iterations(1)->UseRealTime()->Unit(benchmark::kMillisecond);

void ask_tree(benchmark::State& state) {
  const auto shared = std::make_shared<const std::vector<LabeledSteps>>(operators());
  for (auto _ : state) {
    TreeSearch method(lattice(), shared, 1, TreeSearchOptions());
    measure(state, method);
  }
}
BENCHMARK(ask_tree)->Iterations(1)->UseRealTime()->Unit(benchmark::kMillisecond);

void ask_graph(benchmark::State& state) {
  for (auto _ : state) {
    GraphSearch method(lattice(), 1, GraphSearchOptions());
    measure(state, method);
  }
}
BENCHMARK(ask_graph)->Iterations(1)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
