// An access map under one binding, as a list of integer instructions on slots, one slot a coordinate. Nothing is
// simplified: a term runs through every instruction in the order of the graph and stops where a window falls outside.
#pragma once

#include <cstdint>
#include <vector>

#include "syno/interp/access_map.h"
#include "syno/sizes/variables.h"
#include "syno/support/interrupt.h"

namespace syno {

struct Instruction {
  ExpressionKind kind;
  CoordinateId out;
  CoordinateId a;
  CoordinateId b;
  /// kMixed, kScaled: the factor. kQuotient, kRemainder: the divisor. kCyclicShift: the extent.
  std::int64_t size;
  /// kCyclicShift: the amount. kWindow: the padding before.
  std::int64_t offset;
  /// The extent of the result.
  std::int64_t extent;
};

struct Program {
  /// Throws UserError when `values` gives no value to a variable, or a coordinate no integer extent.
  Program(const AccessMap& map, const Values& values);

  /// Extents of all coordinates.
  std::vector<std::int64_t> extents;
  std::vector<CoordinateId> iterators;
  std::vector<CoordinateId> reductions;
  std::vector<CoordinateId> data;
  std::vector<std::vector<CoordinateId>> weights;
  /// What depends on iterators alone, and the rest.
  std::vector<Instruction> outer;
  std::vector<Instruction> inner;

  std::int64_t extent(CoordinateId id) const { return extents[static_cast<std::size_t>(id)]; }
  std::vector<std::int64_t> shape(const std::vector<CoordinateId>& ids) const;
};

/// Runs `instructions` on `slots`; false as soon as a window falls outside.
bool execute(const std::vector<Instruction>& instructions, std::vector<std::int64_t>& slots);

/// Sets the slots of `ids` to the first index, and moves on in row-major order; false after the last one.
inline void first_index(const std::vector<CoordinateId>& ids, std::vector<std::int64_t>& slots) {
  for (const CoordinateId id : ids) slots[static_cast<std::size_t>(id)] = 0;
}
inline bool next_index(const std::vector<CoordinateId>& ids,
                       const std::vector<std::int64_t>& extents, std::vector<std::int64_t>& slots) {
  for (std::size_t d = ids.size(); d-- > 0;) {
    const auto id = static_cast<std::size_t>(ids[d]);
    if (++slots[id] < extents[id]) return true;
    slots[id] = 0;
  }
  return false;
}

/// The row-major position of the index that `ids` have in `slots`.
inline std::int64_t flat_index(const std::vector<CoordinateId>& ids,
                               const std::vector<std::int64_t>& extents,
                               const std::vector<std::int64_t>& slots) {
  std::int64_t flat = 0;
  for (const CoordinateId id : ids) {
    const auto i = static_cast<std::size_t>(id);
    flat = flat * extents[i] + slots[i];
  }
  return flat;
}

/// Calls visit() for every unmasked term of the output whose iterators stand in `slots`; every slot then has its value.
/// Polls once a term.
template <class Visit>
void for_each_term(const Program& program, std::vector<std::int64_t>& slots, InterruptPoll& poll,
                   Visit visit) {
  poll();
  if (!execute(program.outer, slots)) return;
  first_index(program.reductions, slots);
  do {
    poll();
    if (execute(program.inner, slots)) visit();
  } while (next_index(program.reductions, program.extents, slots));
}

}  // namespace syno
