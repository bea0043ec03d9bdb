// Operators in index notation:
//
//     y[n,o,h,w] = sum(i:C_in, a:k, b:k) x[n,i,h+a-k/2,w+b-k/2] * w0[o,i,a,b]
//
//     formula := 'y[' names '] =' ( 'sum(' name ':' size, ... ')' )? 'x[' index, ... ']' ( '* w' number '[' index, ... ']' )*
//                ( 'where' 0 '<=' index '<' size, ... )?
//     index   := + - * / and mod over names and sizes; '/' is floor division, mod has the sign of the divisor;
//                * and / bind from left to right, mod binds less than + and -
//
// Reading x or a weight outside its extents gives 0, which is all that most windows need. A window whose value could
// come back inside (cyclically shifted, or under a second window), or that only weights read, has its condition behind `where`.
// parse.h reads what this prints.
#pragma once

#include <string>

#include "syno/graph/operator.h"

namespace syno {

/// One line. Names of indices are chosen from the dimensions and never are names of variables; weights and their
/// dimensions stand in the operator's canonical order, so that w0 has the shape op.weight_shapes()[0].
/// With `stages`, a line for each weight, x first: `Z[...] = sum(...) x[...] * w1[...]`, then what reads Z.
std::string formula(const Operator& op, bool stages = false);

}  // namespace syno
