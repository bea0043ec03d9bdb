#include "syno/emit/cpp/lanes.h"

#include <algorithm>

#include "syno/plan/loop_transform.h"

namespace syno::cpp {

bool is_linear(const Index& index, int axis) {
  return std::none_of(index.terms().begin(), index.terms().end(), [&](const Index::Term& term) {
    return term.kind != Index::Kind::kAxis && term.of->depends_on(axis);
  });
}

Index without(const Index& index, int axis) {
  return index - Index::axis(axis) * index.coefficient(axis);
}

bool in_conditions(const Access& access, int axis) {
  return std::any_of(access.conditions.begin(), access.conditions.end(),
                     [&](const Condition& c) { return c.index.depends_on(axis); });
}

bool depends_on(const Access& access, int axis) {
  return std::any_of(access.index.begin(), access.index.end(),
                     [&](const Index& index) { return index.depends_on(axis); }) ||
         in_conditions(access, axis);
}

bool is_strided(const Index& address, const Access& access, int lane) {
  const auto positive = [&](const Index& index) {
    return is_linear(index, lane) && index.coefficient(lane) > 0;
  };
  return positive(address) && std::all_of(access.conditions.begin(), access.conditions.end(),
                                          [&](const Condition& condition) {
                                            return !condition.index.depends_on(lane) ||
                                                   positive(condition.index);
                                          });
}

std::optional<Index> rotation_of(const Index& address, const Access& access, int lane,
                                 std::int64_t length) {
  std::optional<Index> rest;
  for (const Index::Term& term : address.terms()) {
    if (term.kind == Index::Kind::kAxis ? term.axis != lane : !term.of->depends_on(lane)) continue;
    const bool rotates = term.kind == Index::Kind::kRemainder && term.coefficient == 1 &&
                         term.divisor == length && is_linear(*term.of, lane) &&
                         term.of->coefficient(lane) == 1 && !rest;
    if (!rotates) return std::nullopt;
    rest = without(*term.of, lane);
  }
  return in_conditions(access, lane) ? std::nullopt : rest;
}

Lanes lanes_of(const LoopProgram& program, const LoopNest& nest, int lane, std::size_t operand) {
  const Access& access = nest.operands[operand];
  const Index address = flat_address(program, nest, access);
  const bool masked = in_conditions(access, lane);
  if (!address.depends_on(lane) && !masked) return Lanes::kPlain;
  if (is_strided(address, access, lane)) {
    if (address.coefficient(lane) != 1) return Lanes::kScattered;
    return masked ? Lanes::kPartial : Lanes::kPlain;
  }
  const std::int64_t length = nest.axes[static_cast<std::size_t>(lane)].extent;
  const bool rotates = rotation_of(address, access, lane, length).has_value();
  return rotates ? Lanes::kPartial : Lanes::kScattered;
}

}  // namespace syno::cpp
