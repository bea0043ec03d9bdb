#include "syno/graph/canonical.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "syno/support/at.h"
#include "syno/support/error.h"

namespace syno {
namespace {

using Color = std::uint64_t;

// Beyond this many orders of look-alike reductions, labels keep their order of making. Two equal graphs may then have
// two hashes; two different ones never share one.
constexpr std::size_t kMaxOrders = 5040;

// Colours of coordinates, for given colours of the reductions. "Up" colours say what a coordinate is made of.
class Coloring {
 public:
  Coloring(const Graph& graph, const std::vector<CoordinateId>& match)
      : graph_(graph), match_(match) {
    for (std::size_t id = 0; id < graph.coordinates().size(); ++id) {
      const auto coordinate = static_cast<CoordinateId>(id);
      if (graph.is_reduction(coordinate)) reductions_.push_back(coordinate);
    }
    const Variables& variables = *graph.variables();
    for (const Coordinate& coordinate : graph.coordinates())
      sizes_.push_back(coordinate.extent.hash(variables));
    for (const Step& step : graph.steps()) step_sizes_.push_back(step.size.hash(variables));
  }

  const std::vector<CoordinateId>& reductions() const { return reductions_; }

  Color initial(CoordinateId reduction) const {
    return Hasher("r").add(sizes_[at(reduction)]).finish().low;
  }

  std::vector<Color> up(const std::vector<Color>& reduction_colors) const {
    std::vector<Color> colors(graph_.coordinates().size());
    for (std::size_t d = 0; d < graph_.output().size(); ++d) {
      const Dimension& dim = graph_.output()[d];
      colors[d] = Hasher("o")
                      .add(static_cast<int>(d))
                      .add(sizes_[d])
                      .add(dim.unordered)
                      .add(dim.causal)
                      .finish()
                      .low;
    }
    std::size_t next_reduction = 0;
    for (std::size_t s = 0; s < graph_.steps().size(); ++s) {
      const Step& step = graph_.steps()[s];
      if (step.is_reduction()) {
        colors[at(step.out[0])] = reduction_colors[next_reduction++];
        continue;
      }
      const PrimitiveInfo& info = primitive_info(step.primitive);
      for (int i = 0; i < info.produces; ++i) {
        Hasher hasher("c");
        hasher.add(static_cast<int>(step.primitive))
            .add(i)
            .add(step_sizes_[s])
            .add(step.amount)
            .add(step.causal);
        for (int j = 0; j < info.consumes; ++j)
          hasher.add(colors[at(step.in[static_cast<std::size_t>(j)])]);
        colors[at(step.out[static_cast<std::size_t>(i)])] = hasher.finish().low;
      }
    }
    return colors;
  }

  // Colours of the reductions refined by what they are used for, until no class splits any more.
  std::vector<Color> refine(std::vector<Color> colors) const {
    std::size_t classes = distinct(colors);
    while (true) {
      std::vector<Color> finer = refine_once(colors);
      const std::size_t finer_classes = distinct(finer);
      if (finer_classes <= classes) return colors;
      colors = std::move(finer);
      classes = finer_classes;
    }
  }

  // The hash of everything, given discrete colours of the reductions.
  Hash128 hash(const std::vector<Color>& reduction_colors) const {
    const std::vector<Color> colors = up(reduction_colors);
    Hasher hasher(match_.empty() ? "graph" : "operator");
    hasher.add(static_cast<int>(graph_.output().size()));
    for (std::size_t d = 0; d < graph_.output().size(); ++d) hasher.add(colors[d]);
    add_sorted(hasher, reduction_colors);
    if (match_.empty()) {
      std::vector<Color> frontier;
      for (const CoordinateId id : graph_.frontier()) frontier.push_back(colors[at(id)]);
      add_sorted(hasher, frontier);
    } else {
      for (const CoordinateId id : match_) hasher.add(colors[at(id)]);
    }
    std::vector<Color> weights;
    for (const Weight& weight : graph_.weights()) weights.push_back(weight_color(weight, colors));
    add_sorted(hasher, weights);
    // A consumed coordinate is part of what consumed it; what leaves without a trace is listed here.
    std::vector<Color> expanded;
    for (const Step& step : graph_.steps()) {
      if (step.is_repetition()) expanded.push_back(colors[at(step.in[0])]);
    }
    add_sorted(hasher, expanded);
    return hasher.finish();
  }

 private:
  static std::size_t distinct(std::vector<Color> colors) {
    std::sort(colors.begin(), colors.end());
    return static_cast<std::size_t>(std::unique(colors.begin(), colors.end()) - colors.begin());
  }

  static void add_sorted(Hasher& hasher, std::vector<Color> colors) {
    std::sort(colors.begin(), colors.end());
    hasher.add(static_cast<int>(colors.size()));
    for (const Color color : colors) hasher.add(color);
  }

  static Color weight_color(const Weight& weight, const std::vector<Color>& colors) {
    Hasher hasher("w");
    std::vector<Color> dims;
    for (const CoordinateId id : weight.dims) dims.push_back(colors[at(id)]);
    add_sorted(hasher, dims);
    return hasher.finish().low;
  }

  std::vector<Color> refine_once(const std::vector<Color>& reduction_colors) const {
    const std::vector<Color> up_colors = up(reduction_colors);
    // Uses are summed, so that their order does not matter.
    std::vector<Color> down(up_colors.size(), 0);
    for (const Weight& weight : graph_.weights()) {
      const Color color = weight_color(weight, up_colors);
      for (const CoordinateId id : weight.dims)
        down[at(id)] += Hasher("held").add(color).finish().low;
    }
    for (std::size_t d = 0; d < match_.size(); ++d) {
      down[at(match_[d])] += Hasher("matched").add(static_cast<int>(d)).finish().low;
    }
    for (std::size_t s = graph_.steps().size(); s-- > 0;) {
      const Step& step = graph_.steps()[s];
      const PrimitiveInfo& info = primitive_info(step.primitive);
      for (int j = 0; j < info.consumes; ++j) {
        Hasher hasher("use");
        hasher.add(static_cast<int>(step.primitive))
            .add(j)
            .add(step_sizes_[s])
            .add(step.amount)
            .add(step.causal);
        if (info.consumes == 2) hasher.add(up_colors[at(step.in[static_cast<std::size_t>(1 - j)])]);
        for (int i = 0; i < info.produces; ++i)
          hasher.add(down[at(step.out[static_cast<std::size_t>(i)])]);
        down[at(step.in[static_cast<std::size_t>(j)])] += hasher.finish().low;
      }
    }
    std::vector<Color> finer;
    for (std::size_t i = 0; i < reductions_.size(); ++i) {
      finer.push_back(
          Hasher("fine").add(reduction_colors[i]).add(down[at(reductions_[i])]).finish().low);
    }
    return finer;
  }

  const Graph& graph_;
  const std::vector<CoordinateId>& match_;
  std::vector<CoordinateId> reductions_;
  std::vector<Color> sizes_;
  std::vector<Color> step_sizes_;
};

struct Labelling {
  /// Order of the reductions: rank[i] is the place of reductions()[i].
  std::vector<int> rank;
  Hash128 hash;
};

// Ranks the reductions by colour; look-alikes are tried in every order and the least hash wins.
Labelling label(const Graph& graph, const std::vector<CoordinateId>& match) {
  const Coloring coloring(graph, match);
  const std::size_t count = coloring.reductions().size();
  std::vector<Color> colors;
  for (const CoordinateId id : coloring.reductions()) colors.push_back(coloring.initial(id));
  colors = coloring.refine(std::move(colors));

  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  // By size first, which puts channels before windows and reads well; look-alikes have one size.
  const auto key = [&](std::size_t i) {
    return std::pair(graph.extent(coloring.reductions()[i]), colors[i]);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return key(a) < key(b); });

  // Reductions nothing uses yet look alike for ever: any order gives the same graph.
  std::vector<bool> bare(count, match.empty());
  for (const Step& step : graph.steps()) {
    for (std::size_t i = 0; i < count; ++i) {
      const CoordinateId id = coloring.reductions()[i];
      if (step.in[0] == id || step.in[1] == id) bare[i] = false;
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (graph.weight_count(coloring.reductions()[i]) > 0) bare[i] = false;
  }

  std::vector<std::pair<std::size_t, std::size_t>> cells;
  std::size_t orders = 1;
  for (std::size_t begin = 0; begin < count;) {
    std::size_t end = begin + 1;
    while (end < count && colors[order[end]] == colors[order[begin]]) ++end;
    if (end - begin > 1 && !bare[order[begin]]) {
      cells.emplace_back(begin, end);
      for (std::size_t n = 2; n <= end - begin && orders <= kMaxOrders; ++n) orders *= n;
    }
    begin = end;
  }

  Labelling best;
  bool found = false;
  const auto consider = [&] {
    std::vector<Color> discrete(count);
    std::vector<int> rank(count);
    for (std::size_t place = 0; place < count; ++place) {
      rank[order[place]] = static_cast<int>(place);
      discrete[order[place]] = Hasher("label")
                                   .add(coloring.initial(coloring.reductions()[order[place]]))
                                   .add(static_cast<int>(place))
                                   .finish()
                                   .low;
    }
    const Hash128 hash = coloring.hash(discrete);
    if (found && !(hash < best.hash)) return;
    found = true;
    best = {std::move(rank), hash};
  };

  if (cells.empty() || orders > kMaxOrders) {
    consider();
    return best;
  }
  for (auto& [begin, end] : cells)
    std::sort(order.begin() + static_cast<long>(begin), order.begin() + static_cast<long>(end));
  while (true) {
    consider();
    std::size_t cell = 0;
    while (cell < cells.size() &&
           !std::next_permutation(order.begin() + static_cast<long>(cells[cell].first),
                                  order.begin() + static_cast<long>(cells[cell].second))) {
      ++cell;
    }
    if (cell == cells.size()) return best;
  }
}

}  // namespace

Hash128 structure_hash(const Graph& graph, const std::vector<CoordinateId>& match) {
  return label(graph, match).hash;
}

CanonicalGraph canonicalize(const Graph& graph, const std::vector<CoordinateId>& match) {
  const Labelling labelling = label(graph, match);
  CanonicalGraph result{Graph(graph.variables(), graph.output()), {}, labelling.hash};
  result.renamed.assign(graph.coordinates().size(), kNoCoordinate);
  const auto renamed = [&](CoordinateId id) -> CoordinateId& {
    return result.renamed[static_cast<std::size_t>(id)];
  };
  for (std::size_t d = 0; d < graph.output().size(); ++d)
    renamed(static_cast<CoordinateId>(d)) = static_cast<CoordinateId>(d);

  std::vector<CoordinateId> reductions;
  for (std::size_t id = 0; id < graph.coordinates().size(); ++id) {
    if (graph.is_reduction(static_cast<CoordinateId>(id)))
      reductions.push_back(static_cast<CoordinateId>(id));
  }
  std::vector<std::size_t> by_rank(reductions.size());
  for (std::size_t i = 0; i < reductions.size(); ++i)
    by_rank[static_cast<std::size_t>(labelling.rank[i])] = i;
  for (const std::size_t i : by_rank) {
    renamed(reductions[i]) = result.graph.apply(Step::reduce(graph.extent(reductions[i]))).out[0];
  }

  // A coordinate leaves the frontier only after every weight that holds it was made.
  std::vector<int> holders(graph.coordinates().size(), 0);
  for (const Weight& weight : graph.weights()) {
    for (const CoordinateId id : weight.dims) ++holders[static_cast<std::size_t>(id)];
  }
  std::vector<bool> leaves_in_weight(graph.coordinates().size(), false);
  std::vector<const Step*> waiting;
  for (const Step& step : graph.steps()) {
    if (!step.is_reduction()) waiting.push_back(&step);
    for (const WeightDim& dim : step.dims) {
      if (dim.role != WeightRole::kKeep)
        leaves_in_weight[static_cast<std::size_t>(dim.coordinate)] = true;
    }
  }

  // Whether a contraction taken now would leave all its coordinates in the data.
  const auto keeps_all = [&](const Step& step) {
    for (const WeightDim& dim : step.dims) {
      const auto id = static_cast<std::size_t>(dim.coordinate);
      if (leaves_in_weight[id] && holders[id] == 1) return false;
    }
    return true;
  };

  // Repeatedly takes the ready step that comes first: by primitive, then by the new numbers of what it consumes. A
  // contraction that would keep everything waits, so that weights are element-wise only where no order avoids it.
  using Key = std::tuple<int, std::vector<CoordinateId>, Size, int, bool>;
  while (!waiting.empty()) {
    const Step** best = nullptr;
    Key best_key;
    for (const Step*& step : waiting) {
      std::vector<CoordinateId> used;
      bool ready = true;
      const auto use = [&](CoordinateId id, bool consumed) {
        if (renamed(id) == kNoCoordinate ||
            (consumed && holders[static_cast<std::size_t>(id)] > 0)) {
          ready = false;
        } else {
          used.push_back(renamed(id));
        }
      };
      for (int j = 0; j < primitive_info(step->primitive).consumes; ++j)
        use(step->in[static_cast<std::size_t>(j)], true);
      for (const WeightDim& dim : step->dims) use(dim.coordinate, false);
      if (!ready) continue;
      if (step->is_contraction()) std::sort(used.begin(), used.end());
      const int rank = 2 * static_cast<int>(step->primitive) +
                       (step->is_contraction() && keeps_all(*step) ? 1 : 0);
      Key key{rank, std::move(used), step->size, step->amount, step->causal};
      if (best == nullptr || key < best_key) {
        best = &step;
        best_key = std::move(key);
      }
    }
    ensure(best != nullptr, "canonicalize: steps wait for each other");
    Step copy = **best;
    copy.out = {kNoCoordinate, kNoCoordinate};
    for (int j = 0; j < primitive_info(copy.primitive).consumes; ++j) {
      copy.in[static_cast<std::size_t>(j)] = renamed((*best)->in[static_cast<std::size_t>(j)]);
    }
    for (WeightDim& dim : copy.dims) {
      const CoordinateId old = dim.coordinate;
      const bool last = --holders[static_cast<std::size_t>(old)] == 0;
      dim.coordinate = renamed(old);
      const bool leaves = last && leaves_in_weight[static_cast<std::size_t>(old)];
      dim.role = !leaves                                         ? WeightRole::kKeep
                 : result.graph.weight_count(dim.coordinate) > 0 ? WeightRole::kJoin
                                                                 : WeightRole::kDrop;
    }
    const Step& applied = result.graph.apply(std::move(copy));
    for (int i = 0; i < primitive_info(applied.primitive).produces; ++i) {
      renamed((*best)->out[static_cast<std::size_t>(i)]) = applied.out[static_cast<std::size_t>(i)];
    }
    waiting.erase(waiting.begin() + (best - waiting.data()));
  }
  return result;
}

}  // namespace syno
