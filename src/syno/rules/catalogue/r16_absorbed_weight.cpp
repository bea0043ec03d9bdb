#include <algorithm>
#include <cstdint>

#include "syno/graph/cut.h"
#include "syno/rules/catalogue.h"
#include "syno/rules/rebuild.h"

namespace syno {
namespace {

// A set of coordinates.
class Set {
 public:
  explicit Set(const Graph& graph) { words_.assign(graph.coordinates().size() / 64 + 1, 0); }
  bool holds(CoordinateId id) const { return (word(id) >> (id % 64) & 1) != 0; }
  /// Whether it was not there.
  bool add(CoordinateId id) {
    const bool fresh = !holds(id);
    words_[static_cast<std::size_t>(id / 64)] |= std::uint64_t{1} << (id % 64);
    return fresh;
  }

 private:
  std::uint64_t word(CoordinateId id) const { return words_[static_cast<std::size_t>(id / 64)]; }
  InlineVector<std::uint64_t, 1> words_;
};

// Adds everything whose value follows from the coordinates of `known`, going back through one-to-one views.
void close(const Graph& graph, Set& known) {
  bool grown = true;
  while (grown) {
    grown = false;
    for (const Step& step : graph.steps()) {
      switch (step.primitive) {
        case Primitive::kShift:
        case Primitive::kStride:
        case Primitive::kSplit:
          if (known.holds(step.out[0])) {
            for (const CoordinateId in : step.in) {
              if (in != kNoCoordinate) grown = known.add(in) || grown;
            }
          }
          break;
        case Primitive::kMerge:
          if (known.holds(step.out[0]) && known.holds(step.out[1]))
            grown = known.add(step.in[0]) || grown;
          // The remainder is an index of what it cuts off, cyclically shifted.
          if (const Parts parts = parts_cut_again(graph, step.in[0], step.size); !parts.empty()) {
            if (std::all_of(parts.begin(), parts.end(),
                            [&](CoordinateId part) { return known.holds(part); }))
              grown = known.add(step.out[1]) || grown;
            if (known.holds(step.out[1])) {
              for (const CoordinateId part : parts) grown = known.add(part) || grown;
            }
          }
          break;
        case Primitive::kReduce:
        case Primitive::kContraction: continue;
        case Primitive::kExpand:
        case Primitive::kUnfold: break;
      }
      // Forwards: whatever is computed from known coordinates alone.
      if (!known.holds(step.in[0]) || (step.in[1] != kNoCoordinate && !known.holds(step.in[1])))
        continue;
      for (const CoordinateId out : step.out) {
        if (out != kNoCoordinate) grown = known.add(out) || grown;
      }
    }
  }
}

bool matches(const RuleContext& c) {
  if (c.step.primitive != Primitive::kContraction || c.graph.weights().empty()) return false;
  Set from_fresh(c.graph);
  for (const WeightDim& dim : c.step.dims) from_fresh.add(dim.coordinate);
  close(c.graph, from_fresh);
  for (const Weight& weight : c.graph.weights()) {
    if (std::all_of(weight.dims.begin(), weight.dims.end(),
                    [&](CoordinateId id) { return from_fresh.holds(id); }))
      return true;
    Set from_weight(c.graph);
    for (const CoordinateId id : weight.dims) from_weight.add(id);
    close(c.graph, from_weight);
    if (std::all_of(c.step.dims.begin(), c.step.dims.end(),
                    [&](const WeightDim& dim) { return from_weight.holds(dim.coordinate); }))
      return true;
  }
  return false;
}

}  // namespace

const Rule kAbsorbedWeight{
    .id = "R16",
    .name = "absorbed-weight",
    .kind = RuleKind::kRestriction,
    .doc = R"(What:      A weight is left out if its index follows from the index of another weight.
Why:       A[o]*B[o,i] takes the values of one weight B'[o,i] and no others. The maps are the same, with more
           parameters than necessary.
When:      Always.
Soundness: restriction. Span-equal forms (E5) train differently but represent the same maps.
Status:    stable since 0.1
Example:   contract(o keep, i keep); contract(o join) is left out.)",
    .steps = {Primitive::kContraction},
    .matches = matches,
    .rewrite = nullptr,
    .version = "5d40ce10",
};

}  // namespace syno
