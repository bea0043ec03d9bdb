// Judging complete operators: structures of ResNet-18's space up to six primitives, good and bad alike.
#include <benchmark/benchmark.h>

#include "syno/quality/quality.h"
#include "syno/space/accept.h"
#include "syno/space/enumerate.h"
#include "syno/spec/presets.h"

namespace {

constexpr std::size_t kOperators = 5000;

const syno::Specification& resnet18() {
  static const syno::Specification spec(syno::preset("paper/resnet18"));
  return spec;
}

struct Checked {
  syno::Operator op;
  syno::FitMask fit = 0;
};

/// Drawn without replacement from all structures, with a fixed seed.
const std::vector<Checked>& population() {
  static const std::vector<Checked> sampled = [] {
    syno::EnumerateOptions options;
    options.max_depth = options.first_depth = 6;
    options.max_nodes = 1'000'000;
    options.quality = options.keys = false;
    const syno::Specification& spec = resnet18();
    const syno::Space space = syno::enumerate_space(spec, options);
    const syno::UniformSamples samples(space.operator_count(), 1);
    std::vector<Checked> result;
    for (std::uint64_t n = 0; n < std::min(kOperators, space.operator_count()); ++n) {
      result.push_back({space.op(spec, samples.at(n)).in_table(spec.variables()), 0});
      result.back().fit = syno::checked_fit(result.back().op, spec);
    }
    return result;
  }();
  return sampled;
}

/// Items are operators. From an empty memory each time.
void check_from_nothing(benchmark::State& state) {
  std::int64_t count = 0;
  const auto& operators = population();
  for (auto _ : state) {
    syno::OperatorChecker checker(resnet18());
    for (const Checked& checked : operators)
      benchmark::DoNotOptimize(checker.rejection_reason(checked.op, checked.fit));
    count += static_cast<std::int64_t>(operators.size());
  }
  state.SetItemsProcessed(count);
}
BENCHMARK(check_from_nothing)->Unit(benchmark::kMillisecond);

/// Items are operators. The parts of all of them are known.
void check_again(benchmark::State& state) {
  std::int64_t count = 0;
  const auto& operators = population();
  syno::OperatorChecker checker(resnet18());
  for (const Checked& checked : operators) checker.rejection_reason(checked.op, checked.fit);
  for (auto _ : state) {
    for (const Checked& checked : operators)
      benchmark::DoNotOptimize(checker.rejection_reason(checked.op, checked.fit));
    count += static_cast<std::int64_t>(operators.size());
  }
  state.SetItemsProcessed(count);
}
BENCHMARK(check_again)->Unit(benchmark::kMillisecond);

/// Items are operators: every reason against each of a hundred, with its text.
void list_rejections(benchmark::State& state) {
  std::int64_t count = 0;
  const auto& operators = population();
  for (auto _ : state) {
    for (std::size_t i = 0; i < std::min<std::size_t>(100, operators.size()); ++i, ++count)
      benchmark::DoNotOptimize(syno::quality_and_cost_rejections(operators[i].op, resnet18()));
  }
  state.SetItemsProcessed(count);
}
BENCHMARK(list_rejections)->Unit(benchmark::kMillisecond);

}  // namespace
