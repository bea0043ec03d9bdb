// From what a text says to what it means: one access of x, the accesses of the weights and the conditions, all as forms
// over the iterators of the output and the indices that are summed over. Stages are put into each other, names replaced.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "syno/graph/shape.h"
#include "syno/notation/index_form.h"
#include "syno/notation/parse.h"
#include "syno/notation/syntax.h"

namespace syno::notation {

struct Leaf {
  std::string name;
  std::optional<Size> extent;
  bool reduction = false;
  /// Where it is named.
  std::size_t begin = 0;
};

struct Index {
  FormId form = 0;
  /// What it has to be below; nothing where that follows from what it is.
  std::optional<Size> extent;
  /// As the text writes it, and where.
  std::string text;
  std::size_t begin = 0;
};

struct Meaning {
  FormulaText source;
  VariablesPtr variables;
  Forms forms;
  /// The iterators of the output, then the reductions.
  std::vector<Leaf> leaves;
  std::size_t output_rank = 0;
  std::optional<Shape> output;
  std::optional<Shape> input;
  std::vector<Index> data;
  struct Weight {
    std::string name;
    std::vector<Index> indices;
    std::size_t begin = 0;
  };
  std::vector<Weight> weights;
  /// Each must be inside its extent for a term to count.
  std::vector<Index> conditions;
};

/// Throws UserError.
Meaning resolve(std::string_view text, const FormulaShapes& shapes);

/// Gives sizes to leaves that have none, where what is known leaves one choice. Throws UserError when some stay open.
void infer_extents(Meaning& meaning);

}  // namespace syno::notation
