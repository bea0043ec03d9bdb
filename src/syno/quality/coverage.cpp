#include "syno/quality/coverage.h"

#include <algorithm>
#include <map>
#include <set>

#include "syno/quality/repeats.h"
#include "syno/support/interrupt.h"

namespace syno {
namespace {

// Profiles of classes are combined over all components; beyond this many combinations the answer is "undecided".
constexpr std::size_t kMaxCombinations = 100'000;

// The iterators of a component follow from the visible coordinates of any single term, under this binding: then two
// elements with an unmasked term each have different terms. Knowledge spreads both ways through every step:
//     Split, both ways; Merge, both ways; Shift, Stride, both ways; Unfold, from any two of (result, i, j) to the third.
bool terms_tell_iterators(const Component& part, const AccessMap& map, const Program& program) {
  std::vector<bool> known(map.expressions.size(), false);
  const auto is_known = [&](CoordinateId id) { return known[static_cast<std::size_t>(id)]; };
  bool changed = false;
  const auto learn = [&](CoordinateId id) {
    if (is_known(id)) return;
    known[static_cast<std::size_t>(id)] = true;
    changed = true;
  };
  for (const CoordinateId id : part.visible) learn(id);
  for (const CoordinateId id : part.coordinates) {
    if (program.extent(id) == 1) learn(id);
  }
  // The two results of a Merge name the same coordinate: i is known when both are.
  std::map<CoordinateId, int> results_known;
  do {
    changed = false;
    results_known.clear();
    for (const CoordinateId id : part.coordinates) {
      const Expression& expression = map.at(id);
      spread_knowledge(expression.kind, id, expression.a, expression.b, is_known, learn,
                       [&](CoordinateId of) { return ++results_known[of] == 2; });
    }
  } while (changed);
  return std::all_of(part.iterators.begin(), part.iterators.end(), is_known);
}

// Whether some point of the component is unmasked. Enough of a box that is too large is looked at to find one.
Decision any_unmasked(const Component& part, const Program& program) {
  const std::vector<Instruction> steps = instructions(program, part);
  std::vector<std::int64_t> slots(program.extents.size(), 0);
  InterruptPoll poll;
  for (std::int64_t points = 0; points < kMaxPoints; ++points) {
    poll();
    if (execute(steps, slots)) return Decision::kYes;
    if (!next_index(part.leaves, program.extents, slots)) return Decision::kNo;
  }
  return Decision::kUndecided;
}

// The largest number of elements with one product of scales, over all choices of one profile a set.
std::int64_t largest_product(const std::vector<const std::set<Profile>*>& all, std::size_t from,
                             const Profile& so_far) {
  std::int64_t largest = 0;
  if (from == all.size()) {
    for (const auto& [scale, count] : so_far) largest = std::max(largest, count);
    return largest;
  }
  for (const Profile& profile : *all[from]) {
    check_interrupt();
    Profile product;
    for (const auto& [scale, count] : so_far) {
      for (const auto& [more, times] : profile) product[scale * more] += count * times;
    }
    largest = std::max(largest, largest_product(all, from + 1, product));
  }
  return largest;
}

}  // namespace

InputCoverage input_coverage(const std::vector<Component>& parts, const Program& program) {
  InputCoverage result;
  for (const Component& part : parts) {
    if (!part.strided) continue;
    const auto points = box(program, part.leaves);
    const auto elements = box(program, part.data);
    if (!points || !elements) {
      result.whole = Decision::kUndecided;
      continue;
    }
    const std::vector<Instruction> steps = instructions(program, part);
    std::vector<bool> read(static_cast<std::size_t>(*elements), false);
    std::int64_t left = *elements;
    std::vector<std::int64_t> slots(program.extents.size(), 0);
    InterruptPoll poll;
    do {
      poll();
      if (!execute(steps, slots)) continue;
      const auto flat = static_cast<std::size_t>(flat_index(part.data, program.extents, slots));
      left -= !read[flat];
      read[flat] = true;
    } while (left > 0 && next_index(part.leaves, program.extents, slots));
    if (left == 0) continue;
    result.whole = Decision::kNo;
    result.unread.assign(program.data.size(), -1);
    auto flat =
        static_cast<std::int64_t>(std::find(read.begin(), read.end(), false) - read.begin());
    for (std::size_t d = part.data.size(); d-- > 0;) {
      const std::int64_t extent = program.extent(part.data[d]);
      result.unread[static_cast<std::size_t>(part.data_dims[d])] = flat % extent;
      flat /= extent;
    }
    return result;
  }
  return result;
}

ComponentClasses output_classes(const Component& part, const AccessMap& map, const Program& program,
                                std::int64_t limit) {
  if (!terms_tell_iterators(part, map, program)) return component_classes(part, program, limit);
  // One element a class: the component changes nothing, unless it masks everything. Without a Stride it cannot.
  const Decision alive = part.strided ? any_unmasked(part, program) : Decision::kYes;
  return {alive != Decision::kUndecided, alive == Decision::kNo, {}, false};
}

std::optional<std::int64_t> largest_class(const std::vector<const std::set<Profile>*>& repeats) {
  std::size_t combinations = 1;
  for (const std::set<Profile>* profiles : repeats) {
    combinations *= profiles->size();
    if (combinations > kMaxCombinations) return std::nullopt;
  }
  return largest_product(repeats, 0, {{1, 1}});
}

OutputClasses output_classes(const std::vector<Component>& parts, const AccessMap& map,
                             const Program& program) {
  OutputClasses result;
  std::vector<ComponentClasses> all;
  std::vector<const std::set<Profile>*> repeats;
  for (const Component& part : parts) {
    all.push_back(output_classes(part, map, program));
    if (all.back().dead) return {true, 0};
    result.decided = result.decided && all.back().decided;
  }
  for (const ComponentClasses& classes : all) {
    for (const std::set<Profile>& profiles : classes.repeats) repeats.push_back(&profiles);
  }
  const auto largest = largest_class(repeats);
  result.decided = result.decided && largest.has_value();
  result.largest = largest.value_or(1);
  return result;
}

InputCoverage input_coverage(const Operator& op, const Values& values) {
  const AccessMap map = make_access_map(op);
  return input_coverage(components(map), Program(map, values));
}

OutputClasses output_classes(const Operator& op, const Values& values) {
  const AccessMap map = make_access_map(op);
  return output_classes(components(map), map, Program(map, values));
}

}  // namespace syno
