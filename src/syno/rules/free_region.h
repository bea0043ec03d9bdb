// Free regions: the part of a graph that turns Reduces, or the iterator of an unordered output dimension, into free
// coordinates by one-to-one views. What it does inside does not matter, only the leaves it ends in: their sizes, and
// which weights hold each or something that it is made of. Rules that know this share this file.
#pragma once

#include <optional>

#include "syno/rules/rebuild.h"
#include "syno/support/inline_vector.h"

namespace syno {

struct FreeRegion {
  /// Step s of the graph belongs to it.
  InlineVector<std::uint8_t, 16> steps;
  /// Coordinate c of the graph belongs to it.
  InlineVector<std::uint8_t, 32> coordinates;
  /// Coordinates of the region that no step of it consumes, ascending.
  InlineVector<CoordinateId, 8> leaves;

  bool holds_step(std::size_t step) const { return steps[step] != 0; }
  bool holds(CoordinateId id) const { return coordinates[static_cast<std::size_t>(id)] != 0; }
};

/// The connected part of the region around `member`, which is free.
FreeRegion free_region(const Graph& graph, CoordinateId member);

/// The graph with a Reduce for each leaf instead of the region (class kFreeReduction).
Graph with_reduces(const Graph& graph, const FreeRegion& region, Guard* guard);

/// Whether a comes before b among the blocks of Merges: by the sum of its values over the bindings, so that a product
/// does not come before its factors, and then by what does not depend on names.
bool smaller_block(const Specification& spec, const Size& a, const Size& b);

/// The graph whose region is one Reduce (or the iterator) and Merges of quotients by ascending blocks, all of them below
/// the weights. Nothing where that form could not have been built in this order: then some block is larger than what is
/// left.
std::optional<Graph> with_ascending_merges(const Specification& spec, const Graph& graph,
                                           const FreeRegion& region, Guard* guard);

/// Rule::rewrite of rules that keep this form of the region around the last step's first result.
std::optional<Graph> ascending_merges_rewrite(const RuleContext& context);

/// Whether the region has that form.
bool has_ascending_merges(const Specification& spec, const Graph& graph, const FreeRegion& region);

}  // namespace syno
