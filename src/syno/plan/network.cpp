#include "syno/plan/network.h"

#include <algorithm>
#include <limits>
#include <string>

#include "syno/support/at.h"
#include "syno/support/error.h"
#include "syno/support/inline_vector.h"

namespace syno {
namespace {

constexpr std::int64_t kSaturated = std::numeric_limits<std::int64_t>::max();

}  // namespace

Network::Network(const Operator& op, const Values& values) : op_(op) {
  const Graph& g = graph();
  const Variables& variables = *g.variables();
  if (g.steps().size() > kMaxPlanSteps || g.coordinates().size() > kMaxPlanCoordinates) {
    throw Complaint("cannot plan an operator of " + std::to_string(g.steps().size()) +
                    " steps and " + std::to_string(g.coordinates().size()) + " coordinates")
        .expected(
            "at most " + std::to_string(kMaxPlanSteps) + " steps and " +
                std::to_string(kMaxPlanCoordinates) + " coordinates",
            std::to_string(g.steps().size()) + " and " + std::to_string(g.coordinates().size()))
        .error();
  }
  const auto value_of = [&](const Size& size, const std::string& where) {
    const auto value = size.evaluate(values);
    if (value) return *value;
    throw Complaint("the size " + size.text(variables) +
                    " is not a positive integer under this binding")
        .where(where)
        .hint("give every variable a positive value, so that all quotients are whole")
        .error();
  };

  consumer_.assign(g.coordinates().size(), -1);
  weight_of_step_.assign(g.steps().size(), 0);
  for (std::size_t s = 0; s < g.steps().size(); ++s) {
    const Step& step = g.steps()[s];
    if (step.is_repetition()) expands_ |= step_bit(s);
    if (!step.is_view()) continue;
    for (int j = 0; j < primitive_info(step.primitive).consumes; ++j)
      consumer_[at(step.in[static_cast<std::size_t>(j)])] = static_cast<int>(s);
  }
  for (std::size_t w = 0; w < g.weights().size(); ++w)
    weight_of_step_[static_cast<std::size_t>(g.weights()[w].step)] = w;
  equal_before_.assign(g.steps().size(), -1);
  for (std::size_t s = 0; s < g.steps().size(); ++s) {
    if (!is_contraction(s)) continue;
    const CoordinateSet dims = weight_dims(weight_of(s), 0);
    std::size_t equal = 1;
    for (std::size_t other = 0; other < s; ++other) {
      if (!is_contraction(other) || weight_dims(weight_of(other), 0) != dims) continue;
      equal_before_[s] = static_cast<int>(other);
      ++equal;
    }
    most_equal_ = std::max(most_equal_, equal);
  }

  for (std::size_t id = 0; id < g.coordinates().size(); ++id) {
    const auto coordinate = static_cast<CoordinateId>(id);
    extents_.push_back(value_of(g.extent(coordinate), "coordinate '" + g.name(coordinate) + "'"));
    free_.push_back(op.passes_through(coordinate));
  }
  for (std::size_t s = 0; s < g.steps().size(); ++s) {
    const Step& step = g.steps()[s];
    const PrimitiveInfo& info = primitive_info(step.primitive);
    const std::string where = "step " + std::to_string(s + 1) + " (" + std::string(info.name) + ")";
    step_sizes_.push_back(value_of(step.size, where));
    const std::int64_t in = info.consumes > 0 ? extent(step.in[0]) : 1;
    if (!size_fits(info, in, step_sizes_[s])) {
      throw Complaint("the step does not fit the extent " + std::to_string(in) +
                      " under this binding")
          .where(where)
          .expected("a size that divides it", std::to_string(step_sizes_[s]))
          .error();
    }
  }
}

std::int64_t Network::elements(const CoordinateSet& dims) const {
  std::int64_t product = 1;
  for_each_coordinate(dims, [&](std::size_t id) {
    if (__builtin_mul_overflow(product, extents_[id], &product)) product = kSaturated;
  });
  return product;
}

StepSet Network::all_steps() const {
  return step_count() == kMaxPlanSteps ? ~StepSet{0} : step_bit(step_count()) - 1;
}

CoordinateSet Network::input_dims() const {
  CoordinateSet dims;
  for (const CoordinateId id : op_.match()) dims.set(at(id));
  return dims;
}

bool Network::is_contraction(std::size_t s) const {
  return step(s).is_contraction();
}

bool Network::is_reduce(std::size_t s) const {
  return step(s).is_reduction();
}

bool Network::consumed_later(CoordinateId id, StepSet done) const {
  const int consumer = consumer_[at(id)];
  return consumer >= 0 && (done & step_bit(static_cast<std::size_t>(consumer))) == 0;
}

CoordinateSet Network::weight_dims(std::size_t weight, StepSet done) const {
  CoordinateSet dims;
  const std::vector<CoordinateId>& weight_ids = graph().weights()[weight].dims;
  InlineVector<CoordinateId, 32> open;
  for (const CoordinateId id : weight_ids) open.push_back(id);
  while (!open.empty()) {
    const CoordinateId id = open.back();
    open.pop_back();
    const std::int16_t producer = graph().coordinate(id).step;
    const bool replaced = producer >= 0 && step(static_cast<std::size_t>(producer)).is_view() &&
                          (done & step_bit(static_cast<std::size_t>(producer))) != 0;
    if (!replaced) {
      dims.set(at(id));
      continue;
    }
    const Step& view = step(static_cast<std::size_t>(producer));
    for (int j = 0; j < primitive_info(view.primitive).consumes; ++j)
      open.push_back(view.in[static_cast<std::size_t>(j)]);
  }
  return dims;
}

bool Network::view_ready(std::size_t s, StepSet done) const {
  const Step& view = step(s);
  if (!view.is_view()) return false;
  for (int j = 0; j < primitive_info(view.primitive).produces; ++j) {
    if (consumed_later(view.out[static_cast<std::size_t>(j)], done)) return false;
  }
  return true;
}

CoordinateSet Network::summed_dims(StepSet reduces) const {
  CoordinateSet dims;
  for (; reduces != 0; reduces &= reduces - 1)
    dims.set(at(step(static_cast<std::size_t>(std::countr_zero(reduces))).out[0]));
  return dims;
}

StepSet Network::reduces_in(StepSet reduces, const CoordinateSet& dims) const {
  StepSet found = 0;
  for (; reduces != 0; reduces &= reduces - 1) {
    const auto s = static_cast<std::size_t>(std::countr_zero(reduces));
    if (dims[at(step(s).out[0])]) found |= step_bit(s);
  }
  return found;
}

StepSet Network::ready_reduces(StepSet done) const {
  CoordinateSet waiting;
  for (std::size_t s = 0; s < step_count(); ++s) {
    if (is_contraction(s) && (done & step_bit(s)) == 0) waiting |= weight_dims(weight_of(s), done);
  }
  StepSet ready = 0;
  for (std::size_t s = 0; s < step_count(); ++s) {
    if (!is_reduce(s) || (done & step_bit(s)) != 0) continue;
    const CoordinateId id = step(s).out[0];
    if (!consumed_later(id, done) && !waiting[at(id)]) ready |= step_bit(s);
  }
  return ready;
}

bool Network::is_open(std::size_t s, StepSet done) const {
  return !consumed_later(step(s).out[0], done);
}

bool Network::unfold_is_bare(std::size_t s, StepSet done, const CoordinateSet& data) const {
  const CoordinateId id = step(s).out[0];
  if (!step(s).info().slides() || data[at(id)]) return false;
  for (std::size_t other = 0; other < step_count(); ++other) {
    if (is_contraction(other) && (done & step_bit(other)) == 0 &&
        weight_dims(weight_of(other), done)[at(id)]) {
      return false;
    }
  }
  return true;
}

CoordinateSet Network::closed(StepSet done) const {
  CoordinateSet result;
  for (std::size_t s = 0; s < step_count(); ++s) {
    if ((done & step_bit(s)) != 0 || !step(s).is_view()) continue;
    const Step& view = step(s);
    const int count = view.info().slides() ? 1 : view.info().consumes;
    for (int j = 0; j < count; ++j) result.set(at(view.in[static_cast<std::size_t>(j)]));
  }
  return result;
}

CoordinateSet Network::through_view(std::size_t s, const CoordinateSet& dims) const {
  const Step& view = step(s);
  const PrimitiveInfo& info = primitive_info(view.primitive);
  CoordinateSet result = dims;
  for (int j = 0; j < info.produces; ++j) result.reset(at(view.out[static_cast<std::size_t>(j)]));
  if (result == dims) return dims;
  for (int j = 0; j < info.consumes; ++j) result.set(at(view.in[static_cast<std::size_t>(j)]));
  return result;
}

CoordinateSet Network::after_view(std::size_t s, StepSet done, const CoordinateSet& data) const {
  if (!unfold_is_bare(s, done, data)) return through_view(s, data);
  CoordinateSet result = data;
  for (const CoordinateId id : step(s).in) result.set(at(id));
  return result;
}

}  // namespace syno
