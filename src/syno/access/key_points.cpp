#include "syno/access/key_points.h"

#include <algorithm>
#include <utility>

#include "syno/support/checked.h"
#include "syno/support/error.h"

namespace syno::key {
namespace {

class Reader {
 public:
  Reader(const Operator& op, const Values& values) : op_(op), graph_(op.graph()), values_(values) {}

  Points read() {
    forms_.resize(graph_.coordinates().size());
    for (std::size_t d = 0; d < op_.output().size(); ++d) forms_[d] = new_base(extent_of(id(d)));
    int step = 0;
    for (const Step& taken : graph_.steps()) read_step(taken, step++);
    const int outputs = static_cast<int>(op_.output().size());
    for (int d = 0; d < outputs; ++d) {
      const auto dim = static_cast<std::size_t>(d);
      add_dimension(d, op_.output()[dim].unordered, id(dim));
    }
    for (std::size_t d = 0; d < op_.input().size(); ++d) {
      add_dimension(outputs + static_cast<int>(d), op_.input()[d].unordered, op_.match()[d]);
    }
    for (const Weight& weight : graph_.weights()) add_partition(kWeightSlot, weight.dims);
    return std::move(points_);
  }

 private:
  static CoordinateId id(std::size_t index) { return static_cast<CoordinateId>(index); }
  Form& form(CoordinateId coordinate) { return forms_[static_cast<std::size_t>(coordinate)]; }
  Integer value_of(const Size& size) const {
    const auto value = size.evaluate(values_);
    ensure(value.has_value(), "semantic key: a size is not legal under the binding");
    return *value;
  }
  Integer extent_of(CoordinateId coordinate) const { return value_of(graph_.extent(coordinate)); }

  // An extent of 1 is the constant 0, so what differs only there is the same.
  Form new_base(Integer extent) {
    if (extent == 1) return {};
    const int base = points_.algebra.add_base(extent);
    points_.box.push_back(base);
    return points_.algebra.base(base);
  }

  // At unmasked points every coordinate is inside its extent, however wide its form looks.
  void store(CoordinateId coordinate, Form value, Integer high, int step) {
    const Interval range = points_.algebra.box_range(value);
    if (high == 0) {
      value = {};
    } else if (range.low < 0 || range.high > high) {
      points_.algebra.facts.push_back({value, high, step});
    }
    form(coordinate) = std::move(value);
  }

  void read_step(const Step& step, int number) {
    Algebra& algebra = points_.algebra;
    switch (step.primitive) {
      case Primitive::kReduce: form(step.out[0]) = new_base(extent_of(step.out[0])); return;
      case Primitive::kExpand:
      case Primitive::kShare: return;
      case Primitive::kSplit: {
        const Integer block = extent_of(step.in[1]);
        store(step.out[0], algebra.combine(form(step.in[0]), block, form(step.in[1]), 1),
              extent_of(step.out[0]) - 1, number);
        return;
      }
      case Primitive::kMerge: {
        const Integer block = value_of(step.size);
        const Form quotient = algebra.floor_divide(form(step.in[0]), block, number);
        Form rest = algebra.combine(form(step.in[0]), 1, quotient, -block);
        store(step.out[0], quotient, extent_of(step.out[0]) - 1, number);
        store(step.out[1], std::move(rest), block - 1, number);
        return;
      }
      case Primitive::kShift: {
        const Integer extent = extent_of(step.in[0]);
        const Integer amount = floor_modulo(step.amount, extent);
        if (amount == 0) {
          form(step.out[0]) = form(step.in[0]);
          return;
        }
        const int base = algebra.add_base(extent);
        points_.rotations.push_back(
            {{{base, 1, extent}}, form(step.in[0]), amount, extent, number});
        form(step.out[0]) = algebra.base(base);
        return;
      }
      case Primitive::kUnfold: {
        const Integer window = extent_of(step.in[1]);
        const Integer high = extent_of(step.out[0]) - 1;
        Form place = algebra.sum(form(step.in[0]), form(step.in[1]));
        place.constant -= step.causal ? window - 1 : window / 2;
        const Interval range = algebra.box_range(place);
        if (range.low < 0 || range.high > high)
          points_.conditions.push_back({place, 0, high, number});
        store(step.out[0], std::move(place), high, number);
        return;
      }
      case Primitive::kStride: {
        const Integer factor = value_of(step.size);
        store(step.out[0], algebra.combine(form(step.in[0]), factor, {}, 0),
              times(factor, extent_of(step.in[0]) - 1), number);
        return;
      }
    }
  }

  void add_dimension(int slot, bool unordered, CoordinateId coordinate) {
    if (unordered) {
      add_partition(slot, {coordinate});
    } else {
      points_.exact.push_back({slot, form(coordinate)});
    }
  }

  void add_partition(int slot, const std::vector<CoordinateId>& dims) {
    Partition partition{slot, {}};
    for (const CoordinateId coordinate : independent_coordinates(graph_, dims))
      partition.generators.push_back(form(coordinate));
    points_.partitions.push_back(std::move(partition));
  }

  const Operator& op_;
  const Graph& graph_;
  const Values& values_;
  Points points_;
  std::vector<Form> forms_;
};

// Marks what is known when the marked coordinates are, at unmasked points.
void close(const Graph& graph, std::vector<char>& known) {
  const auto has = [&](CoordinateId id) -> char& { return known[static_cast<std::size_t>(id)]; };
  for (bool changed = true; changed;) {
    changed = false;
    const auto learn = [&](CoordinateId id) {
      if (has(id)) return;
      has(id) = 1;
      changed = true;
    };
    for (const Step& step : graph.steps()) {
      switch (step.primitive) {
        case Primitive::kShift:
        case Primitive::kStride:
          if (has(step.in[0])) learn(step.out[0]);
          if (has(step.out[0])) learn(step.in[0]);
          break;
        case Primitive::kSplit:
          if (has(step.in[0]) && has(step.in[1])) learn(step.out[0]);
          if (has(step.out[0])) {
            learn(step.in[0]);
            learn(step.in[1]);
          }
          break;
        case Primitive::kMerge:
          if (has(step.out[0]) && has(step.out[1])) learn(step.in[0]);
          if (has(step.in[0])) {
            learn(step.out[0]);
            learn(step.out[1]);
          }
          break;
        case Primitive::kUnfold:  // a sum: two of the three give the third
          if (has(step.in[0]) && has(step.in[1])) learn(step.out[0]);
          if (has(step.out[0]) && has(step.in[1])) learn(step.in[0]);
          if (has(step.out[0]) && has(step.in[0])) learn(step.in[1]);
          break;
        case Primitive::kExpand:
        case Primitive::kReduce:
        case Primitive::kShare: break;
      }
    }
  }
}

}  // namespace

std::vector<CoordinateId> independent_coordinates(const Graph& graph,
                                                  const std::vector<CoordinateId>& dims) {
  std::vector<char> known(graph.coordinates().size(), 0);
  for (const CoordinateId id : dims) known[static_cast<std::size_t>(id)] = 1;
  close(graph, known);
  std::vector<char> kept = known;
  for (std::size_t id = known.size(); id-- > 0;) {
    if (!known[id]) continue;
    kept[id] = 0;
    std::vector<char> told = kept;
    close(graph, told);
    if (!told[id]) kept[id] = 1;
  }
  std::vector<CoordinateId> result;
  for (std::size_t id = 0; id < kept.size(); ++id) {
    if (kept[id]) result.push_back(static_cast<CoordinateId>(id));
  }
  return result;
}

Points read_points(const Operator& op, const Values& values) {
  return Reader(op, values).read();
}

void rewrite(Points& points, const Replace& replace) {
  Algebra& algebra = points.algebra;
  // A fact in old variables must never meet a form in new ones.
  const std::vector<Fact> facts = std::exchange(algebra.facts, {});
  for (const Fact& fact : facts)
    algebra.facts.push_back(
        {algebra.substitute(fact.form, replace, fact.step), fact.high, fact.step});
  for (Rotation& rotation : points.rotations)
    rotation.before = algebra.substitute(rotation.before, replace, rotation.step);
  for (Exact& exact : points.exact) exact.form = algebra.substitute(exact.form, replace, kAllSteps);
  for (Partition& partition : points.partitions) {
    for (Form& generator : partition.generators)
      generator = algebra.substitute(generator, replace, kAllSteps);
  }
  for (Condition& condition : points.conditions)
    condition.form = algebra.substitute(condition.form, replace, condition.step);
}

void visit_all(const Points& points, const std::function<void(const Atom&)>& visit) {
  const Algebra& algebra = points.algebra;
  for (const Exact& exact : points.exact) algebra.visit_atoms(exact.form, visit);
  for (const Partition& partition : points.partitions) {
    for (const Form& generator : partition.generators) algebra.visit_atoms(generator, visit);
  }
  for (const Condition& condition : points.conditions) algebra.visit_atoms(condition.form, visit);
  for (const Rotation& rotation : points.rotations) algebra.visit_atoms(rotation.before, visit);
}

}  // namespace syno::key
