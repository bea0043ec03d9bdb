#include "syno/rules/near.h"

#include <algorithm>

namespace syno {
namespace {

// Primary sizes are this many times as large where they stand for large ones. A product of sizes stays divisible by what
// it was divisible by.
constexpr std::int64_t kGrowth = 64;

}  // namespace

std::int64_t value_of(const Size& size, const Values& values) {
  return size.extent(values).value_or(0);
}

double hit_share(const Graph& graph, CoordinateId id, std::int64_t run, std::int64_t period,
                 const Values& values) {
  if (run <= 0) return 0;
  if (period <= run) return 1;
  const Step* step = graph.producer(id);
  if (step == nullptr) return static_cast<double>(run) / static_cast<double>(period);
  const auto extent = [&](std::size_t operand) {
    return value_of(graph.extent(step->in[operand]), values);
  };
  // A run of numbers covers at most so many multiples of `unit`.
  const auto in_units = [&](std::int64_t unit) { return (run - 1 + unit - 1) / unit + 1; };
  const PrimitiveInfo& info = step->info();
  const auto below = [&](std::int64_t longer, std::int64_t of) {
    return hit_share(graph, step->in[0], longer, of, values);
  };
  if (info.joins()) {
    const std::int64_t block = extent(1);
    if (block <= 0) return 1;
    if (block % period == 0) return hit_share(graph, step->in[1], run, period, values);
    if (period % block != 0) return 1;
    return std::min(below(in_units(block), period / block),
                    run < block ? hit_share(graph, step->in[1], run, block, values) : 1.0);
  }
  if (info.cuts()) {
    const std::int64_t block = value_of(step->size, values);
    if (block <= 0) return 1;
    if (step->out[0] == id) return below(run * block, period * block);
    return block % period == 0 ? below(run, period) : 1;
  }
  if (info.permutes()) return below(run, period);
  if (info.slides()) return below(run + extent(1) - 1, period);
  if (!info.scales()) return 1;
  const std::int64_t factor = value_of(step->size, values);
  if (factor <= 0 || period % factor != 0) return 1;
  return below(in_units(factor), period / factor);
}

bool is_near(const RuleContext& context, double (*share)(const RuleContext&, const Values&)) {
  const Specification& spec = context.spec;
  for (const Values& layer : spec.bindings()) {
    if (share(context, layer) > kNearShareInLayer) return false;
    Values values = layer;
    for (std::size_t v = 0; v < values.size(); ++v) {
      if (spec.variable(v).primary) values[v] *= kGrowth;
    }
    if (share(context, values) > kNearShare) return false;
  }
  return true;
}

}  // namespace syno
