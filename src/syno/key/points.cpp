#include "syno/key/points.h"

#include <algorithm>
#include <utility>

#include "syno/support/checked.h"
#include "syno/support/error.h"

namespace syno::key {
namespace {

class Reader {
 public:
  Reader(const Section& section, const SectionValues& values, Points& points)
      : section_(section), values_(values), points_(points) {}

  void read() {
    points_.clear();
    reverses_ = is_first_mirrored();
    forms_.resize(section_.coordinates.size());
    for (const Section::Dim& dim : section_.outputs)
      form(dim.coordinate) = new_base(extent_of(dim.coordinate));
    for (std::size_t i = 0; i < section_.units.size(); ++i) read_unit(static_cast<int>(i));
    for (const auto* dims : {&section_.outputs, &section_.inputs}) {
      for (const Section::Dim& dim : *dims) {
        if (!dim.unordered) points_.exact.push_back({dim.slot, exact_form(dim)});
      }
    }
    for (const Section::Told& told : section_.partitions) {
      Partition& partition = points_.partitions.emplace_back();
      partition.slot = told.slot;
      for (const int coordinate : told.coordinates)
        partition.generators.push_back(form(coordinate));
    }
  }

 private:
  // Whether the first ordered dimension is mirrored. Then every coordinate of the section counts down, which is a
  // bijection: weights are relabelled, unordered dimensions do not notice, and ordered ones that are not mirrored are
  // reversed once more. So of the two ways to write an image it is always the same one.
  bool is_first_mirrored() const {
    for (const auto* dims : {&section_.outputs, &section_.inputs}) {
      for (const Section::Dim& dim : *dims) {
        if (!dim.unordered) return dim.mirrored;
      }
    }
    return false;
  }

  Form exact_form(const Section::Dim& dim) {
    if (dim.mirrored == reverses_) return form(dim.coordinate);
    Form reversed = points_.algebra.combine(form(dim.coordinate), -1, {}, 0);
    reversed.constant += extent_of(dim.coordinate) - 1;
    return reversed;
  }

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
    const PrimitiveInfo& info = primitive_info(unit.primitive);
    switch (info.makes[0]) {
      case ExpressionKind::kReduction: form(unit.out[0]) = new_base(extent_of(unit.out[0])); return;
      case ExpressionKind::kIterator: return;
      case ExpressionKind::kMixed: {
        const Integer block = extent_of(unit.in[1]);
        store(unit.out[0], algebra.combine(form(unit.in[0]), block, form(unit.in[1]), 1),
              extent_of(unit.out[0]) - 1, number);
        return;
      }
      case ExpressionKind::kRemainder: break;  // stands beside its quotient
      case ExpressionKind::kQuotient: {
        const Form quotient = algebra.floor_divide(form(unit.in[0]), size, number);
        Form rest = algebra.combine(form(unit.in[0]), 1, quotient, -size);
        store(unit.out[0], quotient, extent_of(unit.out[0]) - 1, number);
        store(unit.out[1], std::move(rest), size - 1, number);
        return;
      }
      case ExpressionKind::kCyclicShift: {
        const Integer extent = extent_of(unit.in[0]);
        const Integer amount = floor_modulo(reverses_ ? -unit.amount : unit.amount, extent);
        if (amount == 0) {
          form(unit.out[0]) = form(unit.in[0]);
          return;
        }
        const int base = algebra.add_base(extent);
        points_.cyclic_shifts.push_back(
            {{{base, 1, extent}}, form(unit.in[0]), amount, extent, number});
        form(unit.out[0]) = algebra.base(base);
        return;
      }
      case ExpressionKind::kWindow: {
        const Integer window = extent_of(unit.in[1]);
        const Integer high = extent_of(unit.out[0]) - 1;
        Form place = algebra.sum(form(unit.in[0]), form(unit.in[1]));
        const Integer before = unit.causal ? window - 1 : window / 2;
        place.constant -= reverses_ ? window - 1 - before : before;
        const Interval range = algebra.box_range(place);
        if (range.low < 0 || range.high > high)
          points_.conditions.push_back({place, 0, high, number});
        store(unit.out[0], std::move(place), high, number);
        return;
      }
      case ExpressionKind::kScaled: {
        Form place = algebra.combine(form(unit.in[0]), size, {}, 0);
        Integer high = times(size, extent_of(unit.in[0]) - 1);
        if (reverses_) {
          place.constant += size - 1;
          high = plus(high, size - 1);
        }
        store(unit.out[0], std::move(place), high, number);
        return;
      }
    }
  }

  const Section& section_;
  const SectionValues& values_;
  Points& points_;
  bool reverses_ = false;
  InlineVector<Form, 16> forms_;
};

}  // namespace

SectionValues evaluate(const Section& section, const Graph& graph, const Values& values) {
  SectionValues result;
  for (const CoordinateId id : section.coordinates)
    result.extents.push_back(graph.extent(id).evaluate(values).value_or(0));
  for (const Section::Unit& unit : section.units) {
    const Step& step = graph.steps()[static_cast<std::size_t>(unit.step)];
    result.sizes.push_back(step.size.evaluate(values).value_or(0));
  }
  return result;
}

bool fits(const Section& section, const SectionValues& values) {
  const auto is_none = [](Integer value) { return value <= 0; };
  if (std::any_of(values.extents.begin(), values.extents.end(), is_none) ||
      std::any_of(values.sizes.begin(), values.sizes.end(), is_none))
    return false;
  for (std::size_t i = 0; i < section.units.size(); ++i) {
    const Section::Unit& unit = section.units[i];
    const PrimitiveInfo& info = primitive_info(unit.primitive);
    const Integer in = info.consumes > 0 ? values.extents[static_cast<std::size_t>(unit.in[0])] : 1;
    if (!size_fits(info, in, values.sizes[i])) return false;
  }
  return true;
}

void Points::clear() {
  algebra.clear();
  box.clear();
  exact.clear();
  partitions.clear();
  conditions.clear();
  cyclic_shifts.clear();
  multiplicity = 1;
  masked = false;
}

void read_points(const Section& section, const SectionValues& values, Points& points) {
  Reader(section, values, points).read();
}

void rewrite(Points& points, Replace replace) {
  Algebra& algebra = points.algebra;
  // A fact in old variables must never meet a form in new ones.
  std::vector<Fact> facts;
  facts.swap(algebra.facts);
  for (Fact& fact : facts) {
    algebra.substitute(fact.form, replace, fact.step);
    algebra.facts.push_back(std::move(fact));
  }
  for (CyclicShift& cyclic_shift : points.cyclic_shifts)
    algebra.substitute(cyclic_shift.before, replace, cyclic_shift.step);
  for (Exact& exact : points.exact) algebra.substitute(exact.form, replace, kAllSteps);
  for (Partition& partition : points.partitions) {
    for (Form& generator : partition.generators) algebra.substitute(generator, replace, kAllSteps);
  }
  for (Condition& condition : points.conditions)
    algebra.substitute(condition.form, replace, condition.step);
}

}  // namespace syno::key
