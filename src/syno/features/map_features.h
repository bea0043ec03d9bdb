// Numbers that describe an operator as a linear map with random weights: what a surrogate model predicts results from.
//
// An output position is a value of the output's position dimensions, such as height and width; the other dimensions are
// channels. The energy of a set of elements is the sum of the squares of the map's elements there. The participation
// ratio of values v >= 0 is (sum v)^2 / sum v^2: how many of them count. Of the squared singular values of M it is
// |M|^4 / |M M^T|^2 in Frobenius norms, so that none of them is computed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "syno/graph/operator.h"

namespace syno {

struct MapFeature {
  std::string name;
  /// One sentence.
  std::string doc;
};

/// All features, in the order of `map_features`.
const std::vector<MapFeature>& map_feature_list();

/// Which dimensions are positions, ascending; the others are channels.
struct Positions {
  std::vector<int> output;
  std::vector<int> input;
};

/// The same on every machine up to rounding. Axes are never told apart by name: features of several axes are their
/// least and greatest value, so that mirroring and exchanging axes changes only the random weights.
/// Throws UserError as LinearMap does, and for an operator that is zero.
std::vector<double> map_features(const Operator& op, const Values& values,
                                 const Positions& positions, std::uint64_t seed = 0);

}  // namespace syno
