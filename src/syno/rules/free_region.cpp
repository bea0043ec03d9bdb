#include "syno/rules/free_region.h"

#include <algorithm>

#include "syno/spec/size_values.h"
#include "syno/spec/variable_fingerprints.h"

namespace syno {
namespace {

// The step that consumes `id`, or -1.
int consumer(const Graph& graph, CoordinateId id) {
  for (std::size_t s = 0; s < graph.steps().size(); ++s) {
    const Step& step = graph.steps()[s];
    if (step.in[0] == id || step.in[1] == id) return static_cast<int>(s);
  }
  return -1;
}

// Views whose results are free, and Reduces.
bool is_free_step(const Graph& graph, std::size_t index) {
  const CoordinateId out = graph.steps()[index].out[0];
  return out != kNoCoordinate && graph.coordinate(out).free != kNotFree;
}

}  // namespace

FreeRegion free_region(const Graph& graph, CoordinateId member) {
  FreeRegion region;
  region.steps.assign(graph.steps().size(), 0);
  region.coordinates.assign(graph.coordinates().size(), 0);
  InlineVector<CoordinateId, 16> open{member};
  const auto visit_step = [&](int index) {
    const auto s = static_cast<std::size_t>(index);
    if (region.holds_step(s)) return;
    region.steps[s] = 1;
    for (const CoordinateId id : graph.steps()[s].in) {
      if (id != kNoCoordinate) open.push_back(id);
    }
    for (const CoordinateId id : graph.steps()[s].out) {
      if (id != kNoCoordinate) open.push_back(id);
    }
  };
  while (!open.empty()) {
    const CoordinateId id = open.back();
    open.pop_back();
    if (region.holds(id)) continue;
    region.coordinates[static_cast<std::size_t>(id)] = 1;
    if (!graph.is_iterator(id)) visit_step(graph.coordinate(id).step);
    const int next = consumer(graph, id);
    if (next >= 0 && is_free_step(graph, static_cast<std::size_t>(next))) {
      visit_step(next);
    } else {
      region.leaves.push_back(id);
    }
  }
  std::sort(region.leaves.begin(), region.leaves.end());
  return region;
}

namespace {

// Takes everything else again. The leaves have been made anew; each weight that held some digits of the region holds the
// leaves that are made of them.
void copy_others(const Graph& graph, const FreeRegion& region, Rebuild& rebuild) {
  unsigned weight = 0;
  for (std::size_t s = 0; s < graph.steps().size(); ++s) {
    if (region.holds_step(s)) continue;
    const Step& step = graph.steps()[s];
    if (!step.is_contraction()) {
      rebuild.copy(s);
      continue;
    }
    WeightDims dims;
    for (const WeightDim& dim : step.dims) {
      if (!region.holds(dim.coordinate)) dims.push_back({rebuild.now(dim.coordinate), dim.role});
    }
    for (const CoordinateId leaf : region.leaves) {
      if ((graph.coordinate(leaf).weights >> weight & 1) == 0) continue;
      WeightRole role = WeightRole::kKeep;
      for (const WeightDim& dim : step.dims) {
        if (dim.coordinate != leaf || dim.role == WeightRole::kKeep) continue;
        role = rebuild.graph().weight_count(rebuild.now(leaf)) > 0 ? WeightRole::kJoin
                                                                   : WeightRole::kDrop;
      }
      dims.push_back({rebuild.now(leaf), role});
    }
    rebuild.add(Step::contract(std::move(dims)));
    ++weight;
  }
}

}  // namespace

Graph with_reduces(const Graph& graph, const FreeRegion& region, Guard* guard) {
  Rebuild rebuild(graph, guard);
  for (const CoordinateId id : region.leaves)
    rebuild.rename(id, rebuild.add(Step::reduce(graph.extent(id))).out[0]);
  copy_others(graph, region, rebuild);
  return rebuild.graph();
}

bool smaller_block(const Specification& spec, const Size& a, const Size& b) {
  SizeTable& table = SizeTable::of(spec);
  const double sum_a = table.at(spec, a).sum;
  const double sum_b = table.at(spec, b).sum;
  if (sum_a != sum_b || a == b) return sum_a < sum_b;
  const Hash128 fingerprint_a = size_fingerprint(spec, a);
  const Hash128 fingerprint_b = size_fingerprint(spec, b);
  return fingerprint_a != fingerprint_b ? fingerprint_a < fingerprint_b : a < b;
}

std::optional<Graph> with_ascending_merges(const Specification& spec, const Graph& graph,
                                           const FreeRegion& region, Guard* guard) {
  InlineVector<CoordinateId, 8> pieces = region.leaves;
  std::stable_sort(pieces.begin(), pieces.end(), [&](CoordinateId a, CoordinateId b) {
    return smaller_block(spec, graph.extent(a), graph.extent(b));
  });
  Size rest = graph.extent(pieces.back());
  for (std::size_t i = pieces.size() - 1; i-- > 0;) {
    if (smaller_block(spec, rest, graph.extent(pieces[i]))) return std::nullopt;
    rest = rest * graph.extent(pieces[i]);
  }
  // An iterator stays what it is; Reduces become one.
  const std::int16_t of = graph.coordinate(pieces.front()).free;
  Rebuild rebuild(graph, guard);
  CoordinateId quotient =
      of == kFreeReduction ? rebuild.add(Step::reduce(rest)).out[0] : static_cast<CoordinateId>(of);
  for (std::size_t i = 0; i + 1 < pieces.size(); ++i) {
    const Step merged = rebuild.add(Step::merge(quotient, graph.extent(pieces[i])));
    rebuild.rename(pieces[i], merged.out[1]);
    quotient = merged.out[0];
  }
  rebuild.rename(pieces.back(), quotient);
  copy_others(graph, region, rebuild);
  return rebuild.graph();
}

std::optional<Graph> ascending_merges_rewrite(const RuleContext& context) {
  const Graph rejected = whole(context);
  const FreeRegion region = free_region(rejected, rejected.steps().back().out[0]);
  if (has_ascending_merges(context.spec, rejected, region)) return std::nullopt;
  return with_ascending_merges(context.spec, rejected, region, context.guard);
}

bool has_ascending_merges(const Specification& spec, const Graph& graph, const FreeRegion& region) {
  int roots = graph.coordinate(region.leaves.front()).free == kFreeReduction ? 0 : 1;
  Size block;
  for (std::size_t s = 0; s < graph.steps().size(); ++s) {
    if (!region.holds_step(s)) continue;
    const Step& step = graph.steps()[s];
    if (step.is_reduction()) {
      if (++roots > 1) return false;
      continue;
    }
    // Merges of a chain come one after another in the order of steps.
    if (!step.info().cuts() || graph.weight_count(step.in[0]) > 0) return false;
    const Step* maker = graph.producer(step.in[0]);
    if (maker != nullptr && maker->out[1] == step.in[0]) return false;
    if (!block.is_one() && smaller_block(spec, step.size, block)) return false;
    block = step.size;
    if (smaller_block(spec, graph.extent(step.out[0]), block)) {
      // The last quotient must not be smaller than the last block.
      const int next = consumer(graph, step.out[0]);
      if (next < 0 || !region.holds_step(static_cast<std::size_t>(next))) return false;
    }
  }
  return true;
}

}  // namespace syno
