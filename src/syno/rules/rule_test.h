// What the tests of rules share: a small specification, and graphs written one step a line in the words of operator
// texts, with labels of the test's own.
#pragma once

#include <gtest/gtest.h>
#include <map>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>

#include "syno/graph/canonical.h"
#include "syno/graph/operator.h"
#include "syno/rules/catalogue.h"
#include "syno/support/error.h"

namespace syno::rule_test {

/// [C, H, W] -> [C: unordered, H, W] with C = 24, H = W = 12, k = 3, s = 2, and room for every step that a test takes.
/// A test narrows what its rule's guard looks at.
inline SpecificationSource roomy() {
  SpecificationSource source;
  source.input = "[C, H, W]";
  source.output = "[C: unordered, H, W]";
  source.primary = {"C: 4", "H: 4", "W: 4"};
  source.coefficient = {"k=3: 4", "s=2: 4"};
  source.bindings = {Binding({{"C", 24}, {"H", 12}, {"W", 12}})};
  source.limits.max_merges = 4;
  source.limits.max_strides = 2;
  source.limits.max_weights = 3;
  source.limits.element_wise_weights = true;
  return source;
}

/// With a layer in which s is 1, so that s and s^-1 are both integers there.
inline SpecificationSource with_a_layer_of_one() {
  SpecificationSource source = roomy();
  source.coefficient = {"k=3: 4", "s: 4"};
  source.bindings = {Binding({{"C", 24}, {"H", 12}, {"W", 12}, {"s", 2}}),
                     Binding({{"C", 24}, {"H", 12}, {"W", 12}, {"s", 1}})};
  source.limits.min_fit = 0;
  return source;
}

/// A graph and the step a rule is asked about.
struct Situation {
  Graph graph;
  Step step;
};

/// Reads lines such as "reduce k -> r", "contract o0:drop r:keep", "merge o1 s -> q m". Iterators are o0, o1, ...
inline Situation read(const Specification& spec, std::string_view lines) {
  Situation result{Graph(spec.variables(), spec.output()), Step()};
  std::map<std::string, CoordinateId> labels;
  for (std::size_t d = 0; d < spec.output().size(); ++d)
    labels["o" + std::to_string(d)] = static_cast<CoordinateId>(d);
  std::istringstream text{std::string(lines)};
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    std::string word;
    if (!(words >> word)) continue;
    const PrimitiveInfo& info = primitive_info(find_primitive(word).value());
    Step step;
    step.primitive = info.primitive;
    for (int i = 0; i < info.consumes; ++i) {
      words >> word;
      step.in[static_cast<std::size_t>(i)] = labels.at(word);
    }
    bool results = false;
    int produced = 0;
    while (words >> word) {
      if (word == "->") {
        results = true;
      } else if (results) {
        labels[word] = static_cast<CoordinateId>(result.graph.coordinates().size()) +
                       static_cast<CoordinateId>(produced++);
      } else if (info.primitive == Primitive::kContraction) {
        const std::size_t colon = word.find(':');
        const std::string role = word.substr(colon + 1);
        step.dims.push_back({labels.at(word.substr(0, colon)),
                             role == role_name(WeightRole::kKeep)   ? WeightRole::kKeep
                             : role == role_name(WeightRole::kDrop) ? WeightRole::kDrop
                                                                    : WeightRole::kJoin});
      } else if (info.primitive == Primitive::kShift) {
        step.amount = std::stoi(word);
      } else {
        step.size = Size::parse(word, *spec.variables());
      }
    }
    // The last line is the step that is asked about.
    result.step = step;
    if (text.peek() != std::char_traits<char>::eof()) result.graph.apply(step);
  }
  return result;
}

/// The graph of all lines, the last included.
inline Graph whole(const Specification& spec, std::string_view lines) {
  Situation situation = read(spec, lines);
  situation.graph.apply(situation.step);
  return situation.graph;
}

inline bool matches(const Rule& rule, const Specification& spec, std::string_view lines) {
  const Situation situation = read(spec, lines);
  return rule.matches({spec, situation.graph, situation.step});
}

/// Whether `rule` rejects the last of `lines`. The specification must allow all of them, so that nothing but the rule
/// can be the reason.
inline bool rejected(const Rule& rule, const Specification& spec, std::string_view lines) {
  replay(spec, whole(spec, lines));
  const Situation situation = read(spec, lines);
  return rejects(rule, {spec, situation.graph, situation.step});
}

/// Whether `rule`, which is about complete graphs, rejects the last coordinate that `lines` make as the index of an input
/// dimension that `input` declares.
inline bool rejected_as_input(const Rule& rule, const Specification& spec, std::string_view input,
                              std::string_view lines) {
  const Graph graph = whole(spec, lines);
  replay(spec, graph);
  CoordinateId index = kNoCoordinate;
  for (const Step& step : graph.steps()) {
    if (step.primitive != Primitive::kContraction) index = step.out[0];
  }
  const Shape shape = parse_shape(input, *spec.variables());
  return rule.rejects_match(spec, graph, shape, std::span<const CoordinateId>(&index, 1));
}

/// As `rejected`, where the restrictions of the catalogue count in the guard.
inline bool rejected_under_restrictions(const Rule& rule, const Specification& spec,
                                        std::string_view lines) {
  replay(spec, whole(spec, lines));
  const Situation situation = read(spec, lines);
  const RuleSet restrictions = RuleSet::restrictions();
  return rejects(rule, {spec, situation.graph, situation.step}, restrictions.rules());
}

/// Whether the graph the rule keeps instead of `lines` is that of `expected`.
inline testing::AssertionResult keeps(const Rule& rule, const Specification& spec,
                                      std::string_view lines, const Graph& expected) {
  const Situation situation = read(spec, lines);
  const std::optional<Graph> kept = rule.rewrite({spec, situation.graph, situation.step});
  if (!kept) return testing::AssertionFailure() << "nothing is kept instead";
  if (structure_hash(*kept) == structure_hash(expected)) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "kept\n"
                                     << graph_text(*kept) << "expected\n"
                                     << graph_text(expected);
}
inline testing::AssertionResult keeps(const Rule& rule, const Specification& spec,
                                      std::string_view lines, std::string_view expected) {
  return keeps(rule, spec, lines, whole(spec, expected));
}

}  // namespace syno::rule_test
