#include "syno/access/key_points.h"

#include <algorithm>
#include <utility>

#include "syno/support/checked.h"
#include "syno/support/error.h"

namespace syno::key {
namespace {

class Reader {
 public:
  Reader(const Section& section, const SectionValues& values)
      : section_(section), values_(values) {}

  Points read() {
    forms_.resize(section_.coordinates.size());
    for (const Section::Dim& dim : section_.outputs)
      form(dim.coordinate) = new_base(extent_of(dim.coordinate));
    for (std::size_t i = 0; i < section_.units.size(); ++i) read_unit(static_cast<int>(i));
    for (const auto* dims : {&section_.outputs, &section_.inputs}) {
      for (const Section::Dim& dim : *dims) {
        if (dim.unordered) {
          add_partition(dim.slot, {dim.coordinate});
        } else {
          points_.exact.push_back({dim.slot, form(dim.coordinate)});
        }
      }
    }
    for (const std::vector<int>& weight : section_.weights) add_partition(kWeightSlot, weight);
    return std::move(points_);
  }

 private:
  Form& form(int coordinate) { return forms_[static_cast<std::size_t>(coordinate)]; }
  Integer extent_of(int coordinate) const {
    return values_.extents[static_cast<std::size_t>(coordinate)];
  }

  // An extent of 1 is the constant 0, so what differs only there is the same.
  Form new_base(Integer extent) {
    if (extent == 1) return {};
    const int base = points_.algebra.add_base(extent);
    points_.box.push_back(base);
    return points_.algebra.base(base);
  }

  // At unmasked points every coordinate is inside its extent, however wide its form looks.
  void store(int coordinate, Form value, Integer high, int step) {
    const Interval range = points_.algebra.box_range(value);
    if (high == 0) {
      value = {};
    } else if (range.low < 0 || range.high > high) {
      points_.algebra.facts.push_back({value, high, step});
    }
    form(coordinate) = std::move(value);
  }

  void read_unit(int number) {
    Algebra& algebra = points_.algebra;
    const Section::Unit& unit = section_.units[static_cast<std::size_t>(number)];
    const Integer size = values_.sizes[static_cast<std::size_t>(number)];
    switch (unit.primitive) {
      case Primitive::kReduce: form(unit.out[0]) = new_base(extent_of(unit.out[0])); return;
      case Primitive::kExpand:
      case Primitive::kShare: return;
      case Primitive::kSplit: {
        const Integer block = extent_of(unit.in[1]);
        store(unit.out[0], algebra.combine(form(unit.in[0]), block, form(unit.in[1]), 1),
              extent_of(unit.out[0]) - 1, number);
        return;
      }
      case Primitive::kMerge: {
        const Form quotient = algebra.floor_divide(form(unit.in[0]), size, number);
        Form rest = algebra.combine(form(unit.in[0]), 1, quotient, -size);
        store(unit.out[0], quotient, extent_of(unit.out[0]) - 1, number);
        store(unit.out[1], std::move(rest), size - 1, number);
        return;
      }
      case Primitive::kShift: {
        const Integer extent = extent_of(unit.in[0]);
        const Integer amount = floor_modulo(unit.amount, extent);
        if (amount == 0) {
          form(unit.out[0]) = form(unit.in[0]);
          return;
        }
        const int base = algebra.add_base(extent);
        points_.rotations.push_back(
            {{{base, 1, extent}}, form(unit.in[0]), amount, extent, number});
        form(unit.out[0]) = algebra.base(base);
        return;
      }
      case Primitive::kUnfold: {
        const Integer window = extent_of(unit.in[1]);
        const Integer high = extent_of(unit.out[0]) - 1;
        Form place = algebra.sum(form(unit.in[0]), form(unit.in[1]));
        place.constant -= unit.causal ? window - 1 : window / 2;
        const Interval range = algebra.box_range(place);
        if (range.low < 0 || range.high > high)
          points_.conditions.push_back({place, 0, high, number});
        store(unit.out[0], std::move(place), high, number);
        return;
      }
      case Primitive::kStride: {
        store(unit.out[0], algebra.combine(form(unit.in[0]), size, {}, 0),
              times(size, extent_of(unit.in[0]) - 1), number);
        return;
      }
    }
  }

  void add_partition(int slot, const std::vector<int>& dims) {
    Partition partition{slot, {}};
    for (const int coordinate : independent_coordinates(section_, dims))
      partition.generators.push_back(form(coordinate));
    points_.partitions.push_back(std::move(partition));
  }

  const Section& section_;
  const SectionValues& values_;
  Points points_;
  std::vector<Form> forms_;
};

// Marks what is known when the marked coordinates are, at unmasked points.
void close(const Section& section, std::vector<char>& known) {
  const auto has = [&](int id) -> char& { return known[static_cast<std::size_t>(id)]; };
  for (bool changed = true; changed;) {
    changed = false;
    const auto learn = [&](int id) {
      if (has(id)) return;
      has(id) = 1;
      changed = true;
    };
    for (const Section::Unit& step : section.units) {
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

std::vector<int> independent_coordinates(const Section& section, const std::vector<int>& dims) {
  std::vector<char> known(section.coordinates.size(), 0);
  for (const int id : dims) known[static_cast<std::size_t>(id)] = 1;
  close(section, known);
  std::vector<char> kept = known;
  for (std::size_t id = known.size(); id-- > 0;) {
    if (!known[id]) continue;
    kept[id] = 0;
    std::vector<char> told = kept;
    close(section, told);
    if (!told[id]) kept[id] = 1;
  }
  std::vector<int> result;
  for (std::size_t id = 0; id < kept.size(); ++id) {
    if (kept[id]) result.push_back(static_cast<int>(id));
  }
  return result;
}

std::optional<SectionValues> evaluate(const Section& section, const Graph& graph,
                                      const Values& values) {
  SectionValues result;
  for (const CoordinateId id : section.coordinates) {
    const std::optional<std::int64_t> extent = graph.extent(id).evaluate(values);
    if (!extent) return std::nullopt;
    result.extents.push_back(*extent);
  }
  for (const Section::Unit& unit : section.units) {
    const Step& step = graph.steps()[static_cast<std::size_t>(unit.step)];
    const PrimitiveInfo& info = primitive_info(unit.primitive);
    const std::optional<std::int64_t> size = step.size.evaluate(values);
    if (!size) return std::nullopt;
    std::array<std::int64_t, 2> in{};
    for (std::size_t i = 0; i < static_cast<std::size_t>(info.consumes); ++i)
      in[i] = result.extents[static_cast<std::size_t>(unit.in[i])];
    if (!info.fits(step, {in.data(), static_cast<std::size_t>(info.consumes)}, *size))
      return std::nullopt;
    result.sizes.push_back(*size);
  }
  return result;
}

Points read_points(const Section& section, const SectionValues& values) {
  return Reader(section, values).read();
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
