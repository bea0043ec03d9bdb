#include "syno/interp/moments.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "syno/interp/components.h"
#include "syno/interp/tensor.h"
#include "syno/support/checked.h"
#include "syno/support/interrupt.h"
#include "syno/support/mix.h"
#include "syno/support/random.h"
#include "syno/support/text.h"

namespace syno {
namespace {

constexpr std::uint64_t kStream = 0x6d6f6d656e7473;
// Terms of one component that are listed: half a gigabyte.
constexpr std::int64_t kMaxPartTerms = std::int64_t{1} << 26;
constexpr std::int64_t kSaturated = std::numeric_limits<std::int64_t>::max();

double sum_of_squares(std::vector<std::uint64_t>& terms) {
  std::sort(terms.begin(), terms.end());
  double sum = 0;
  for (std::size_t begin = 0; begin < terms.size();) {
    std::size_t end = begin;
    while (end < terms.size() && terms[end] == terms[begin]) ++end;
    const auto count = static_cast<double>(end - begin);
    sum += count * count;
    begin = end;
  }
  return sum;
}

// A component, and its instructions.
struct Part {
  std::vector<CoordinateId> reductions;
  std::vector<CoordinateId> visible;
  std::vector<Instruction> steps;
  /// Of a component without a step, whatever the element: each value of a reduction that is seen is a term of its own,
  /// and those of one that is not are all the same term.
  std::optional<double> fixed;
};

std::vector<Part> parts_of(const AccessMap& map, const Program& program) {
  std::vector<Part> parts;
  for (const Component& component : components(map)) {
    Part part{component.reductions, component.visible, instructions(program, component), {}};
    if (part.steps.empty()) {
      part.fixed = 1;
      for (const CoordinateId id : part.reductions) {
        const auto extent = static_cast<double>(program.extent(id));
        const bool seen =
            std::find(part.visible.begin(), part.visible.end(), id) != part.visible.end();
        part.fixed = *part.fixed * (seen ? extent : extent * extent);
      }
    } else if (!box(program, part.reductions, kMaxPartTerms)) {
      std::vector<std::int64_t> extents = program.shape(part.reductions);
      throw Complaint("an output element has too many terms for mean_square")
          .where("reductions " + shape_text(extents))
          .expected(
              "at most " + with_thousands(kMaxPartTerms) + " values of reductions that steps join",
              "more")
          .hint("use smaller sizes")
          .error();
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

// The sum of n^2 over the terms of the element whose iterators stand in `slots`, as far as a component tells them apart.
double sum_of_squares(const Part& part, const Program& program, std::vector<std::int64_t>& slots,
                      std::vector<std::uint64_t>& keys, InterruptPoll& poll) {
  poll();
  if (part.fixed) return *part.fixed;
  keys.clear();
  first_index(part.reductions, slots);
  do {
    poll();
    if (!execute(part.steps, slots)) continue;
    std::uint64_t key = 0;
    for (const CoordinateId id : part.visible)
      key = mix_words(key, static_cast<std::uint64_t>(slots[static_cast<std::size_t>(id)]));
    keys.push_back(key);
  } while (next_index(part.reductions, program.extents, slots));
  return sum_of_squares(keys);
}

}  // namespace

double mean_square(const Operator& op, const Values& values, std::uint64_t seed,
                   std::int64_t most_terms) {
  const AccessMap map = make_access_map(op);
  const Program program(map, values);
  const std::vector<Part> parts = parts_of(map, program);
  std::int64_t elements = 1;
  for (const CoordinateId id : program.iterators)
    elements = checked_multiply(elements, program.extent(id), "the elements of a tensor");
  std::int64_t terms = 1;
  for (const CoordinateId id : program.reductions) {
    // Of elements with more terms than that, one is looked at in any case.
    if (__builtin_mul_overflow(terms, program.extent(id), &terms)) terms = kSaturated;
  }

  const std::int64_t count = std::clamp<std::int64_t>(most_terms / terms, 1, elements);
  std::vector<std::int64_t> slots(program.extents.size(), 0);
  std::vector<std::uint64_t> keys;
  CounterRandom random(seed, kStream);
  InterruptPoll poll;
  double sum = 0;
  for (std::int64_t e = 0; e < count; ++e) {
    // One element of each of `count` stretches of equal length: borders come in with their share.
    const auto begin = static_cast<std::int64_t>(
        static_cast<double>(elements) / static_cast<double>(count) * static_cast<double>(e));
    const std::int64_t end =
        e + 1 == count
            ? elements
            : static_cast<std::int64_t>(static_cast<double>(elements) / static_cast<double>(count) *
                                        static_cast<double>(e + 1));
    const auto length = static_cast<std::uint64_t>(std::max<std::int64_t>(1, end - begin));
    std::int64_t place = begin + static_cast<std::int64_t>(random.below(length));
    for (std::size_t d = program.iterators.size(); d-- > 0;) {
      const CoordinateId id = program.iterators[d];
      slots[static_cast<std::size_t>(id)] = place % program.extent(id);
      place /= program.extent(id);
    }
    double product = 1;
    for (const Part& part : parts) product *= sum_of_squares(part, program, slots, keys, poll);
    sum += product;
  }
  return sum / static_cast<double>(count);
}

}  // namespace syno
