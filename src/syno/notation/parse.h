// Index notation to operators, the inverse of formula.h:
//
//     y[n,o,h,w] = sum(i:C_in, a:k, b:k) x[n,i,h+a-k/2,w+b-k/2] * w0[o,i,a,b]
//
//     text       := statement ( newline or ';' statement )*              '#' starts a comment
//     statement  := stage | name '=' index                               a name for an index or a size
//     stage      := tensor '[' index ( ':' size )?, ... ']' '=' ( 'sum' '(' name ( ( ':' | '<' ) size )?, ... ')' )?
//                   tensor '[' index, ... ']' ( '*' tensor '[' index, ... ']' )* ( 'where' condition, ... )?
//     condition  := 0 '<=' index '<' size | name '<' size | name '=' index
//     index      := + - * / and mod over names, sizes and integers, as in formula.h; '//' is '/', '%' is mod and binds
//                   like '*', '^' and '**' are powers of sizes, 32j is 32*j
//
// One stage makes the output. The tensor x (or X) is the input; a tensor that another statement makes is a stage, which
// is read once; every other tensor is a weight. Reading anything outside its extents gives 0, stages as well. Names of
// indices are those of targets, sums and definitions; every other name is a variable of sizes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "syno/graph/operator.h"

namespace syno {

/// What a formula does not say itself.
struct FormulaShapes {
  /// Such as "[N, C_in: unordered, H, W]". Empty: as the indices of x have it, with no marks.
  std::string input;
  /// Empty: from sizes behind the indices of y (`o:C_out`), or from the input where that is unambiguous.
  std::string output;
  /// Variables that numbers in the text stand for: with s=2, `2*h` is `s*h`; with k=3, `h+a-1` is `h+a-k/2` for a
  /// window a of k.
  std::map<std::string, std::int64_t> values;
};

/// A weight of the operator, in its canonical order.
struct NamedWeight {
  /// What the text calls it.
  std::string name;
  /// dims[d] is the index of the text's weight that dimension d of the operator's weight is.
  std::vector<int> dims;
};

struct ParsedFormula {
  Operator op;
  std::vector<NamedWeight> weights;
};

/// Throws UserError with line and column for malformed text, and with the reason for what the eight primitives cannot
/// express: a coordinate used twice, an index that is not affine, x read twice, a window that is not bounded.
ParsedFormula parse_formula(std::string_view text, const FormulaShapes& shapes = {});

}  // namespace syno
