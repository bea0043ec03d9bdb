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
  nb::class_<Trials>(m, "Trials", "Random trials, counted.")
      .def_ro("trials", &Trials::trials)
      .def_ro("steps", &Trials::steps, "Steps taken.")
      .def_ro("looked_at", &Trials::looked_at, "Steps looked at.")
      .def_ro("complete", &Trials::complete, "Trials that met the sizes of the input.")
      .def_ro("valid", &Trials::valid, "Trials that met an operator that passes all conditions.")
      .def_ro("distinct", &Trials::distinct, "Semantic keys of all such operators that trials met.")
      .def_ro("seconds", &Trials::seconds);
  nb::class_<CanonicalRow>(m, "CanonicalRow", "Samples of one number of primitives.")
      .def_ro("samples", &CanonicalRow::samples, "Complete graphs drawn without rules.")
      .def_ro("canonical", &CanonicalRow::canonical, "Those that no rule refuses.")
      .def_ro("listed", &CanonicalRow::listed, "Those that pass all conditions, too.")
      .def_ro("structures", &CanonicalRow::structures, "Different ones among the samples.")
      .def_ro("operators", &CanonicalRow::operators, "Different semantic keys among them.");
  nb::class_<CanonicalRates>(m, "CanonicalRates", "Samples without rules, by size.")
      .def_ro("rows", &CanonicalRates::rows, "By the number of primitives.")
      .def_ro("trials", &CanonicalRates::trials)
      .def_ro("seconds", &CanonicalRates::seconds);
  m.def(
      "trial_options", [] { return described_options(trial_options()); },
      nb::sig("def trial_options() -> list[dict[str, typing.Any]]"),
      "name, type, default, minimum and doc of the budgets of random trials.");
  m.def("random_trials", &run<random_trials>, "spec"_a, "rules"_a, "guide"_a = "none",
        "trials"_a = TrialOptions().trials, "max_seconds"_a = 0.0, "max_depth"_a = 0, "seed"_a = 0,
        "threads"_a = 1, "progress"_a = nb::none(),
        nb::sig("def random_trials(spec: Specification, rules: RuleSet, guide: str = 'none', "
                "trials: int = ..., max_seconds: float = 0.0, max_depth: int = 0, seed: int = 0, "
                "threads: int = 1, progress: collections.abc.Callable[[int], bool] | None = None)"
                " -> Trials"),
        "Random walks from the root that never go back, guided by none, distance, distance-once "
        "or bound. progress(trials done) is called now and then; False ends them.");
  m.def("canonical_rates", &run<canonical_rates>, "spec"_a, "rules"_a, "guide"_a = "distance",
        "samples"_a = TrialOptions().trials, "max_seconds"_a = 0.0, "max_depth"_a = 0, "seed"_a = 0,
        "threads"_a = 1, "progress"_a = nb::none(),
        nb::sig("def canonical_rates(spec: Specification, rules: RuleSet, guide: str = 'distance', "
                "samples: int = ..., max_seconds: float = 0.0, max_depth: int = 0, seed: int = 0, "
                "threads: int = 1, progress: collections.abc.Callable[[int], bool] | None = None)"
                " -> CanonicalRates"),
        "Complete graphs drawn without rules, and those that `rules` would keep, by size. "
        "progress(samples found) is called now and then; False ends them.");
}

}  // namespace syno::bindings
