// Brute force, independent of the semantic key: an operator under a small binding as its explicit
// set of terms
//     (output index, input index, element of each weight), each with how often it occurs,
// and an exact decision whether two such sets are the same up to E1 to E4. Weight elements and
// indices of unordered dimensions are nodes; colour refinement narrows what may be mapped to what
// (a difference of colours proves that there is no isomorphism), backtracking finds a mapping, and
// a mapping counts only when it turns one set of rows into the other.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "syno/graph/operator.h"
#include "syno/support/checked.h"
#include "syno/support/error.h"
#include "syno/support/mix.h"

namespace syno::oracle {

struct TermSet {
  /// Group of a node column: weights share one group, an unordered dimension has its slot.
  static constexpr int kWeight = -1;
  std::vector<int> column_groups;
  /// Exact index values, then one node a column; how often the term occurs.
  std::map<std::pair<std::vector<std::int64_t>, std::vector<int>>, std::int64_t> rows;
  /// The column of each node.
  std::vector<int> node_columns;
};

inline TermSet term_set(const Operator& op, const Values& values) {
  const Graph& graph = op.graph();
  std::vector<std::int64_t> extents;
  for (std::size_t id = 0; id < graph.coordinates().size(); ++id)
    extents.push_back(graph.extent(static_cast<CoordinateId>(id)).evaluate(values).value());
  std::vector<std::size_t> free;
  for (std::size_t id = 0; id < extents.size(); ++id) {
    const auto coordinate = static_cast<CoordinateId>(id);
    if (graph.is_iterator(coordinate) || graph.is_reduction(coordinate)) free.push_back(id);
  }
  TermSet set;
  std::vector<std::pair<bool, CoordinateId>> dims;
  for (std::size_t d = 0; d < op.output().size(); ++d)
    dims.emplace_back(op.output()[d].unordered, static_cast<CoordinateId>(d));
  for (std::size_t d = 0; d < op.input().size(); ++d)
    dims.emplace_back(op.input()[d].unordered, op.match()[d]);
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (dims[d].first) set.column_groups.push_back(static_cast<int>(d));
  }
  for (std::size_t w = 0; w < graph.weights().size(); ++w)
    set.column_groups.push_back(TermSet::kWeight);
  std::vector<std::map<std::vector<std::int64_t>, int>> nodes(set.column_groups.size());
  const auto node = [&](std::size_t column, const std::vector<std::int64_t>& element) {
    const auto [place, fresh] =
        nodes[column].emplace(element, static_cast<int>(set.node_columns.size()));
    if (fresh) set.node_columns.push_back(static_cast<int>(column));
    return place->second;
  };

  std::vector<std::int64_t> at(extents.size(), 0);
  const auto evaluate = [&]() -> bool {
    for (const Step& step : graph.steps()) {
      const auto in = [&](int i) {
        return at[static_cast<std::size_t>(step.in[static_cast<std::size_t>(i)])];
      };
      const auto out = [&](int i) -> std::int64_t& {
        return at[static_cast<std::size_t>(step.out[static_cast<std::size_t>(i)])];
      };
      const auto extent = [&](CoordinateId id) { return extents[static_cast<std::size_t>(id)]; };
      switch (step.primitive) {
        case Primitive::kSplit: out(0) = extent(step.in[1]) * in(0) + in(1); break;
        case Primitive::kMerge: {
          const std::int64_t block = step.size.evaluate(values).value();
          out(0) = in(0) / block;
          out(1) = in(0) % block;
          break;
        }
        case Primitive::kShift:
          out(0) = floor_modulo(in(0) + step.amount, extent(step.in[0]));
          break;
        case Primitive::kUnfold: {
          const std::int64_t window = extent(step.in[1]);
          out(0) = in(0) + in(1) - (step.causal ? window - 1 : window / 2);
          if (out(0) < 0 || out(0) >= extent(step.in[0])) return false;
          break;
        }
        case Primitive::kStride: out(0) = step.size.evaluate(values).value() * in(0); break;
        case Primitive::kExpand:
        case Primitive::kReduce:
        case Primitive::kContraction: break;
      }
    }
    return true;
  };
  while (true) {
    if (evaluate()) {
      std::vector<std::int64_t> exact;
      std::vector<int> row;
      for (const auto& [unordered, id] : dims) {
        const std::int64_t index = at[static_cast<std::size_t>(id)];
        if (unordered) {
          row.push_back(node(row.size(), {index}));
        } else {
          exact.push_back(index);
        }
      }
      for (const Weight& weight : graph.weights()) {
        std::vector<std::int64_t> element;
        for (const CoordinateId id : weight.dims)
          element.push_back(at[static_cast<std::size_t>(id)]);
        row.push_back(node(row.size(), element));
      }
      ++set.rows[{exact, row}];
    }
    std::size_t i = 0;
    while (i < free.size() && ++at[free[i]] == extents[free[i]]) at[free[i++]] = 0;
    if (i == free.size()) break;
  }
  return set;
}

using Colours = std::vector<std::uint64_t>;

/// Colours of nodes, then of columns.
inline Colours first_colours(const TermSet& set) {
  Colours colours;
  for (const int column : set.node_columns)
    colours.push_back(mix_words(
        1, static_cast<std::uint64_t>(set.column_groups[static_cast<std::size_t>(column)])));
  for (const int group : set.column_groups)
    colours.push_back(mix_words(2, static_cast<std::uint64_t>(group)));
  return colours;
}

inline std::size_t distinct(Colours colours) {
  std::sort(colours.begin(), colours.end());
  return static_cast<std::size_t>(std::unique(colours.begin(), colours.end()) - colours.begin());
}

inline void refine(const TermSet& set, Colours& colours) {
  const std::size_t nodes = set.node_columns.size();
  for (std::size_t before = distinct(colours);;) {
    Colours next(colours.size(), 0);
    for (const auto& [row, count] : set.rows) {
      std::uint64_t hash = static_cast<std::uint64_t>(count);
      for (const std::int64_t index : row.first)
        hash = mix_words(hash, static_cast<std::uint64_t>(index));
      std::uint64_t all = 0;  // columns carry their colour, so a sum is enough
      for (const int node : row.second) {
        const auto column =
            static_cast<std::size_t>(set.node_columns[static_cast<std::size_t>(node)]);
        all += mix_words(colours[static_cast<std::size_t>(node)], colours[nodes + column]);
      }
      hash = mix_words(hash, all);
      for (const int node : row.second) next[static_cast<std::size_t>(node)] += mix_words(hash, 3);
    }
    for (std::size_t node = 0; node < nodes; ++node) {
      const auto column = nodes + static_cast<std::size_t>(set.node_columns[node]);
      next[node] = mix_words(mix_words(colours[node], next[node]), colours[column]);
      next[column] += mix_words(next[node], 7);
    }
    for (std::size_t column = nodes; column < next.size(); ++column)
      next[column] = mix_words(colours[column], next[column]);
    colours = std::move(next);
    const std::size_t now = distinct(colours);
    if (now <= before) return;
    before = now;
  }
}

/// A hash that same operators share.
inline std::uint64_t invariant(const TermSet& set) {
  Colours colours = first_colours(set);
  refine(set, colours);
  std::sort(colours.begin(), colours.end());
  std::uint64_t hash = 0;
  for (const std::uint64_t colour : colours) hash = mix_words(hash, colour);
  std::uint64_t rows = 0;
  for (const auto& [row, count] : set.rows) {
    std::uint64_t one = static_cast<std::uint64_t>(count);
    for (const std::int64_t index : row.first)
      one = mix_words(one, static_cast<std::uint64_t>(index));
    rows += mix_words(one, 11);
  }
  return mix_words(hash, rows);
}

class Matcher {
 public:
  Matcher(const TermSet& a, const TermSet& b) : a_(a), b_(b) {}

  /// Throws InternalError when the search does not end within its budget: undecided is never an
  /// answer.
  bool same() {
    if (a_.column_groups != b_.column_groups || a_.rows.size() != b_.rows.size() ||
        a_.node_columns.size() != b_.node_columns.size())
      return false;
    Colours a = first_colours(a_);
    Colours b = first_colours(b_);
    refine(a_, a);
    refine(b_, b);
    return match(a, b);
  }

 private:
  bool match(const Colours& a, const Colours& b) {
    ensure(++steps_ < 3000, "oracle: too many branches");
    Colours sorted_a = a;
    Colours sorted_b = b;
    std::sort(sorted_a.begin(), sorted_a.end());
    std::sort(sorted_b.begin(), sorted_b.end());
    if (sorted_a != sorted_b) return false;
    std::map<std::uint64_t, std::vector<std::size_t>> cells;
    for (std::size_t i = 0; i < b.size(); ++i) cells[b[i]].push_back(i);
    const std::vector<std::size_t>* smallest = nullptr;
    for (const auto& [colour, members] : cells) {
      if (members.size() > 1 && (smallest == nullptr || members.size() < smallest->size()))
        smallest = &members;
    }
    if (smallest == nullptr) return maps_rows(a, cells);
    const std::uint64_t colour = b[smallest->front()];
    const auto chosen = static_cast<std::size_t>(std::find(a.begin(), a.end(), colour) - a.begin());
    Colours next_a = a;
    next_a[chosen] = mix_words(colour, 5);
    refine(a_, next_a);
    for (const std::size_t candidate : *smallest) {
      Colours next_b = b;
      next_b[candidate] = mix_words(colour, 5);
      refine(b_, next_b);
      if (match(next_a, next_b)) return true;
    }
    return false;
  }

  // Whether sending each node of a to the node of b with its colour turns the rows of a into those
  // of b.
  bool maps_rows(const Colours& a, const std::map<std::uint64_t, std::vector<std::size_t>>& cells) {
    const std::size_t nodes = a_.node_columns.size();
    const auto image = [&](std::size_t i) { return cells.at(a[i]).front(); };
    for (const auto& [row, count] : a_.rows) {
      std::vector<int> mapped(row.second.size(), -1);
      for (std::size_t column = 0; column < row.second.size(); ++column) {
        const std::size_t to = image(static_cast<std::size_t>(row.second[column]));
        const std::size_t to_column = image(nodes + column) - nodes;
        if (to >= nodes || b_.node_columns[to] != static_cast<int>(to_column) ||
            a_.column_groups[column] != b_.column_groups[to_column])
          return false;
        mapped[to_column] = static_cast<int>(to);
      }
      const auto place = b_.rows.find({row.first, mapped});
      if (place == b_.rows.end() || place->second != count) return false;
    }
    return true;
  }

  const TermSet& a_;
  const TermSet& b_;
  int steps_ = 0;
};

inline bool same_operator(const TermSet& a, const TermSet& b) {
  return Matcher(a, b).same();
}

}  // namespace syno::oracle
