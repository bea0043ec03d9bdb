#include "syno/access/moments.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "syno/access/access_map.h"
#include "syno/access/program.h"
#include "syno/support/checked.h"
#include "syno/support/random.h"

namespace syno {
namespace {

constexpr std::uint64_t kStream = 0x6d6f6d656e7473;

// The indices of a term as one number; two terms share it by chance with a probability of some 2^-64.
std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash ^= value + 0x9E3779B97F4A7C15ULL + (hash << 6) + (hash >> 2);
  hash = (hash ^ (hash >> 30)) * 0xBF58476D1CE4E5B9ULL;
  hash = (hash ^ (hash >> 27)) * 0x94D049BB133111EBULL;
  return hash ^ (hash >> 31);
}

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

}  // namespace

double mean_square(const Operator& op, const Values& values, std::uint64_t seed,
                   std::int64_t most_terms) {
  const Program program(make_access_map(op), values);
  std::int64_t elements = 1;
  for (const CoordinateId id : program.iterators)
    elements = checked_multiply(elements, program.extent(id), "the elements of a tensor");
  std::int64_t terms = 1;
  for (const CoordinateId id : program.reductions)
    terms = checked_multiply(terms, program.extent(id), "the terms of an element");
  if (elements == 0 || terms == 0) return 0;

  const std::int64_t count = std::clamp<std::int64_t>(most_terms / terms, 1, elements);
  std::vector<std::int64_t> slots(program.extents.size(), 0);
  std::vector<std::uint64_t> keys;
  CounterRandom random(seed, kStream);
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
    keys.clear();
    for_each_term(program, slots, [&] {
      std::uint64_t key =
          mixed(0, static_cast<std::uint64_t>(flat_index(program.data, program.extents, slots)));
      for (const auto& weight : program.weights)
        key = mixed(key, static_cast<std::uint64_t>(flat_index(weight, program.extents, slots)));
      keys.push_back(key);
    });
    sum += sum_of_squares(keys);
  }
  return sum / static_cast<double>(count);
}

}  // namespace syno
