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

struct Judged {
  syno::Operator op;
  syno::FitMask fit = 0;
};

/// Drawn without replacement from all structures, with a fixed seed.
const std::vector<Judged>& population() {
  static const std::vector<Judged> drawn = [] {
    syno::EnumerateOptions options;
    options.max_depth = options.first_depth = 6;
    options.max_nodes = 1'000'000;
    options.quality = options.keys = false;
    const syno::Specification& spec = resnet18();
    const syno::Space space = syno::list_space(spec, options);
    const syno::UniformDraws draws(space.operator_count(), 1);
    std::vector<Judged> result;
    for (std::uint64_t n = 0; n < std::min(kOperators, space.operator_count()); ++n) {
      result.push_back({space.op(spec, draws.at(n)).in_table(spec.variables()), 0});
      result.back().fit = syno::judged_fit(result.back().op, spec);
    }
    return result;
  }();
  return drawn;
}

/// Items are operators. From an empty memory each time.
void judge_from_nothing(benchmark::State& state) {
  std::int64_t count = 0;
  const auto& operators = population();
  for (auto _ : state) {
    syno::OperatorJudge judge(resnet18());
    for (const Judged& judged : operators)
      benchmark::DoNotOptimize(judge.first_reason(judged.op, judged.fit));
    count += static_cast<std::int64_t>(operators.size());
  }
  state.SetItemsProcessed(count);
}
BENCHMARK(judge_from_nothing)->Unit(benchmark::kMillisecond);

/// Items are operators. The parts of all of them are known.
void judge_again(benchmark::State& state) {
  std::int64_t count = 0;
  const auto& operators = population();
  syno::OperatorJudge judge(resnet18());
  for (const Judged& judged : operators) judge.first_reason(judged.op, judged.fit);
  for (auto _ : state) {
    for (const Judged& judged : operators)
      benchmark::DoNotOptimize(judge.first_reason(judged.op, judged.fit));
    count += static_cast<std::int64_t>(operators.size());
  }
  state.SetItemsProcessed(count);
}
BENCHMARK(judge_again)->Unit(benchmark::kMillisecond);

/// Items are operators: every reason against each of a hundred, with its text.
void list_refusals(benchmark::State& state) {
  std::int64_t count = 0;
  const auto& operators = population();
  for (auto _ : state) {
    for (std::size_t i = 0; i < std::min<std::size_t>(100, operators.size()); ++i, ++count)
      benchmark::DoNotOptimize(syno::quality_and_cost_refusals(operators[i].op, resnet18()));
  }
  state.SetItemsProcessed(count);
}
BENCHMARK(list_refusals)->Unit(benchmark::kMillisecond);

}  // namespace
