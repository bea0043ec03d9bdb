// How the C++ emitter runs a contraction of data with a weight: as a matrix product of packed weights and data whose
// columns lie side by side, after kernels that are known to be fast.
//
//   groups   axes of the result that data and weight have      a product each
//   rows     axes of the result that the weight alone has      in the packed weight
//   columns  axes of the result that the data alone has        side by side, without a gap
//   slices   the other axes of the data alone                  a product each, with the same weight
//   terms    summed axes                                       places in the data
//   taps     summed axes that slide over the outermost column axis, and over the innermost one where vectors lie over
//            rows of words: an offset, no copy. Of u = s*h + c*a with c dividing s every s/c-th a slides; the panel has the
//            data of the others beside it
//
// Data that already lies like this is read in place. Otherwise it is copied into a panel with everything that is
// expensive taken care of: masks become zeros, rotations and quotients choose what is copied. A cheap producer of the
// data is computed right there.
//
// With several terms in a word, the last axis of the terms is the one whose neighbours share words. Where no axis has a
// whole number of words, it is extended by terms that are zero. The panel has words where it has elements otherwise.
#pragma once

#include <optional>
#include <vector>

#include "syno/emit/cpp/formats.h"
#include "syno/emit/cpp/tuning.h"
#include "syno/plan/loop_nest.h"

namespace syno::cpp {

struct Contraction {
  /// Merged, without the batch; operand `data` and operand `weight`.
  LoopNest nest;
  std::size_t data = 0;
  std::size_t weight = 1;

  std::vector<int> groups;
  std::vector<int> slices;
  std::vector<int> rows;
  std::vector<int> columns;
  std::vector<int> terms;
  std::vector<int> taps;
  /// By tap axis: how it slides.
  struct Slide {
    /// Over which of the columns.
    std::size_t column = 0;
    /// Columns of that axis that `phases` steps of the tap are.
    std::int64_t step = 1;
    /// Taps so far apart read the same data.
    std::int64_t phases = 1;
    /// Floats of the panel between neighbouring phases.
    std::int64_t phase_elements = 0;
    /// Whether the data also depends on the tap itself: a column of the panel has the terms of each.
    bool kept = false;
  };
  std::vector<Slide> slides;
  bool in_place = false;
  /// Neighbouring rows of the outermost column axis are computed in pairs, with four products for six. The panel has its
  /// even rows before its odd ones.
  bool paired = false;
  bool can_pair = false;
  Precision precision = Precision::kFloat32;
  /// By column axis: its extent in the panel of a block, with what taps slide over.
  std::vector<std::int64_t> panel_columns;
  /// Places of the panel between neighbouring columns of a line: more than one where taps slide by less than a column.
  std::int64_t line_stride = 1;
  /// Data between neighbouring places; in a panel the terms of a word, or the number of terms where they lie inside of
  /// columns.
  std::int64_t point = 1;
  /// Whether the panel has the terms inside of columns.
  bool terms_inside = false;
  /// Rows of a block: extents of the outermost column axis. They divide it, but in pairs, where the last block may have
  /// fewer.
  std::int64_t block_rows = 1;
  std::int64_t blocks = 1;
  /// What block_rows may be where threads fill panels of their own, the largest first; empty where they cannot.
  std::vector<std::int64_t> possible_blocks;
  /// Every thread fills a panel of its own, block by block; otherwise all fill one together.
  bool private_panel = false;
  /// The panel's contents: axes block, groups, slices, terms, phases, u, other columns, terms of a word, as far as they
  /// are there; or all terms last. It stores to an imaginary buffer of that shape.
  LoopNest fill;
  std::vector<std::int64_t> panel_shape;

  std::int64_t product(const std::vector<int>& axes) const;
  std::int64_t row_count() const { return product(rows); }
  std::int64_t column_count() const { return product(columns); }
  std::int64_t term_count() const { return product(terms); }
  std::int64_t tap_count() const { return product(taps); }
  std::int64_t slice_count() const { return product(groups) * product(slices); }
  /// Elements of a column without the outermost column axis.
  std::int64_t width() const;
  /// Whether the last block has fewer rows.
  bool has_rest() const;
  /// Columns of a block; of each pair of rows one.
  std::int64_t block_columns() const;
  /// Columns that lie side by side in the data: those of a block, or of a line where taps slide along it.
  std::int64_t line_columns() const;
  /// Data between the places of neighbouring elements of a column axis in the panel.
  std::int64_t panel_step(std::size_t column) const;
  /// Elements of the panel of one block of one group and slice.
  std::int64_t block_elements() const;
};

/// Nothing when the nest is no contraction of data and a weight, or too thin for a matrix product. data: how the elements
/// of the data stand in memory. UserError for a tuning that this nest cannot have.
std::optional<Contraction> match_contraction(const LoopProgram& program, const LoopNest& nest,
                                             std::int64_t cache_floats,
                                             Precision precision = Precision::kFloat32,
                                             Element data = Element::kFloat32,
                                             const NestTuning& tuning = {});

}  // namespace syno::cpp
