// features/: numbers that describe an operator as a linear map.
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "syno/features/map_features.h"

#include "bindings.h"

namespace syno::bindings {

using namespace nb::literals;

void bind_features(nb::module_& m) {
  m.def(
      "map_feature_list",
      [] {
        std::vector<std::pair<std::string, std::string>> list;
        for (const MapFeature& feature : map_feature_list())
          list.emplace_back(feature.name, feature.doc);
        return list;
      },
      "Names of the features of an operator as a linear map, each with a sentence.");
  m.def(
      "map_features",
      [](const Operator& op, const Bound& binding, const std::vector<int>& output_positions,
         const std::vector<int>& input_positions, std::uint64_t seed) {
        const Values values = resolve(op, binding);
        const LongCall call;
        return map_features(op, values, {output_positions, input_positions}, seed);
      },
      "op"_a, "binding"_a, "output_positions"_a, "input_positions"_a, "seed"_a = 0,
      "The values of map_feature_list. Dimensions that are no positions are channels.");
}

}  // namespace syno::bindings
