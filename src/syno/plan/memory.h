// What a plan moves through memory and holds at once, exactly, for tensors of float32.
//
// A permute, split, expand or slice is a view: it moves nothing. A merge is one where the two dimensions lie one behind the
// other in memory, as in torch. Every other stage reads the elements of its operands, each once, and writes its
// result, row-major, once. A tensor that a view repeats (an expand) has only the elements that are there.
//
// Alive in a stage are the input, what the stages read of weights, the tensors that it or a later stage reads, its result,
// and the output once it is written. Of plans that fold weights, fold_stages have run before and are not counted; what
// they made is, in place of weights that nothing else reads.
#pragma once

#include <cstdint>

#include "syno/plan/plan.h"

namespace syno {

struct MemoryUse {
  std::int64_t bytes_moved = 0;
  std::int64_t peak_bytes = 0;
};

/// Throws UserError when a count does not fit in 64 bits.
MemoryUse memory_use(const Plan& plan);

/// Whether the result of each of `stages` is a view of its input.
std::vector<bool> views_among_stages(const Plan& plan);

}  // namespace syno
