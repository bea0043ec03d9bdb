#include "syno/rules/catalogue.h"
#include "syno/rules/rebuild.h"

namespace syno {
namespace {

bool matches(const RuleContext& c) {
  return (c.step.primitive == Primitive::kShift || c.step.primitive == Primitive::kMerge) &&
         c.graph.share_count(c.step.in[0]) > 0;
}

// The view is taken before the first weight that holds the coordinate; the weights hold its results instead.
std::optional<Graph> rewrite(const RuleContext& c) {
  const CoordinateId viewed = c.step.in[0];
  Rebuild rebuild(c);
  bool taken = false;
  Step view;
  for (std::size_t s = 0; s < c.graph.steps().size(); ++s) {
    const Step& step = c.graph.steps()[s];
    bool holds = false;
    for (const SharedDim& dim : step.dims) holds = holds || dim.coordinate == viewed;
    if (!holds) {
      rebuild.copy(s);
      continue;
    }
    if (!taken) view = rebuild.add(rebuild.renamed(c.step));
    taken = true;
    Step weight = step;
    SharedDims dims;
    for (const SharedDim& dim : step.dims) {
      if (dim.coordinate != viewed) {
        dims.push_back({rebuild.now(dim.coordinate), dim.role});
        continue;
      }
      for (const CoordinateId piece : view.out) {
        if (piece != kNoCoordinate) dims.push_back({piece, ShareRole::kKeep});
      }
    }
    rebuild.add(Step::contract(std::move(dims)));
  }
  return rebuild.graph();
}

bool pieces_match(const RuleContext& c) {
  if (c.step.primitive != Primitive::kShare) return false;
  for (const SharedDim& a : c.step.dims) {
    for (const SharedDim& b : c.step.dims) {
      if (a.coordinate >= b.coordinate || a.role != ShareRole::kDrop || b.role != ShareRole::kDrop)
        continue;
      const Step* step = c.graph.producer(a.coordinate);
      if (step != nullptr && step->primitive == Primitive::kMerge && step->out[1] == b.coordinate)
        return true;
    }
  }
  return false;
}

std::optional<Graph> pieces_rewrite(const RuleContext& c) {
  for (const SharedDim& a : c.step.dims) {
    for (const SharedDim& b : c.step.dims) {
      if (a.coordinate >= b.coordinate || a.role != ShareRole::kDrop || b.role != ShareRole::kDrop)
        continue;
      const Step* step = c.graph.producer(a.coordinate);
      if (step == nullptr || step->primitive != Primitive::kMerge || step->out[1] != b.coordinate)
        continue;
      // An earlier weight may hold what was merged: then the whole is joined, not dropped.
      const CoordinateId whole = step->in[0];
      const ShareRole role = c.graph.share_count(whole) > 0 ? ShareRole::kJoin : ShareRole::kDrop;
      Rebuild rebuild(c);
      rebuild.copy_all_but({step_of(c.graph, a.coordinate)});
      SharedDims dims{{rebuild.now(whole), role}};
      for (const SharedDim& dim : c.step.dims) {
        if (dim.coordinate != a.coordinate && dim.coordinate != b.coordinate) {
          dims.push_back({rebuild.now(dim.coordinate), dim.role});
        }
      }
      rebuild.add(Step::contract(std::move(dims)));
      return rebuild.graph();
    }
  }
  return std::nullopt;
}

}  // namespace

const Rule kViewAboveShare{
    .id = "R6a",
    .name = "view-above-share",
    .kind = RuleKind::kExact,
    .doc =
        R"(What:      a Shift or Merge of a coordinate that weights hold stands below those weights instead
Why:       a one-to-one view of a weight dimension only relabels the weight's elements
When:      every weight that holds the coordinate can hold the view's results instead
Soundness: exact (E3)
Status:    stable since 0.1
Example:   contract(h keep, ..); shift(h) is refused; shift(h) -> u; contract(u keep, ..) is kept)",
    .steps = {Primitive::kShift, Primitive::kMerge},
    .matches = matches,
    .rewrite = rewrite,
};

const Rule kDroppedPieces{
    .id = "R6b",
    .name = "dropped-pieces",
    .kind = RuleKind::kExact,
    .doc = R"(What:      a weight that drops both results of a Merge drops what was merged
Why:       the pair (i div B, i mod B) as weight index is i relabelled
When:      no other weight holds either piece
Soundness: exact (E3)
Status:    stable since 0.1
Example:   merge(o, g) -> q, m; contract(q drop, m drop) is refused; contract(o drop) is kept)",
    .steps = {Primitive::kShare},
    .matches = pieces_match,
    .rewrite = pieces_rewrite,
};

}  // namespace syno
