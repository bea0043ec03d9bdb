// The semantic key: equal for operators that are the same (semantics: E1 renamed reductions, E2
// permuted weights and weight dimensions, E3 relabelled weight elements, E4 permuted unordered
// dimensions), as far as that is recognised.
//
// For each binding the operator is brought into a symbolic normal form (key_points.h), its digits
// are labelled in a canonical order (key_label.h), and the labelled form is hashed. No numbers are
// evaluated. What is not recognised stays as it is, and where a cap is hit the hash of the
// structure stands in: an error leaks a duplicate, it never makes two different operators one.
#pragma once

#include <string>
#include <vector>

#include "syno/graph/operator.h"
#include "syno/sizes/variables.h"
#include "syno/support/hash.h"

namespace syno {

/// Equal only for operators that realise the same set of linear maps under each of `bindings`, up
/// to the order of unordered dimensions. Each binding gives values in the order of op.variables();
/// neither their order nor repeats matter. Keys are comparable between operators over one table of
/// variables. Under a binding that some size of the operator is not legal for, the key records just
/// that.
/// Throws UserError when a binding has not one value a variable.
Hash128 semantic_key(const Operator& op, const std::vector<Values>& bindings);

/// The normal form under one binding, in readable lines: digits, exact index forms, partitions,
/// conditions. Says why when there is none: "unfit" (a size is not legal), "zero" (all terms are
/// masked), "fallback: <cap>".
std::string key_normal_form(const Operator& op, const Values& values);

}  // namespace syno
