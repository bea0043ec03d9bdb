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

/// Whether it is no function of other coordinates.
constexpr bool is_leaf(ExpressionKind kind) {
  return kind == ExpressionKind::kIterator || kind == ExpressionKind::kReduction;
}
constexpr bool is_summed(ExpressionKind kind) {
  return kind == ExpressionKind::kReduction;
}
/// Whether it is a function of `a` and `b`, not of `a` alone.
constexpr bool takes_two(ExpressionKind kind) {
  return kind == ExpressionKind::kMixed || kind == ExpressionKind::kWindow;
}
/// Whether terms are zero where its value is outside of its extent.
constexpr bool is_masked(ExpressionKind kind) {
  return kind == ExpressionKind::kWindow;
}
/// Whether it leaves out values of its extent.
constexpr bool has_gaps(ExpressionKind kind) {
  return kind == ExpressionKind::kScaled;
}
/// Whether its extent is that of `a`.
constexpr bool keeps_extent(ExpressionKind kind) {
  return kind == ExpressionKind::kCyclicShift || kind == ExpressionKind::kWindow;
}

/// The size in the formula of one that is no leaf, from its own extent and those of `a` and `b`.
template <class Extent>
Extent size_in_formula(ExpressionKind kind, const Extent& own, const Extent& a, const Extent& b) {
  if (takes_two(kind)) return b;
  if (kind == ExpressionKind::kQuotient) return a / own;
  return kind == ExpressionKind::kScaled ? own / a : own;
}

/// Calls learn(id) with what a known coordinate of this kind tells of those that it is made of, whatever else is known.
/// both_known(a): whether the other part of `a` is known, too; it is asked once for each part.
template <class Id, class Learn, class BothKnown>
void learn_operands(ExpressionKind kind, Id a, Id b, Learn learn, BothKnown both_known) {
  switch (kind) {
    case ExpressionKind::kMixed:
      learn(a);
      learn(b);
      break;
    case ExpressionKind::kQuotient:
    case ExpressionKind::kRemainder:
      if (both_known(a)) learn(a);
      break;
    case ExpressionKind::kCyclicShift:
    case ExpressionKind::kScaled: learn(a); break;
    case ExpressionKind::kWindow:
    case ExpressionKind::kIterator:
    case ExpressionKind::kReduction: break;
  }
}

/// The same in all directions, between `made` and what it is made of: of a window, any two tell the third.
template <class Id, class Known, class Learn, class BothKnown>
void spread_knowledge(ExpressionKind kind, Id made, Id a, Id b, Known known, Learn learn,
                      BothKnown both_known) {
  if (is_leaf(kind)) return;
  if (known(a) && (!takes_two(kind) || known(b))) learn(made);
  if (!known(made)) return;
  if (kind == ExpressionKind::kWindow) {
    if (known(a)) learn(b);
    if (known(b)) learn(a);
  } else {
    learn_operands(kind, a, b, learn, both_known);
  }
}

}  // namespace syno
