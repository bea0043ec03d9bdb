// How the value of a coordinate follows from others: the vocabulary in which primitives are defined, and in which the
// interpreter, the key and the quality conditions read an operator.
#pragma once

#include <cstdint>

#include "syno/support/error.h"

namespace syno {

/// `a` and `b` are the coordinates that the step consumes.
enum class ExpressionKind : std::uint8_t {
  kIterator,     ///< an index of the output
  kReduction,    ///< an index that is summed over
  kMixed,        ///< size*a + b              (Split; size is the extent of b)
  kQuotient,     ///< a div size              (Merge)
  kRemainder,    ///< a mod size              (Merge)
  kCyclicShift,  ///< (a + amount) mod size   (Shift; size is the extent)
  kWindow,       ///< a + b - size div 2, masked outside the extent (Unfold; size is the window)
  kScaled,       ///< size*a                  (Stride)
};

/// The extent of a coordinate of this kind, from the extents of `a` and `b` and the size that the step names. Sizes are
/// whatever `times` and `over` multiply and divide.
template <class Extent, class Times, class Over>
Extent extent_made(ExpressionKind kind, const Extent& a, const Extent& b, const Extent& size,
                   Times times, Over over) {
  switch (kind) {
    case ExpressionKind::kMixed: return times(a, b);
    case ExpressionKind::kQuotient: return over(a, size);
    case ExpressionKind::kScaled: return times(a, size);
    case ExpressionKind::kReduction:
    case ExpressionKind::kRemainder: return size;
    case ExpressionKind::kCyclicShift:
    case ExpressionKind::kWindow: return a;
    case ExpressionKind::kIterator: break;
  }
  throw InternalError("extent_made: no step makes an output iterator");
}

}  // namespace syno
