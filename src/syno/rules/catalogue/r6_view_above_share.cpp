#include <algorithm>
#include <utility>

#include "syno/rules/catalogue.h"
#include "syno/rules/rebuild.h"

namespace syno {
namespace {

bool matches(const RuleContext& c) {
  return (c.step.primitive == Primitive::kShift || c.step.primitive == Primitive::kMerge) &&
         c.graph.weight_count(c.step.in[0]) > 0;
}

// The view is taken before the first weight that holds the coordinate; the weights hold its results instead.
std::optional<Graph> rewrite(const RuleContext& c) {
  const CoordinateId viewed = c.step.in[0];
  Rebuild rebuild(c);
  bool taken = false;
  Step view;
  for (std::size_t s = 0; s < c.graph.steps().size(); ++s) {
    const Step& step = c.graph.steps()[s];
    if (!holds(step, viewed)) {
      rebuild.copy(s);
      continue;
    }
    if (!taken) view = rebuild.add(rebuild.renamed(c.step));
    taken = true;
    Step weight = step;
    WeightDims dims;
    for (const WeightDim& dim : step.dims) {
      if (dim.coordinate != viewed) {
        dims.push_back({rebuild.now(dim.coordinate), dim.role});
        continue;
      }
      for (const CoordinateId piece : view.out) {
        if (piece != kNoCoordinate) dims.push_back({piece, WeightRole::kKeep});
      }
    }
    rebuild.add(Step::contract(std::move(dims)));
  }
  return rebuild.graph();
}

// The Merge both of whose results the step takes out of the data, while the same weights hold them; or nothing.
std::optional<std::size_t> merge_of_pieces(const RuleContext& c) {
  for (const WeightDim& dim : c.step.dims) {
    const Step* step = c.graph.producer(dim.coordinate);
    if (dim.role == WeightRole::kKeep || step == nullptr || step->primitive != Primitive::kMerge ||
        step->out[0] != dim.coordinate ||
        c.graph.coordinate(step->out[0]).weights != c.graph.coordinate(step->out[1]).weights)
      continue;
    for (const WeightDim& other : c.step.dims) {
      if (other.role != WeightRole::kKeep && other.coordinate == step->out[1])
        return step_of(c.graph, dim.coordinate);
    }
  }
  return std::nullopt;
}

bool pieces_match(const RuleContext& c) {
  return c.step.primitive == Primitive::kContraction && merge_of_pieces(c);
}

// The weights take what was merged. A cyclic shift of that is seen by weights alone, so it goes as well.
std::optional<Graph> pieces_rewrite(const RuleContext& c) {
  const std::optional<std::size_t> merge = merge_of_pieces(c);
  if (!merge) return std::nullopt;
  const CoordinateId quotient = c.graph.steps()[*merge].out[0];
  const CoordinateId remainder = c.graph.steps()[*merge].out[1];
  CoordinateId taken = c.graph.steps()[*merge].in[0];
  InlineVector<std::size_t, 4> rotations;
  while (const Step* step = c.graph.producer(taken)) {
    if (step->primitive != Primitive::kShift) break;
    rotations.push_back(step_of(c.graph, taken));
    taken = step->in[0];
  }
  Rebuild rebuild(c);
  const auto with_whole = [&](const Step& step) {
    WeightDims dims;
    for (const WeightDim& dim : step.dims) {
      if (dim.coordinate == remainder) continue;
      const CoordinateId now = rebuild.now(dim.coordinate == quotient ? taken : dim.coordinate);
      // An earlier weight may hold what was merged: then it is joined, not dropped.
      const WeightRole role = dim.role == WeightRole::kKeep           ? WeightRole::kKeep
                              : rebuild.graph().weight_count(now) > 0 ? WeightRole::kJoin
                                                                      : WeightRole::kDrop;
      dims.push_back({now, role});
    }
    return Step::contract(std::move(dims));
  };
  for (std::size_t s = 0; s < c.graph.steps().size(); ++s) {
    const Step& step = c.graph.steps()[s];
    if (std::find(rotations.begin(), rotations.end(), s) != rotations.end()) {
      rebuild.rename(step.out[0], rebuild.now(step.in[0]));
    } else if (holds(step, quotient)) {
      rebuild.add(with_whole(step));
    } else if (s != *merge) {
      rebuild.copy(s);
    }
  }
  rebuild.add(with_whole(c.step));
  return rebuild.graph();
}

}  // namespace

const Rule kViewAboveShare{
    .id = "R6a",
    .name = "view-above-share",
    .kind = RuleKind::kExact,
    .doc =
        R"(What:      A Shift or Merge of a coordinate that weights hold is rejected. The form with this view below the weights
           is kept.
Why:       A one-to-one view of a dimension of a weight only relabels the elements of the weight.
When:      Every weight that holds the coordinate can hold the results of the view instead.
Soundness: exact (E3)
Status:    stable since 0.1
Example:   contract(h keep, ..); shift(h) is rejected; shift(h) -> u; contract(u keep, ..) is kept.)",
    .steps = {Primitive::kShift, Primitive::kMerge},
    .matches = matches,
    .rewrite = rewrite,
    .version = "f9134188",
};

const Rule kDroppedPieces{
    .id = "R6b",
    .name = "dropped-pieces",
    .kind = RuleKind::kExact,
    .doc =
        R"(What:      A contraction that takes both results of a Merge out of the data is rejected. The form that takes out the
           merged coordinate, without its cyclic shifts, is kept.
Why:       As the index of a weight, the pair (i div B, i mod B) is a relabeling of i. A cyclic shift of i is a
           relabeling as well.
When:      Every weight holds either both pieces or none of them.
Soundness: exact (E3)
Status:    stable since 0.1
Example:   merge(o, g) -> q, m; contract(q drop, m drop) is rejected; contract(o drop) is kept.)",
    .steps = {Primitive::kContraction},
    .matches = pieces_match,
    .rewrite = pieces_rewrite,
    .version = "2e1139fa",
};

}  // namespace syno
