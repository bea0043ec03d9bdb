#include "syno/access/key.h"

#include <algorithm>

#include "syno/access/key_label.h"
#include "syno/access/key_points.h"
#include "syno/support/error.h"

namespace syno {
namespace {

void check_values(const Operator& op, const Values& values) {
  if (values.size() == op.variables()->count()) return;
  throw Complaint("a binding has " + std::to_string(values.size()) + " values for " +
                  std::to_string(op.variables()->count()) + " variables")
      .where("the semantic key")
      .hint("give one value a variable, in the order of the operator's variables")
      .error();
}

// Whether every size is a positive integer and every step makes sense under `values`.
bool fits(const Operator& op, const Values& values) {
  const Graph& graph = op.graph();
  const auto value = [&](CoordinateId id) { return graph.extent(id).evaluate(values); };
  for (std::size_t id = 0; id < graph.coordinates().size(); ++id) {
    if (!value(static_cast<CoordinateId>(id))) return false;
  }
  for (const Dimension& dim : op.input()) {
    if (!dim.size.evaluate(values)) return false;
  }
  for (const Step& step : graph.steps()) {
    const PrimitiveInfo& info = primitive_info(step.primitive);
    const std::optional<std::int64_t> size = step.size.evaluate(values);
    if (!size) return false;
    std::vector<std::int64_t> in;
    for (int i = 0; i < info.consumes; ++i)
      in.push_back(*value(step.in[static_cast<std::size_t>(i)]));
    if (!info.fits(step, in, *size)) return false;
  }
  return true;
}

key::Points normal_form(const Operator& op, const Values& values) {
  key::Points points = key::read_points(op, values);
  key::settle_rotations(points);
  key::reflect_digits(points);
  // Partitions and conditions may cut digits, which changes the other forms.
  for (int round = 0;; ++round) {
    if (round > key::kMaxRecursion) throw key::CapExceeded{"rounds"};
    key::simplify_partitions(points);
    key::simplify_conditions(points);
    if (points.masked) return points;
    if (key::split_bases(points) || key::free_top_digits(points) || key::cover_windows(points))
      continue;
    if (!key::coarsen_digits(points)) break;
  }
  key::drop_implied_bounds(points);
  return points;
}

// Shapes are part of every key: keys of different specifications never meet.
void add_shape(Hasher& hasher, const Shape& shape, const Values& values) {
  hasher.add(static_cast<std::int64_t>(shape.size()));
  for (const Dimension& dim : shape)
    hasher.add(dim.size.evaluate(values).value_or(0)).add(dim.unordered).add(dim.causal);
}

Hash128 binding_key(const Operator& op, const Values& values) {
  const Variables& variables = *op.variables();
  Hasher hasher("semantic key 1");
  for (std::size_t i = 0; i < values.size(); ++i) hasher.add(variables.name_hash(i)).add(values[i]);
  add_shape(hasher, op.output(), values);
  add_shape(hasher, op.input(), values);
  if (!fits(op, values)) return hasher.add("unfit").finish();
  try {
    const key::Points points = normal_form(op, values);
    if (points.masked) return hasher.add("zero").finish();
    hasher.add("normal form");
    for (const key::Integer word : key::label(points).words) hasher.add(word);
  } catch (const key::CapExceeded&) {
    hasher.add("structure").add(op.structure());
  }
  return hasher.finish();
}

}  // namespace

Hash128 semantic_key(const Operator& op, const std::vector<Values>& bindings) {
  std::vector<Hash128> keys;
  for (const Values& values : bindings) {
    check_values(op, values);
    keys.push_back(binding_key(op, values));
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  Hasher hasher("semantic key");
  for (const Hash128& key : keys) hasher.add(key);
  return hasher.finish();
}

std::string key_normal_form(const Operator& op, const Values& values) {
  check_values(op, values);
  if (!fits(op, values)) return "unfit\n";
  try {
    const key::Points points = normal_form(op, values);
    return points.masked ? "zero\n" : key::normal_form_text(points, key::label(points));
  } catch (const key::CapExceeded& exceeded) {
    return std::string("fallback: ") + exceeded.cap + "\n";
  }
}

}  // namespace syno
