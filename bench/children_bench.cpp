// Children of partial graphs and the completion bound: what a search does at every node.
#include <benchmark/benchmark.h>

#include "syno/space/children.h"
#include "syno/space/live_steps.h"
#include "syno/support/random.h"

#include "population.h"

namespace {

using syno::bench::resnet18;

// Ways to operators that a search takes: every graph on them.
const std::vector<syno::Graph>& graphs() {
  static const std::vector<syno::Graph> all = [] {
    const syno::Space& space = syno::bench::listed_to_8();
    const syno::UniformSamples samples(space.operator_count(), 1);
    std::vector<syno::Graph> found;
    for (std::uint64_t n = 0; n < 200; ++n) {
      std::uint32_t node = space.operators[samples.at(n)].node;
      for (; node != 0; node = space.nodes[node].parent)
        found.push_back(space.graph(resnet18(), node));
    }
    return found;
  }();
  return all;
}

/// Items are children: moves that specification, bound and rules let pass. With a table of bounds from before.
void live_children(benchmark::State& state) {
  const syno::RuleSet rules;
  syno::LiveSteps steps(resnet18(), rules, syno::BoundMode::kFull);
  std::vector<syno::Position> positions;
  for (const syno::Graph& graph : graphs()) positions.push_back(steps.position(graph));
  for (const syno::Position& position : positions) steps.from(position, 8);
  std::int64_t children = 0;
  std::int64_t nodes = 0;
  for (auto _ : state) {
    for (const syno::Position& position : positions)
      children += static_cast<std::int64_t>(steps.from(position, 8).size());
    nodes += static_cast<std::int64_t>(positions.size());
  }
  state.SetItemsProcessed(children);
  state.counters["nodes"] =
      benchmark::Counter(static_cast<double>(nodes), benchmark::Counter::kIsRate);
}
BENCHMARK(live_children)->Unit(benchmark::kMillisecond);

/// Items are children as explanations ask for them, with every reason by name.
void named_children(benchmark::State& state) {
  syno::ChildGenerator generator(resnet18(), syno::RuleSet());
  std::vector<syno::PartialGraph> partials;
  for (std::size_t i = 0; i < graphs().size(); i += 10) {
    syno::PartialGraph partial = generator.root();
    for (const syno::Step& step : graphs()[i].steps()) partial = generator.child(partial, step);
    partials.push_back(std::move(partial));
  }
  std::int64_t children = 0;
  for (auto _ : state) {
    for (const syno::PartialGraph& partial : partials)
      children += static_cast<std::int64_t>(generator.steps(partial, 8).size());
  }
  state.SetItemsProcessed(children);
}
BENCHMARK(named_children)->Unit(benchmark::kMillisecond);

// States one move behind the graphs: what the bound is asked about.
std::vector<syno::State> asked_states(syno::StateSpace& space) {
  std::vector<syno::State> states;
  std::vector<syno::Move> moves;
  for (const syno::Graph& graph : graphs()) {
    const syno::State state = space.replay(graph);
    space.moves(state, true, moves);
    for (const syno::Move& move : moves) {
      syno::State child = state;
      if (!move.is_reduction() && space.advance(child, move).empty()) states.push_back(child);
    }
  }
  return states;
}

/// Items are answers of the bound, from an empty table each time; `depth` is the limit.
void bound_from_nothing(benchmark::State& state) {
  const syno::RuleSet rules;
  syno::StateSpace space(resnet18());
  const std::vector<syno::State> states = asked_states(space);
  const auto limit = static_cast<int>(state.range(0));
  std::int64_t alive = 0;
  std::size_t entries = 0;
  for (auto _ : state) {
    syno::CompletionBound bound(space, rules, syno::BoundMode::kFull);
    alive = 0;
    for (const syno::State& child : states)
      alive += child.depth <= limit && bound.may_complete(child, limit - child.depth);
    entries = bound.entries();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * states.size()));
  state.counters["alive"] = static_cast<double>(alive) / static_cast<double>(states.size());
  state.counters["entries"] = static_cast<double>(entries);
}
BENCHMARK(bound_from_nothing)->Arg(8)->Arg(12)->Unit(benchmark::kMillisecond);

/// Items are answers that the table holds already.
void bound_again(benchmark::State& state) {
  const syno::RuleSet rules;
  syno::StateSpace space(resnet18());
  const std::vector<syno::State> states = asked_states(space);
  syno::CompletionBound bound(space, rules, syno::BoundMode::kFull);
  const auto ask = [&] {
    for (const syno::State& child : states) {
      if (child.depth <= 8) benchmark::DoNotOptimize(bound.may_complete(child, 8 - child.depth));
    }
  };
  ask();
  for (auto _ : state) ask();
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * states.size()));
}
BENCHMARK(bound_again)->Unit(benchmark::kMillisecond);

/// Items are operators that walks met, repeats not counted; two thousand particles to depth 12.
void walk_to_12(benchmark::State& state) {
  syno::WalkOptions options;
  options.walks = 2048;
  std::int64_t found = 0;
  for (auto _ : state)
    found += static_cast<std::int64_t>(syno::random_walks(resnet18(), options).operators.size());
  state.SetItemsProcessed(found);
}
BENCHMARK(walk_to_12)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
