// Samples from an enumerated space, and the space itself as a file.
#include <benchmark/benchmark.h>
#include <sstream>

#include "syno/space/sampling.h"
#include "syno/space/space_file.h"

#include "population.h"

namespace {

using syno::bench::listed_to_8;
using syno::bench::resnet18;

/// Items are samples without replacement, until all are sampled, each time with another seed.
void sample_uniformly(benchmark::State& state) {
  const syno::Space& space = listed_to_8();
  std::uint64_t seed = 0;
  std::int64_t sampled = 0;
  for (auto _ : state) {
    const syno::UniformSamples samples(space.operator_count(), seed++);
    for (std::uint64_t n = 0; n < samples.count(); ++n) benchmark::DoNotOptimize(samples.at(n));
    sampled += static_cast<std::int64_t>(samples.count());
  }
  state.SetItemsProcessed(sampled);
}
BENCHMARK(sample_uniformly)->Unit(benchmark::kMillisecond);

/// Items are operators that were sampled and built.
void sample_and_build(benchmark::State& state) {
  const syno::Space& space = listed_to_8();
  const syno::UniformSamples samples(space.operator_count(), 1);
  std::uint64_t n = 0;
  for (auto _ : state)
    benchmark::DoNotOptimize(space.op(resnet18(), samples.at(n++ % samples.count())));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(sample_and_build);

/// Items are samples, 100 at once, by what is given: none, macs, params, primitives.
void sample_strata(benchmark::State& state) {
  const auto by = static_cast<syno::Stratify>(state.range(0));
  std::uint64_t seed = 0;
  for (auto _ : state)
    benchmark::DoNotOptimize(syno::sample_operators(listed_to_8(), resnet18(), 100, seed++, by));
  state.SetItemsProcessed(state.iterations() * 100);
}
BENCHMARK(sample_strata)->DenseRange(0, 3)->Unit(benchmark::kMillisecond);

/// Items are partial graphs.
void save_space(benchmark::State& state) {
  std::size_t bytes = 0;
  for (auto _ : state) {
    std::ostringstream out;
    syno::save_space(out, listed_to_8(), resnet18(), syno::RuleSet());
    bytes = out.str().size();
  }
  const auto nodes = static_cast<std::int64_t>(listed_to_8().node_count());
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * nodes);
  state.counters["bytes_a_node"] = static_cast<double>(bytes) / static_cast<double>(nodes);
}
BENCHMARK(save_space)->Unit(benchmark::kMillisecond);

/// Items are partial graphs.
void load_space(benchmark::State& state) {
  std::ostringstream out;
  syno::save_space(out, listed_to_8(), resnet18(), syno::RuleSet());
  const std::string file = out.str();
  for (auto _ : state) {
    std::istringstream in(file);
    benchmark::DoNotOptimize(syno::load_space(in, "bench", resnet18(), syno::RuleSet()));
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) *
                          static_cast<std::int64_t>(listed_to_8().node_count()));
}
BENCHMARK(load_space)->Unit(benchmark::kMillisecond);

}  // namespace
