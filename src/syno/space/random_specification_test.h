// Random small specifications with operators in them, for tests that compare with an enumeration by definition.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "syno/space/reference_test.h"
#include "syno/support/error.h"
#include "syno/support/random.h"

namespace syno::samples {

/// Shapes, budgets and limits of every kind; the same seed gives the same one on every machine.
class RandomSpecification {
 public:
  explicit RandomSpecification(std::uint64_t seed) : random_(seed, 0x73706563) {
    sample_variables();
    sample_output();
    sample_limits();
  }

  /// Nothing where Specification rejects what was sampled.
  std::optional<SpecificationSource> source() {
    source_.input = source_.output;
    try {
      const Specification closed(source_);
      if (!causal_) source_.input = input_of_a_walk(closed);
      const Specification open(source_);
    } catch (const UserError&) {
      return std::nullopt;
    }
    return source_;
  }

 private:
  std::int64_t below(std::uint64_t bound) {
    return static_cast<std::int64_t>(random_.below(bound));
  }
  bool chance(double share) { return random_.uniform() < share; }
  template <class T>
  const T& one_of(const std::vector<T>& from) {
    return from[random_.below(from.size())];
  }

  void sample_variables() {
    const std::int64_t primaries = 1 + below(2);
    for (std::int64_t p = 0; p < primaries; ++p) {
      primaries_.push_back(p == 0 ? "C" : "H");
      source_.primary.push_back(primaries_.back() + ": " + std::to_string(below(3)));
    }
    const std::int64_t coefficients = below(3);
    for (std::int64_t c = 0; c < coefficients; ++c) {
      coefficients_.push_back(c == 0 ? "k" : "s");
      const std::string value = std::to_string(2 + below(2));
      source_.coefficient.push_back(coefficients_.back() + "=" + value + ": " +
                                    std::to_string(below(3)));
    }
    const std::int64_t bindings = 1 + below(2);
    for (std::int64_t b = 0; b < bindings; ++b) {
      std::map<std::string, std::int64_t> values;
      for (const std::string& name : primaries_)
        values[name] = one_of(std::vector<std::int64_t>{4, 6, 8, 9, 12, 18});
      source_.bindings.emplace_back(values);
    }
  }

  std::string sample_size() {
    std::string text = one_of(primaries_);
    if (chance(0.2)) text += "*" + one_of(primaries_);
    if (coefficients_.empty()) return text;
    if (chance(0.1)) return coefficients_[0];
    if (chance(0.35)) {
      text += "*" + one_of(coefficients_);
      if (chance(0.3)) text += "^-1";
    }
    return text;
  }

  void sample_output() {
    causal_ = chance(0.1);
    const bool batch = chance(0.15);
    source_.output = batch ? "[N" : "[";
    const std::int64_t rank = 1 + below(3);
    for (std::int64_t d = 0; d < rank; ++d) {
      if (batch || d > 0) source_.output += ", ";
      source_.output += sample_size();
      if (causal_ && d == 0) {
        source_.output += ": causal";
      } else if (chance(0.3)) {
        source_.output += ": unordered";
      }
    }
    source_.output += "]";
    if (!batch) return;
    source_.primary.emplace_back("N: 0");
    source_.passed_through = {{0, 0}};
  }

  void sample_limits() {
    Limits& limits = source_.limits;
    limits.max_depth = 5;
    limits.max_weights = 1 + below(3);
    limits.max_reductions = below(4);
    limits.max_merges = below(3);
    limits.max_splits = below(3);
    limits.max_shifts = below(2);
    limits.max_strides = chance(0.2) ? 1 : 0;
    limits.max_unfolds = below(3);
    limits.max_shift_amount = 1 + below(2);
    limits.negative_shifts = chance(0.3);
    limits.max_repeat = chance(0.3) ? 2 + below(5) : 1;
    limits.even_windows = chance(0.4);
    limits.element_wise_weights = chance(0.4);
    limits.min_unfold_ratio = chance(0.5) ? 2.3 : 1.0;
    limits.max_window = chance(0.7) ? 30 : 4;
    limits.max_pooling = 1 + below(8);
    limits.max_joined = 1 + below(8);
    limits.max_dropped = chance(0.5) ? 2048 : 4 + below(20);
    limits.max_chain_length = 1 + below(5);
    limits.min_weight_params = chance(0.7) ? 1 : 5;
    limits.max_size_power = chance(0.6) ? 16 : 1 + below(3);
    limits.max_size_variables = 1 + below(3);
    limits.min_fit = chance(0.5) ? 1.0 : 0.3;
  }

  // Where a random walk ends, so that there is something to find.
  std::string input_of_a_walk(const Specification& spec) {
    const std::vector<Size> universe = reference::size_universe(spec);
    Graph graph(spec.variables(), spec.output());
    Ledger ledger = start_ledger(spec);
    for (int tries = 0; tries < 60 && graph.depth() < 4; ++tries) {
      const std::vector<Step> steps = reference::candidate_steps(spec, graph, universe);
      if (steps.empty() || (graph.depth() >= 3 && !graph.weights().empty())) break;
      const Step& step = one_of(steps);
      if (admit(spec, graph, step, ledger).empty()) graph.apply(step);
    }
    std::string input;
    for (const CoordinateId id : graph.frontier()) {
      input += (input.empty() ? "[" : ", ") + graph.extent(id).text(*spec.variables());
      if (id > 0 && chance(0.3)) input += ": unordered";
    }
    return input.empty() ? "[]" : input + "]";
  }

  CounterRandom random_;
  SpecificationSource source_;
  std::vector<std::string> primaries_;
  std::vector<std::string> coefficients_;
  bool causal_ = false;
};

inline std::string describe(const SpecificationSource& source) {
  std::string text = source.input + " -> " + source.output + ";";
  for (const auto* list : {&source.primary, &source.coefficient}) {
    for (const std::string& variable : *list) text += " " + variable + ";";
  }
  for (const Binding& binding : source.bindings) text += " {" + binding.text() + "}";
  for (const auto& [out, in] : source.passed_through)
    text += " passed " + std::to_string(out) + ":" + std::to_string(in);
  for (const Option<Limits>& option : limit_options()) {
    if (option.get(source.limits) != option.get(Limits()))
      text += " " + std::string(option.name) + "=" + std::to_string(option.get(source.limits));
  }
  return text;
}

}  // namespace syno::samples
