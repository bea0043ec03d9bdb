// The quality conditions: what makes an operator not worth training. Each has a named reason; all that an operator fails
// are listed, with a text that says where.
//
//     no_weight         it has no weight
//     input_unread      under some binding an input element is in no unmasked term       (coverage.h)
//     output_constant   every output is 0 whatever the input                             (coverage.h)
//     equal_outputs     more outputs are equal for all inputs than max_repeat allows     (coverage.h)
//     wasted_expand, wasted_unfold, absorbed_weight, wasted_reduce                       (wasted.h)
//     max_pooling       more data is summed before any weight than max_pooling allows
//     reads_future      an output of a causal dimension reads a later input              (causality.h)
#pragma once

#include <vector>

#include "syno/graph/operator.h"
#include "syno/quality/wasted.h"
#include "syno/spec/specification.h"

namespace syno {

namespace reason {
inline constexpr Reason kNoWeight = "no_weight";
inline constexpr Reason kInputUnread = "input_unread";
inline constexpr Reason kOutputConstant = "output_constant";
inline constexpr Reason kEqualOutputs = "equal_outputs";
inline constexpr Reason kPooling = "max_pooling";
inline constexpr Reason kReadsFuture = "reads_future";
}  // namespace reason

/// What speaks against a complete operator, at most once a reason; a decided failure goes before an undecided question.
/// Checked under the bindings of `fit`; empty when the operator is good under all of them. Limits that a step alone can
/// break are the ledger's (`replay`). Throws UserError when `op` uses a variable that `spec` does not know.
std::vector<Rejection> quality_rejections(const Operator& op, const Specification& spec,
                                          FitMask fit);

/// The bindings that `op`, whose sizes are in the table of `spec`, fits in the eyes of the ledger; where a step is rejected,
/// those under which its sizes are positive integers.
FitMask checked_fit(const Operator& op, const Specification& spec);

/// The same under the bindings that `op` fits in the eyes of the ledger; an operator that the ledger rejects is checked
/// wherever its sizes are positive integers. No such binding is a rejection, "fit".
std::vector<Rejection> quality_rejections(const Operator& op, const Specification& spec);

}  // namespace syno
