// trials/: the paper's experiments by random trials.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "syno/trials/random_trials.h"

#include "described_options.h"

namespace syno::bindings {
namespace {

using namespace nb::literals;

TrialOptions chosen_options(const RuleSet& rules, const std::string& guide, std::int64_t trials,
                            double max_seconds, std::int64_t max_depth, std::uint64_t seed,
                            std::int64_t threads) {
  TrialOptions options;
  options.rules = rules;
  options.guide = parse_trial_guide(guide);
  options.trials = trials;
  options.max_seconds = max_seconds;
  options.max_depth = max_depth;
  options.seed = seed;
  options.threads = threads;
  return options;
}

// Called often enough that an interrupt from the keyboard ends long trials.
TrialProgress watched_trials(const nb::object& progress) {
  return [&progress](std::int64_t done) {
    const nb::gil_scoped_acquire acquire;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    return progress.is_none() || nb::cast<bool>(progress(done));
  };
}

// `kRun` is random_trials or canonical_rates; `trials` is what they count.
template <auto kRun>
auto run(const Specification& spec, const RuleSet& rules, const std::string& guide,
         std::int64_t trials, double max_seconds, std::int64_t max_depth, std::uint64_t seed,
         std::int64_t threads, const nb::object& progress) {
  const TrialOptions options =
      chosen_options(rules, guide, trials, max_seconds, max_depth, seed, threads);
  const TrialProgress watch = watched_trials(progress);
  const LongCall call;
  return kRun(spec, options, watch);
}

}  // namespace

void bind_trials(nb::module_& m) {
  nb::class_<Trials>(m, "Trials", "The counts of random trials.")
      .def_ro("trials", &Trials::trials)
      .def_ro("steps", &Trials::steps, "The number of steps that were taken.")
      .def_ro("looked_at", &Trials::looked_at, "The number of steps that were considered.")
      .def_ro("complete", &Trials::complete,
              "The number of trials that reached the sizes of the input.")
      .def_ro("valid", &Trials::valid,
              "The number of trials that reached an operator that passes all conditions.")
      .def_ro("distinct", &Trials::distinct, "The number of semantic keys of these operators.")
      .def_ro("seconds", &Trials::seconds);
  nb::class_<CanonicalRow>(m, "CanonicalRow", "The samples with one number of primitives.")
      .def_ro("samples", &CanonicalRow::samples,
              "The number of complete graphs that were sampled without rules.")
      .def_ro("canonical", &CanonicalRow::canonical, "The number of samples that no rule rejects.")
      .def_ro("listed", &CanonicalRow::listed,
              "The number of those that pass all conditions as well.")
      .def_ro("structures", &CanonicalRow::structures,
              "The number of different structures among the samples.")
      .def_ro("operators", &CanonicalRow::operators,
              "The number of different semantic keys among them.");
  nb::class_<CanonicalRates>(m, "CanonicalRates", "Samples without rules, grouped by size.")
      .def_ro("rows", &CanonicalRates::rows, "One row for each number of primitives.")
      .def_ro("trials", &CanonicalRates::trials)
      .def_ro("seconds", &CanonicalRates::seconds);
  m.def(
      "trial_options", [] { return described_options(trial_options()); },
      nb::sig("def trial_options() -> list[dict[str, typing.Any]]"),
      "The name, type, default, minimum and doc of each budget of random trials.");
  m.def(
      "random_trials", &run<random_trials>, "spec"_a, "rules"_a, "guide"_a = "none",
      "trials"_a = TrialOptions().trials, "max_seconds"_a = 0.0, "max_depth"_a = 0, "seed"_a = 0,
      "threads"_a = 1, "progress"_a = nb::none(),
      nb::sig("def random_trials(spec: Specification, rules: RuleSet, guide: str = 'none', "
              "trials: int = ..., max_seconds: float = 0.0, max_depth: int = 0, seed: int = 0, "
              "threads: int = 1, progress: collections.abc.Callable[[int], bool] | None = None)"
              " -> Trials"),
      "Runs random walks from the root without backtracking. The guide is none, distance, "
      "distance-once "
      "or bound. progress(completed trials) is called regularly and ends them by returning False.");
  m.def("canonical_rates", &run<canonical_rates>, "spec"_a, "rules"_a, "guide"_a = "distance",
        "samples"_a = TrialOptions().trials, "max_seconds"_a = 0.0, "max_depth"_a = 0, "seed"_a = 0,
        "threads"_a = 1, "progress"_a = nb::none(),
        nb::sig("def canonical_rates(spec: Specification, rules: RuleSet, guide: str = 'distance', "
                "samples: int = ..., max_seconds: float = 0.0, max_depth: int = 0, seed: int = 0, "
                "threads: int = 1, progress: collections.abc.Callable[[int], bool] | None = None)"
                " -> CanonicalRates"),
        "Samples complete graphs without rules, and counts by size those that `rules` keeps. "
        "progress(samples found) is called regularly and ends the sampling by returning False.");
}

}  // namespace syno::bindings
