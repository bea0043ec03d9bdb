#include "syno/rules/catalogue.h"
#include "syno/rules/rebuild.h"

namespace syno {
namespace {

bool holds_window(const Graph& graph, CoordinateId id) {
  const Step* step = graph.producer(id);
  if (step == nullptr) return false;
  if (step->primitive == Primitive::kUnfold) return true;
  if (step->primitive != Primitive::kSplit && step->primitive != Primitive::kShift) return false;
  for (const CoordinateId in : step->in) {
    if (in != kNoCoordinate && holds_window(graph, in)) return true;
  }
  return false;
}

bool rejects_match(const Specification& /*spec*/, const Graph& graph, const Shape& input,
                   std::span<const CoordinateId> match) {
  for (std::size_t d = 0; d < input.size(); ++d) {
    if (input[d].unordered && holds_window(graph, match[d])) return true;
  }
  return false;
}

bool never(const RuleContext& /*context*/) {
  return false;
}

}  // namespace

const Rule kUnorderedWindow{
    .id = "R23",
    .name = "unordered-window",
    .kind = RuleKind::kRestriction,
    .doc =
        R"(What:      An Unfold that slides over an unordered input dimension is left out.
Why:       The neighbors of an index without an order have no meaning.
When:      A coordinate that is matched to an unordered input dimension is the result of an Unfold, or Splits and
           Shifts make it from such a result.
Soundness: restriction. It excludes windows over channels.
Status:    unreleased, new after 0.1
Example:   unfold(r:[C_in], k) -> c; c matched to [C_in: unordered] is left out.)",
    .steps = {},
    .matches = never,
    .rewrite = nullptr,
    .rejects_match = rejects_match,
    .version = "cb3926f3",
};

}  // namespace syno
