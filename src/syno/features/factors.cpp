#include "syno/features/factors.h"

#include <algorithm>
#include <string>

#include "syno/support/checked.h"
#include "syno/support/error.h"

namespace syno {
namespace {

// The positions that a table reads along one variable, with the others in their middles.
std::vector<std::int64_t> reads_along(const AccessTable& table, int variable,
                                      const std::vector<std::int64_t>& extents) {
  std::size_t middle = 0;
  for (const int other : table.variables) {
    const auto half = static_cast<std::size_t>(extents[static_cast<std::size_t>(other)] / 2);
    if (other != variable) middle += grid_offsets({other}, table.variables, extents)[half];
  }
  std::vector<std::int64_t> reads;
  for (const std::size_t along : grid_offsets({variable}, table.variables, extents))
    reads.push_back(table.index[middle + along]);
  return reads;
}

void check_size(const Factors& made, const std::vector<std::int64_t>& extents, std::int64_t most) {
  std::int64_t elements = 1;
  for (const auto* group : {&made.blocks, &made.free, &made.taps})
    for (const int variable : *group)
      elements = checked_multiply(elements, extents[static_cast<std::size_t>(variable)],
                                  "the matrix of an operator");
  if (elements <= most) return;
  throw Complaint("the operator is a matrix of " + std::to_string(elements) +
                  " elements here, too large to fit")
      .expected("at most " + std::to_string(most), std::to_string(elements))
      .error();
}

}  // namespace

bool depends_on(const AccessTable& table, int variable) {
  return std::ranges::find(table.variables, variable) != table.variables.end();
}

std::vector<std::size_t> grid_offsets(const std::vector<int>& group, const std::vector<int>& of,
                                      const std::vector<std::int64_t>& extents) {
  std::vector<std::size_t> found{0};
  for (const int variable : group) {
    const auto extent = static_cast<std::size_t>(extents[static_cast<std::size_t>(variable)]);
    std::size_t stride = 0;
    if (const auto at = std::ranges::find(of, variable); at != of.end()) {
      stride = 1;
      for (auto inner = at + 1; inner != of.end(); ++inner)
        stride *= static_cast<std::size_t>(extents[static_cast<std::size_t>(*inner)]);
    }
    std::vector<std::size_t> next;
    next.reserve(found.size() * extent);
    for (const std::size_t base : found)
      for (std::size_t i = 0; i < extent; ++i) next.push_back(base + i * stride);
    found = std::move(next);
  }
  return found;
}

Factors factors(const AccessTables& tables, TapOrder order, std::int64_t most) {
  const std::vector<std::int64_t>& extents = tables.extents;
  const auto by_data = [&](int v) {
    return depends_on(tables.data, v) ||
           std::ranges::any_of(tables.masks,
                               [&](const AccessTable& mask) { return depends_on(mask, v); });
  };
  const auto by_weights = [&](int v) {
    return std::ranges::any_of(tables.weights,
                               [&](const AccessTable& weight) { return depends_on(weight, v); });
  };
  Factors made;
  for (int v = 0; v < static_cast<int>(extents.size()); ++v) {
    if (v < tables.outputs) {
      (!by_data(v) ? made.free : by_weights(v) ? made.blocks : made.rows).push_back(v);
    } else {
      (by_data(v) ? made.taps : made.ranks).push_back(v);
    }
  }
  check_size(made, extents, most);
  if (order == TapOrder::kByReads) {
    std::ranges::stable_sort(made.taps, {},
                             [&](int v) { return reads_along(tables.data, v, extents); });
  }
  const auto read_through = [&](const AccessTable& table, bool is_mask) {
    const auto block = grid_offsets(made.blocks, table.variables, extents);
    const auto row = grid_offsets(made.rows, table.variables, extents);
    const auto tap = grid_offsets(made.taps, table.variables, extents);
    made.reads.resize(block.size() * row.size() * tap.size());
    auto read = made.reads.begin();
    for (const std::size_t b : block)
      for (const std::size_t r : row)
        for (const std::size_t t : tap) {
          const std::int64_t at = table.index[b + r + t];
          if (!is_mask || at < 0) *read = at;
          ++read;
        }
  };
  read_through(tables.data, false);
  for (const AccessTable& mask : tables.masks) read_through(mask, true);
  return made;
}

}  // namespace syno
