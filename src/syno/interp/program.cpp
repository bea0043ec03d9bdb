#include "syno/interp/program.h"

#include "syno/support/checked.h"
#include "syno/support/error.h"
#include "syno/support/text.h"

namespace syno {
namespace {

std::string values_text(const Variables& variables, const Values& values) {
  std::vector<std::string> parts;
  for (std::size_t v = 0; v < variables.count(); ++v)
    parts.push_back(variables.name(v) + "=" + std::to_string(values[v]));
  return join(parts, ", ");
}

std::int64_t evaluate(const AccessMap& map, const Size& size, const Values& values) {
  const auto value = size.evaluate(values);
  if (!value) {
    throw Complaint("a coordinate has no extent under this binding")
        .where("binding \"" + values_text(*map.variables, values) + "\"")
        .expected("a positive integer", size.text(*map.variables))
        .error();
  }
  return *value;
}

}  // namespace

Program::Program(const AccessMap& map, const Values& values)
    : iterators(map.iterators), reductions(map.reductions), data(map.data), weights(map.weights) {
  const Variables& variables = *map.variables;
  if (values.size() != variables.count()) {
    throw Complaint("a binding for another list of variables")
        .expected(
            std::to_string(variables.count()) + " values for " + join(variables.names(), ", "),
            std::to_string(values.size()) + " values")
        .error();
  }
  for (std::size_t v = 0; v < values.size(); ++v) {
    if (values[v] > 0) continue;
    throw Complaint("variable '" + variables.name(v) + "' has no value in the binding")
        .expected("a positive integer", std::to_string(values[v]))
        .error();
  }
  std::vector<bool> reduced;
  for (std::size_t i = 0; i < map.expressions.size(); ++i) {
    const Expression& expression = map.expressions[i];
    extents.push_back(evaluate(map, expression.extent, values));
    const bool leaf = expression.kind == ExpressionKind::kIterator ||
                      expression.kind == ExpressionKind::kReduction;
    if (leaf) {
      reduced.push_back(expression.kind == ExpressionKind::kReduction);
      continue;
    }
    const std::int64_t size = evaluate(map, expression.size, values);
    Instruction instruction{
        expression.kind, static_cast<CoordinateId>(i), expression.a, expression.b, size, 0,
        extents.back()};
    if (expression.kind == ExpressionKind::kCyclicShift) instruction.offset = expression.amount;
    if (expression.kind == ExpressionKind::kWindow)
      instruction.offset = expression.causal ? size - 1 : size / 2;
    reduced.push_back(
        reduced[static_cast<std::size_t>(expression.a)] ||
        (expression.b != kNoCoordinate && reduced[static_cast<std::size_t>(expression.b)]));
    (reduced.back() ? inner : outer).push_back(instruction);
  }
}

std::vector<std::int64_t> Program::shape(const std::vector<CoordinateId>& ids) const {
  std::vector<std::int64_t> result;
  for (const CoordinateId id : ids) result.push_back(extent(id));
  return result;
}

bool execute(const std::vector<Instruction>& instructions, std::vector<std::int64_t>& slots) {
  for (const Instruction& instruction : instructions) {
    const std::int64_t a = slots[static_cast<std::size_t>(instruction.a)];
    std::int64_t value = 0;
    switch (instruction.kind) {
      case ExpressionKind::kMixed:
        value = instruction.size * a + slots[static_cast<std::size_t>(instruction.b)];
        break;
      case ExpressionKind::kQuotient: value = floor_divide(a, instruction.size); break;
      case ExpressionKind::kRemainder: value = floor_modulo(a, instruction.size); break;
      case ExpressionKind::kCyclicShift:
        value = floor_modulo(a + instruction.offset, instruction.size);
        break;
      case ExpressionKind::kWindow:
        value = a + slots[static_cast<std::size_t>(instruction.b)] - instruction.offset;
        if (value < 0 || value >= instruction.extent) return false;
        break;
      case ExpressionKind::kScaled: value = instruction.size * a; break;
      case ExpressionKind::kIterator:
      case ExpressionKind::kReduction: break;
    }
    slots[static_cast<std::size_t>(instruction.out)] = value;
  }
  return true;
}

}  // namespace syno
