#include "syno/quality/quality_memo.h"

#include <algorithm>

#include "syno/interp/causality.h"
#include "syno/support/checked.h"
#include "syno/support/error.h"

namespace syno {
namespace {

int rank_in(CoordinateMask mask, int id) {
  return __builtin_popcountll(mask & (coordinate_bit(id) - 1));
}

// All that a question about a part depends on, with its coordinates numbered in their order.
void add_part(Hasher& hasher, const CompactMap& map, CoordinateMask part) {
  for_each_bit(part, [&](int id) {
    const CompactMap::Node& node = map.nodes[static_cast<std::size_t>(id)];
    const CoordinateMask self = coordinate_bit(id);
    const auto local = [&](int below) {
      return static_cast<std::uint64_t>(below < 0 ? 0x7F : rank_in(part, below));
    };
    hasher.add(static_cast<std::uint64_t>(node.kind) |
               static_cast<std::uint64_t>(node.causal) << 4 |
               static_cast<std::uint64_t>((map.data & self) != 0) << 5 |
               static_cast<std::uint64_t>((map.shared & self) != 0) << 6 | local(node.a) << 8 |
               local(node.b) << 16 | static_cast<std::uint64_t>(node.extent) << 24 |
               static_cast<std::uint64_t>(static_cast<std::uint16_t>(node.amount)) << 40);
  });
}

// Whether the visible coordinates of one term tell the iterators of its output element, whatever the extents are: the
// same spreading of knowledge as in coverage.cpp, where extents of 1 help too.
bool tells_iterators(const CompactMap& map, CoordinateMask part) {
  CoordinateMask known = (map.data | map.shared) & part;
  const CoordinateMask wanted = map.iterators & part;
  CoordinateMask before = 0;
  while (before != known && (wanted & ~known) != 0) {
    before = known;
    CoordinateMask result_known = 0;
    for_each_bit(part, [&](int id) {
      const CompactMap::Node& node = map.nodes[static_cast<std::size_t>(id)];
      const CoordinateMask self = coordinate_bit(id);
      const CoordinateMask a = node.a < 0 ? 0 : coordinate_bit(node.a);
      const CoordinateMask b = node.b < 0 ? 0 : coordinate_bit(node.b);
      spread_knowledge(
          node.kind, self, a, b, [&](CoordinateMask of) { return (known & of) != 0; },
          [&](CoordinateMask of) { known |= of; },
          [&](CoordinateMask of) {  // the two results of a Merge name the same coordinate
            const bool both = (result_known & of) != 0;
            result_known |= of;
            return both;
          });
    });
  }
  return (wanted & ~known) == 0;
}

}  // namespace

QualityMemo::QualityMemo(const Specification& spec, ExtentTable& extents)
    : spec_(spec), extents_(extents) {
  const auto marked = [](const Dimension& dim) { return dim.causal; };
  if (std::none_of(spec.output().begin(), spec.output().end(), marked) &&
      std::none_of(spec.input().begin(), spec.input().end(), marked)) {
    return;
  }
  try {
    pairs_ = causal_pairs(spec.output(), spec.input(), *spec.variables());
  } catch (const UserError&) {
    usable_ = false;
  }
}

void QualityMemo::clear() {
  verdicts_.clear();
  futures_.clear();
}

Reason QualityMemo::structure(const Graph& graph, const CompactMap& map) {
  if (map.weight_count == 0) return reason::kNoWeight;
  return first_wasted_step(graph, map);
}

Reason QualityMemo::pooling(const CompactMap& map, FitMask fit) const {
  const CoordinateMask pooled = pooled_reductions(map);
  if (pooled == 0 && spec_.limits().max_pooling >= 1) return reason::kNone;
  for (std::size_t b = 0; b < extents_.bindings().size(); ++b) {
    if (!(fit >> b & 1)) continue;
    std::int64_t factor = 1;
    for_each_bit(pooled, [&](int id) {
      const std::int64_t extent =
          extents_.values(map.nodes[static_cast<std::size_t>(id)].extent)[b];
      factor = checked_multiply(factor, extent, "a size");
    });
    if (factor > spec_.limits().max_pooling) return reason::kPooling;
  }
  return reason::kNone;
}

void QualityMemo::split(const CompactMap& map) {
  parts_.clear();
  for (std::size_t i = 0; i < map.count; ++i) {
    const CompactMap::Node& node = map.nodes[i];
    CoordinateMask below = 0;
    if (node.a >= 0) below |= coordinate_bit(node.a);
    if (node.b >= 0) below |= coordinate_bit(node.b);
    CoordinateMask part = coordinate_bit(static_cast<int>(i));
    for (std::size_t p = 0; below != 0 && p < parts_.size();) {
      if ((parts_[p] & below) == 0) {
        ++p;
        continue;
      }
      part |= parts_[p];
      below &= ~parts_[p];
      parts_[p] = parts_.back();
      parts_.pop_back();
    }
    parts_.push_back(part);
  }
}

AccessMap QualityMemo::part_map(const CompactMap& map, CoordinateMask part) const {
  AccessMap result;
  result.variables = spec_.variables();
  std::vector<CoordinateId> visible;
  for_each_bit(part, [&](int id) {
    const CompactMap::Node& node = map.nodes[static_cast<std::size_t>(id)];
    const auto extent_of = [&](int coordinate) {
      return extents_.size(map.nodes[static_cast<std::size_t>(coordinate)].extent);
    };
    Expression expression;
    expression.kind = node.kind;
    expression.extent = extent_of(id);
    expression.amount = node.amount;
    expression.causal = node.causal;
    if (node.a >= 0) expression.a = static_cast<CoordinateId>(rank_in(part, node.a));
    if (node.b >= 0) expression.b = static_cast<CoordinateId>(rank_in(part, node.b));
    const auto self = static_cast<CoordinateId>(result.expressions.size());
    if (is_leaf(node.kind)) {
      (is_summed(node.kind) ? result.reductions : result.iterators).push_back(self);
    } else {
      expression.size = size_in_formula(node.kind, expression.extent, extent_of(node.a),
                                        node.b >= 0 ? extent_of(node.b) : Size());
    }
    if (is_masked(node.kind)) result.windows.push_back(self);
    result.expressions.push_back(expression);
    if ((map.data >> id & 1) != 0) result.data.push_back(self);
    if ((map.shared >> id & 1) != 0) visible.push_back(self);
  });
  if (!visible.empty()) result.weights.push_back(std::move(visible));
  return result;
}

void QualityMemo::check(Verdict& verdict, const CompactMap& map, CoordinateMask part,
                        FitMask fit) const {
  const bool strided = (map.strides & part) != 0;
  if (!strided && tells_iterators(map, part)) {
    verdict.checked = ~FitMask{0};
    return;
  }
  const AccessMap alone = part_map(map, part);
  const std::vector<Component> parts = components(alone);
  const Component& component = parts.front();
  FitMask done = 0;
  for (std::size_t b = 0; b < extents_.bindings().size(); ++b) {
    const FitMask self = FitMask{1} << b;
    if ((fit & ~verdict.checked & self) == 0) continue;
    // Bindings often give all extents of a part the same values.
    const auto equal = [&](std::size_t other) {
      bool all = true;
      for_each_bit(part, [&](int id) {
        const std::int64_t* values =
            extents_.values(map.nodes[static_cast<std::size_t>(id)].extent);
        all = all && values[b] == values[other];
      });
      return all;
    };
    std::size_t same = 0;
    while (same < b && !((done >> same & 1) != 0 && equal(same))) ++same;
    done |= self;
    if (same < b) {
      for (FitMask* mask : {&verdict.unread, &verdict.dead, &verdict.undecided, &verdict.exceeds,
                            &verdict.repeated}) {
        if ((*mask >> same & 1) != 0) *mask |= self;
      }
      for (auto& [mask, repeats] : verdict.repeats) {
        if ((mask >> same & 1) != 0) mask |= self;
      }
      continue;
    }
    const Program program(alone, extents_.bindings()[b]);
    if (strided && input_coverage(parts, program).whole != Decision::kYes) verdict.unread |= self;
    ComponentClasses classes = output_classes(component, alone, program, spec_.limits().max_repeat);
    if (classes.dead) verdict.dead |= self;
    if (!classes.decided) verdict.undecided |= self;
    if (classes.exceeds) verdict.exceeds |= self;
    if (!classes.repeats.empty()) {
      verdict.repeated |= self;
      verdict.repeats.emplace_back(self, std::move(classes.repeats));
    }
    if (!strided && ((verdict.undecided | verdict.exceeds) & self) != 0) break;
  }
  verdict.checked |= done;
}

const QualityMemo::Verdict& QualityMemo::verdict(const CompactMap& map, CoordinateMask part,
                                                 FitMask fit) {
  Hasher hasher("part");
  add_part(hasher, map, part);
  Verdict& known = verdicts_[hasher.finish()];
  // Without a Stride nothing but equal outputs can be wrong, and one binding is enough for that.
  const FitMask settled = (map.strides & part) != 0 ? 0 : (known.undecided | known.exceeds) & fit;
  if (settled == 0 && (fit & ~known.checked) != 0) {
    // What is known stays whole where an interrupt ends the check.
    Verdict checked = known;
    check(checked, map, part, fit);
    known = std::move(checked);
  }
  return known;
}

Reason QualityMemo::reads(const CompactMap& map, FitMask fit) {
  split(map);
  found_.clear();
  FitMask unread = 0;
  FitMask dead = 0;
  FitMask rejected = 0;
  FitMask repeated = 0;
  for (const CoordinateMask part : parts_) {
    // Where every iterator is seen, outputs differ; without iterators there is nothing to differ.
    const CoordinateMask hidden = map.iterators & part & ~map.data & ~map.shared;
    if (hidden == 0 && (map.strides & part) == 0) continue;
    const Verdict& known = verdict(map, part, fit);
    unread |= known.unread & fit;
    dead |= known.dead & fit;
    rejected |= (known.undecided | known.exceeds) & fit;
    repeated |= known.repeated & fit;
    found_.push_back(&known);
  }
  if (unread != 0) return reason::kInputUnread;
  if (dead != 0) return reason::kOutputConstant;
  if (rejected != 0) return reason::kEqualOutputs;
  for (std::size_t b = 0; repeated >> b != 0; ++b) {
    if ((repeated >> b & 1) == 0) continue;
    std::vector<const std::set<Profile>*> repeats;
    for (const Verdict* known : found_) {
      for (const auto& [mask, sets] : known->repeats) {
        if ((mask >> b & 1) == 0) continue;
        for (const std::set<Profile>& profiles : sets) repeats.push_back(&profiles);
      }
    }
    const auto largest = largest_class(repeats);
    if (!largest || *largest > spec_.limits().max_repeat) return reason::kEqualOutputs;
  }
  for (const auto& dims : pairs_) {
    if (reads_future(map, dims, fit)) return reason::kReadsFuture;
  }
  return reason::kNone;
}

bool QualityMemo::reads_future(const CompactMap& map, std::pair<int, int> dims, FitMask fit) {
  const int position = dims.first;
  const int read = map.match[static_cast<std::size_t>(dims.second)];
  CoordinateMask part = 0;
  for (const CoordinateMask mask : parts_) {
    if ((mask & (coordinate_bit(position) | coordinate_bit(read))) != 0) part |= mask;
  }
  Hasher hasher("future");
  hasher.add(rank_in(part, position)).add(rank_in(part, read));
  add_part(hasher, map, part);
  Future& known = futures_[hasher.finish()];
  const FitMask open = fit & ~known.checked;
  if (open != 0) {
    const AccessMap alone = part_map(map, part);
    const std::vector<Component> parts = components(alone);
    for (std::size_t b = 0; b < extents_.bindings().size(); ++b) {
      if ((open >> b & 1) == 0) continue;
      const Program program(alone, extents_.bindings()[b]);
      const FutureReads answer =
          future_reads(parts, alone, program, rank_in(part & map.iterators, position),
                       rank_in(part & map.data, read));
      if (answer.found != Decision::kNo) known.found |= FitMask{1} << b;
    }
    known.checked |= open;
  }
  return (known.found & fit) != 0;
}

}  // namespace syno
