#include "syno/rules/catalogue.h"
#include "syno/rules/rebuild.h"

namespace syno {
namespace {

bool matches(const RuleContext& c) {
  if (c.step.primitive != Primitive::kSplit) return false;
  const auto [i, j] = c.step.in;
  bool shared = false;
  for (const Weight& weight : c.graph.weights()) {
    if (weight.holds(i) != weight.holds(j)) return false;
    shared = shared || weight.holds(i);
  }
  return shared;
}

std::optional<Graph> rewrite(const RuleContext& c) {
  const auto [i, j] = c.step.in;
  Rebuild rebuild(c);
  CoordinateId whole = kNoCoordinate;
  for (std::size_t s = 0; s < c.graph.steps().size(); ++s) {
    const Step& step = c.graph.steps()[s];
    bool holds = false;
    for (const SharedDim& dim : step.dims) holds = holds || dim.coordinate == i;
    if (!holds) {
      rebuild.copy(s);
      continue;
    }
    if (whole == kNoCoordinate) whole = rebuild.add(rebuild.renamed(c.step)).out[0];
    SharedDims dims{{whole, ShareRole::kKeep}};
    for (const SharedDim& dim : step.dims) {
      if (dim.coordinate != i && dim.coordinate != j)
        dims.push_back({rebuild.now(dim.coordinate), dim.role});
    }
    rebuild.add(Step::contract(std::move(dims)));
  }
  return rebuild.graph();
}

}  // namespace

const Rule kSplitAboveShare{
    .id = "R7",
    .name = "split-above-share",
    .kind = RuleKind::kExact,
    .doc =
        R"(What:      a Split of two coordinates that exactly the same weights hold stands below those weights instead
Why:       a weight dimension pair (i, j) and the one dimension B*i+j are relabellings of each other. The order of
           independent contractions, and of the Shares inside one, needs no rule: graphs that differ only so are equal.
When:      every weight that holds one of the two holds the other
Soundness: exact (E3)
Status:    stable since 0.1
Example:   contract(i keep, j keep, ..); split(i, j) is refused; split(i, j) -> u; contract(u keep, ..) is kept)",
    .steps = {Primitive::kSplit},
    .matches = matches,
    .rewrite = rewrite,
};

}  // namespace syno
