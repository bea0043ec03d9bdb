// Orbits: operators that the symmetries of a specification (spec/symmetry.h) map onto each other.
//
// The key of an orbit is the least semantic key of the images of an operator. Images need no operator of their own, which
// need not exist (a mirrored cyclic shift is one in the other direction, which a specification may exclude): their keys
// follow from the normal form with reversed coordinates (key/points.h). As with semantic keys, an error leaks a
// repeat, so that two operators of one orbit have different keys; it never makes one orbit of two.
#pragma once

#include <span>
#include <vector>

#include "syno/key/key.h"
#include "syno/spec/specification.h"

namespace syno {

/// Keys of orbits for many operators of one specification. For one thread at a time.
class OrbitKeyer {
 public:
  explicit OrbitKeyer(const Specification& spec);

  /// The least key of the images; the semantic key where the specification has no symmetries.
  Hash128 key(const Operator& op);
  /// The keys of all images, ascending, each once. One of them is the semantic key.
  std::vector<Hash128> image_keys(const Operator& op);

 private:
  std::vector<Image> group_;
  Keyer keyer_;
  VariablesPtr variables_;
};

}  // namespace syno
