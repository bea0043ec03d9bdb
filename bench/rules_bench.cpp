// What a search asks the rules: about every step that the specification allows on top of graphs that no rule rejects.
#include <benchmark/benchmark.h>
#include <deque>

#include "syno/rules/catalogue.h"
#include "syno/spec/ledger.h"
#include "syno/spec/presets.h"
#include "syno/support/random.h"

namespace {

using syno::CoordinateId;
using syno::Graph;
using syno::Step;

struct Question {
  const Graph* graph;
  const syno::Ledger* before;
  Step step;
  syno::Ledger after;
};

// Random walks to depth 7 over the steps of paper/resnet18, with every step that was allowed on the way.
class Population {
 public:
  Population() : spec_(syno::preset("paper/resnet18")) {
    const syno::Variables& variables = *spec_.variables();
    for (const char* size :
         {"C_in", "k_1", "k_2", "s", "g", "g^-1*C_in", "s^-1*C_in", "g*s", "g^-1*C_out"})
      sizes_.push_back(syno::Size::parse(size, variables));
    for (std::uint64_t seed = 0; seed < 600; ++seed) walk(seed);
    for (const Question& question : questions_) {
      const auto* rule = rules_.rejecting_rule(
          {spec_, *question.graph, question.step, question.before, &question.after});
      (rule == nullptr ? free_ : rejected_).push_back(&question);
    }
  }

  const syno::Specification& spec() const { return spec_; }
  const syno::RuleSet& rules() const { return rules_; }
  const std::vector<const Question*>& rejected() const { return rejected_; }
  const std::vector<const Question*>& free() const { return free_; }

 private:
  void walk(std::uint64_t seed) {
    syno::CounterRandom random(seed, 0);
    graphs_.emplace_back(spec_.variables(), spec_.output());
    ledgers_.push_back(syno::start_ledger(spec_));
    for (int depth = 0; depth < 7; ++depth) {
      const Graph& graph = graphs_.back();
      const syno::Ledger& ledger = ledgers_.back();
      std::vector<Question> open;
      for (Step& step : candidates(graph, depth, random)) {
        syno::Ledger after = ledger;
        if (!syno::admit(spec_, graph, step, after).empty()) continue;
        questions_.push_back({&graph, &ledger, step, after});
        if (rules_.rejecting_rule({spec_, graph, step, &ledger, &after}) == nullptr)
          open.push_back(questions_.back());
      }
      if (open.empty()) return;
      const Question next = open[random.below(open.size())];
      graphs_.push_back(graph);
      graphs_.back().apply(next.step);
      ledgers_.push_back(next.after);
    }
  }

  std::vector<Step> candidates(const Graph& graph, int depth, syno::CounterRandom& random) const {
    std::vector<Step> steps;
    if (depth < 3) {
      for (const syno::Size& size : sizes_) steps.push_back(Step::reduce(size));
      return steps;
    }
    for (const CoordinateId i : graph.frontier()) {
      for (const CoordinateId j : graph.frontier()) {
        if (i == j) continue;
        steps.push_back(Step::split(i, j));
        steps.push_back(Step::unfold(i, j));
      }
      for (const syno::Size& size : sizes_) {
        if (graph.extent(i) != size) steps.push_back(Step::merge(i, size));
      }
      steps.push_back(Step::shift(i, 1));
    }
    for (int n = 0; n < 30; ++n) {
      syno::WeightDims dims;
      for (const CoordinateId id : graph.frontier()) {
        const std::uint64_t choice = random.below(3);
        if (choice == 0) continue;
        const bool held = graph.weight_count(id) > 0;
        if (choice == 2 && !held && graph.is_reduction(id)) continue;
        dims.push_back({id, choice == 1 ? syno::WeightRole::kKeep
                            : held      ? syno::WeightRole::kJoin
                                        : syno::WeightRole::kDrop});
      }
      if (!dims.empty()) steps.push_back(Step::contract(dims));
    }
    return steps;
  }

  syno::Specification spec_;
  syno::RuleSet rules_;
  std::vector<syno::Size> sizes_;
  // Their elements stay where they are.
  std::deque<Graph> graphs_;
  std::deque<syno::Ledger> ledgers_;
  std::deque<Question> questions_;
  std::vector<const Question*> rejected_;
  std::vector<const Question*> free_;
};

const Population& population() {
  static const Population all;
  return all;
}

void ask(benchmark::State& state, const std::vector<const Question*>& questions) {
  std::int64_t count = 0;
  for (auto _ : state) {
    for (const Question* question : questions) {
      benchmark::DoNotOptimize(population().rules().rejecting_rule(
          {population().spec(), *question->graph, question->step, question->before,
           &question->after}));
    }
    count += static_cast<std::int64_t>(questions.size());
  }
  state.SetItemsProcessed(count);
}

/// Items are steps that a rule rejects.
void rules_that_reject(benchmark::State& state) {
  ask(state, population().rejected());
}
BENCHMARK(rules_that_reject)->Unit(benchmark::kMillisecond);

/// Items are steps that no rule rejects.
void rules_that_do_not(benchmark::State& state) {
  ask(state, population().free());
}
BENCHMARK(rules_that_do_not)->Unit(benchmark::kMillisecond);

/// Items are steps.
void admit_steps(benchmark::State& state) {
  std::int64_t count = 0;
  for (auto _ : state) {
    for (const Question* question : population().free()) {
      syno::Ledger ledger = *question->before;
      benchmark::DoNotOptimize(
          syno::admit(population().spec(), *question->graph, question->step, ledger));
    }
    count += static_cast<std::int64_t>(population().free().size());
  }
  state.SetItemsProcessed(count);
}
BENCHMARK(admit_steps)->Unit(benchmark::kMillisecond);

/// Items are graphs with one more step.
void copy_and_apply(benchmark::State& state) {
  std::int64_t count = 0;
  for (auto _ : state) {
    for (const Question* question : population().free()) {
      Graph graph = *question->graph;
      benchmark::DoNotOptimize(&graph.apply(question->step));
    }
    count += static_cast<std::int64_t>(population().free().size());
  }
  state.SetItemsProcessed(count);
}
BENCHMARK(copy_and_apply)->Unit(benchmark::kMillisecond);

}  // namespace
