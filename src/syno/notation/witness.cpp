#include "syno/notation/witness.h"

#include <algorithm>
#include <array>

#include "syno/interp/access_map.h"
#include "syno/interp/program.h"
#include "syno/support/error.h"
#include "syno/support/random.h"

namespace syno::notation {
namespace {

constexpr std::uint64_t kSeed = 20'240'229;
constexpr int kTries = 80;
constexpr int kTerms = 40;

}  // namespace

std::vector<Values> small_bindings(const Graph& graph, std::int64_t smallest, std::size_t wanted) {
  CounterRandom random(kSeed, 0);
  std::vector<Size> sizes;
  for (const Coordinate& coordinate : graph.coordinates()) sizes.push_back(coordinate.extent);
  for (const Step& step : graph.steps()) sizes.push_back(step.size);
  std::vector<Values> found;
  for (int t = 0; t < kTries && found.size() < wanted; ++t) {
    Values values;
    for (std::size_t v = 0; v < graph.variables()->count(); ++v) {
      const bool below = std::any_of(sizes.begin(), sizes.end(),
                                     [&](const Size& size) { return size.power(v) < 0; });
      static constexpr std::array<std::int64_t, 4> kBelow{2, 3, 2, 1};
      static constexpr std::array<std::int64_t, 5> kAbove{6, 12, 7, 24, 5};
      values.push_back(below ? std::max(smallest, kBelow[random.below(kBelow.size())])
                             : kAbove[random.below(kAbove.size())]);
    }
    const bool legal = std::all_of(sizes.begin(), sizes.end(), [&](const Size& size) {
      constexpr std::int64_t kLarge = 1'000'000;
      const auto value = size.extent(values);
      return value && *value < kLarge;
    });
    if (legal) found.push_back(std::move(values));
  }
  return found;
}

void check_against_text(const Meaning& meaning, const ParsedFormula& parsed, const Places& places,
                        const std::vector<Values>& bindings) {
  CounterRandom random(kSeed, 1);
  const AccessMap map = make_access_map(parsed.op);
  const auto different = [&] {
    throw InternalError("parse_formula: the operator is not what the text says: " +
                        meaning.source.text);
  };
  for (const Values& values : bindings) {
    Values used;
    for (const std::string& name : map.variables->names())
      used.push_back(values[meaning.variables->index(name)]);
    const Program program(map, used);
    for (int t = 0; t < kTerms; ++t) {
      std::vector<std::int64_t> slots(map.expressions.size(), 0);
      std::vector<std::int64_t> leaves(meaning.leaves.size(), 0);
      for (std::size_t l = 0; l < leaves.size(); ++l) {
        const CoordinateId id = places.leaves[l];
        leaves[l] =
            static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(program.extent(id))));
        slots[static_cast<std::size_t>(id)] = leaves[l];
      }
      const bool counts = execute(program.outer, slots) && execute(program.inner, slots);
      bool inside = true;
      bool known = true;
      const auto look = [&](const Index& index, CoordinateId at,
                            const std::optional<std::int64_t>& extent) {
        const auto value = meaning.forms.evaluate(index.form, leaves, values);
        known = known && value && extent;
        if (!known) return;
        inside = inside && 0 <= *value && *value < *extent;
        if (counts && at != kNoCoordinate && slots[static_cast<std::size_t>(at)] != *value)
          different();
      };
      for (std::size_t d = 0; d < meaning.data.size(); ++d)
        look(meaning.data[d], map.data[d], program.extent(map.data[d]));
      for (std::size_t w = 0; w < places.weights.size(); ++w) {
        const std::vector<Index>& indices = meaning.weights[places.weights[w]].indices;
        for (std::size_t d = 0; d < map.weights[w].size(); ++d) {
          const CoordinateId id = map.weights[w][d];
          look(indices[static_cast<std::size_t>(parsed.weights[w].dims[d])], id,
               program.extent(id));
        }
      }
      for (const auto& [condition, extent] : places.conditions)
        look(condition, kNoCoordinate, extent.extent(values));
      if (known && inside != counts) different();
    }
  }
}

}  // namespace syno::notation
