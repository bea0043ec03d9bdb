#include "syno/access/coverage.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "syno/support/hash.h"

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
      switch (expression.kind) {
        case ExpressionKind::kMixed:
          if (is_known(id)) {
            learn(expression.a);
            learn(expression.b);
          }
          if (is_known(expression.a) && is_known(expression.b)) learn(id);
          break;
        case ExpressionKind::kQuotient:
        case ExpressionKind::kRemainder:
          if (is_known(expression.a)) learn(id);
          if (is_known(id) && ++results_known[expression.a] == 2) learn(expression.a);
          break;
        case ExpressionKind::kRotated:
        case ExpressionKind::kScaled:
          if (is_known(id)) learn(expression.a);
          if (is_known(expression.a)) learn(id);
          break;
        case ExpressionKind::kWindow:
          if (is_known(expression.a) && is_known(expression.b)) learn(id);
          if (is_known(id) && is_known(expression.a)) learn(expression.b);
          if (is_known(id) && is_known(expression.b)) learn(expression.a);
          break;
        case ExpressionKind::kIterator:
        case ExpressionKind::kReduction: break;
      }
    }
  } while (changed);
  return std::all_of(part.iterators.begin(), part.iterators.end(), is_known);
}

// How many elements of a class have each scale. Elements of one component are in one class when their terms are the
// same up to a common factor (a window that was expanded counts, near the border, fewer times): the scale.
using Profile = std::map<std::int64_t, std::int64_t>;

// Whether some point of the component is unmasked. Enough of a box that is too large is looked at to find one.
Decision any_unmasked(const Component& part, const Program& program) {
  const std::vector<Instruction> steps = instructions(program, part);
  std::vector<std::int64_t> slots(program.extents.size(), 0);
  for (std::int64_t points = 0; points < kMaxPoints; ++points) {
    if (execute(steps, slots)) return Decision::kYes;
    if (!next_index(part.leaves, program.extents, slots)) return Decision::kNo;
  }
  return Decision::kUndecided;
}

// The profiles that occur in a component. 128-bit hashes stand for the terms.
std::set<Profile> profiles(const Component& part, const Program& program) {
  const std::vector<Instruction> steps = instructions(program, part);
  std::vector<std::int64_t> slots(program.extents.size(), 0);
  std::map<Hash128, Profile> classes;
  std::vector<Hash128> terms;
  first_index(part.iterators, slots);
  do {
    terms.clear();
    first_index(part.reductions, slots);
    do {
      if (!execute(steps, slots)) continue;
      Hasher hasher("term");
      for (const CoordinateId id : part.visible) hasher.add(slots[static_cast<std::size_t>(id)]);
      terms.push_back(hasher.finish());
    } while (next_index(part.reductions, program.extents, slots));
    if (terms.empty()) continue;
    std::sort(terms.begin(), terms.end());
    std::vector<std::pair<Hash128, std::int64_t>> counted;
    for (const Hash128& term : terms) {
      if (counted.empty() || counted.back().first != term) counted.emplace_back(term, 0);
      ++counted.back().second;
    }
    std::int64_t scale = 0;
    for (const auto& [term, count] : counted) scale = std::gcd(scale, count);
    Hasher hasher("terms");
    for (const auto& [term, count] : counted) hasher.add(term).add(count / scale);
    ++classes[hasher.finish()][scale];
  } while (next_index(part.iterators, program.extents, slots));
  std::set<Profile> result;
  for (const auto& [hash, profile] : classes) result.insert(profile);
  return result;
}

// The largest number of elements with one product of scales, over all choices of one profile a component.
std::int64_t largest_class(const std::vector<std::set<Profile>>& all, std::size_t from,
                           const Profile& so_far) {
  if (from == all.size()) {
    std::int64_t largest = 0;
    for (const auto& [scale, count] : so_far) largest = std::max(largest, count);
    return largest;
  }
  std::int64_t largest = 0;
  for (const Profile& profile : all[from]) {
    Profile product;
    for (const auto& [scale, count] : so_far) {
      for (const auto& [more, times] : profile) product[scale * more] += count * times;
    }
    largest = std::max(largest, largest_class(all, from + 1, product));
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
    do {
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

OutputClasses output_classes(const std::vector<Component>& parts, const AccessMap& map,
                             const Program& program) {
  OutputClasses result;
  std::vector<std::set<Profile>> all;
  std::size_t combinations = 1;
  for (const Component& part : parts) {
    if (terms_tell_iterators(part, map, program)) {
      // One element a class: the component changes nothing, unless it masks everything. Without a Stride it cannot.
      const Decision alive = part.strided ? any_unmasked(part, program) : Decision::kYes;
      if (alive == Decision::kNo) return {true, 0};
      result.decided = result.decided && alive == Decision::kYes;
      continue;
    }
    if (!box(program, part.leaves)) {
      result.decided = false;
      continue;
    }
    all.push_back(profiles(part, program));
    if (all.back().empty()) return {true, 0};
    combinations *= all.back().size();
    if (combinations > kMaxCombinations) {
      result.decided = false;
      return result;
    }
  }
  result.largest = largest_class(all, 0, {{1, 1}});
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
