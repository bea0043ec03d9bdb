// The JSON form of an operator, for programs that read and write operators without Syno.
//
//     {"out": [dim...], "in": [dim...], "steps": [step...], "match": [name...]}
//
// A dim is {"size": "s^-1*C_in", "unordered": false}, with "causal": true for a sequence. Output iterators are o0, o1, ...;
// other coordinates may have any name on the way in and have the canonical ones on the way out. `match` names the
// coordinate that each input dimension is read at. Steps:
//
//     {"op": "split", "in": [i, j], "out": c}
//     {"op": "merge", "in": i, "block": B, "out": [q, m]}
//     {"op": "shift", "in": i, "d": 1, "out": c}
//     {"op": "expand", "in": i}
//     {"op": "unfold", "in": [i, j], "out": c}
//     {"op": "stride", "in": i, "S": S, "out": c}
//     {"op": "reduce", "size": n, "out": r}
//     {"op": "contract", "dims": [[name, role]...]}
//
// with "causal": true for a window that ends at its position, and roles keep, drop and join.
#pragma once

#include <string>
#include <string_view>

#include "syno/graph/operator.h"
#include "syno/support/json.h"

namespace syno {

/// The JSON form in one line.
std::string operator_json(const Operator& op);

/// Reads the JSON form, as text or as data. Throws UserError that says which entry is malformed, and why.
Operator parse_operator_json(std::string_view text);
Operator read_operator_json(const json::Value& data);

}  // namespace syno
