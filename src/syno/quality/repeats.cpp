#include "syno/quality/repeats.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

#include "syno/support/flat_table.h"
#include "syno/support/interrupt.h"
#include "syno/support/mix.h"

namespace syno {
namespace {

// Elements with more terms are left undecided: counts stay far from the modulus.
constexpr std::int64_t kMaxTerms = std::int64_t{1} << 30;
// Of so many elements a part is looked at first: those of a few values of one index.
constexpr std::int64_t kManyElements = 2048;
constexpr std::int64_t kFewValues = 8;
// Entries of tables that are computed in the hope of an easy answer.
constexpr std::int64_t kLittleWork = std::int64_t{1} << 14;

// The sums of independent groups of elements, one list a group.
using Groups = std::vector<std::vector<TermSum>>;

// One group of all elements, whose points are looked at one by one.
Groups sums_by_points(const Component& part, const Program& program, int round) {
  const std::vector<Instruction> steps = instructions(program, part);
  std::vector<std::int64_t> slots(program.extents.size(), 0);
  Groups groups(1);
  first_index(part.iterators, slots);
  InterruptPoll poll;
  do {
    TermSum sum;
    first_index(part.reductions, slots);
    do {
      poll();
      if (!execute(steps, slots)) continue;
      std::uint64_t term = 1;
      for (const CoordinateId id : part.visible) {
        term =
            field::multiply(term, TermSums::number(round, id, slots[static_cast<std::size_t>(id)]));
      }
      sum.value = field::reduce(sum.value + term);
      ++sum.terms;
    } while (next_index(part.reductions, program.extents, slots));
    groups[0].push_back(sum);
  } while (next_index(part.iterators, program.extents, slots));
  return groups;
}

// Values per term: equal for proportional elements.
class Quotients {
 public:
  std::uint64_t of(const TermSum& sum) {
    if (sum.terms == 1) return sum.value;
    if (sum.terms != terms_) {
      terms_ = sum.terms;
      const auto [place, is_new] = known_.try_emplace(terms_, 0);
      if (is_new) place->second = field::inverse(terms_);
      inverse_ = place->second;
    }
    return field::multiply(sum.value, inverse_);
  }

 private:
  std::uint64_t terms_ = 0;
  std::uint64_t inverse_ = 0;
  std::map<std::uint64_t, std::uint64_t> known_;
};

bool all_different(const std::vector<TermSum>& group, Quotients& quotients) {
  // Quotients are never 2^64 - 1.
  struct Slot {
    std::uint64_t value = ~std::uint64_t{0};
    bool is_free() const { return value == ~std::uint64_t{0}; }
    std::uint64_t hash() const { return table_hash(value); }
  };
  FlatTable<Slot> slots(std::bit_ceil(2 * group.size() + 1));
  for (const TermSum& sum : group) {
    if (sum.terms == 0) continue;
    const std::uint64_t value = quotients.of(sum);
    Slot& slot =
        slots.find(table_hash(value), [&](const Slot& other) { return other.value == value; });
    if (!slot.is_free()) return false;
    slot.value = value;
  }
  return true;
}

bool all_dead(const std::vector<TermSum>& group) {
  return std::all_of(group.begin(), group.end(), [](const TermSum& sum) { return sum.terms == 0; });
}

// An element by its quotients in both rounds, and how many terms it has.
using Element = std::pair<std::array<std::uint64_t, 2>, std::int64_t>;

// The profiles that occur in a group of elements, given its sums in both rounds; none when no two are equal.
std::set<Profile> profiles_of(const std::vector<TermSum>& first, const std::vector<TermSum>& second,
                              Quotients& quotients) {
  std::vector<Element> elements;
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (first[i].terms == 0) continue;
    elements.push_back({{quotients.of(first[i]), quotients.of(second[i])},
                        static_cast<std::int64_t>(first[i].terms)});
  }
  std::sort(elements.begin(), elements.end());
  std::set<Profile> profiles;
  bool equal = false;
  for (std::size_t begin = 0; begin < elements.size();) {
    Profile profile;
    std::size_t end = begin;
    for (; end < elements.size() && elements[end].first == elements[begin].first; ++end)
      ++profile[elements[end].second];
    equal = equal || end - begin > 1;
    profiles.insert(normalised(profile));
    begin = end;
  }
  if (!equal) profiles.clear();
  return profiles;
}

// Whether one visible coordinate alone tells all elements apart: then all together do. Fewer terms differ then, so that
// most steps fall away.
bool told_by_one(const Component& part, const Program& program, std::int64_t most_work) {
  for (const CoordinateId id : part.visible) {
    std::vector<CoordinateId> visible{id};
    for (const CoordinateId other : part.iterators) {
      if (std::find(part.visible.begin(), part.visible.end(), other) != part.visible.end())
        visible.push_back(other);
    }
    TermSums sums(part, program, visible);
    if (!sums.repeated().empty() || !sums.run(0, most_work)) continue;
    Quotients quotients;
    const bool told =
        std::all_of(sums.tables().begin(), sums.tables().end(), [&](const TermSums::Table& table) {
          return !all_dead(table.entries) && all_different(table.entries, quotients);
        });
    if (told) return true;
  }
  return false;
}

Groups groups_in(const TermSums& sums) {
  Groups groups;
  for (const TermSums::Table& table : sums.tables()) groups.push_back(table.entries);
  return groups;
}

// Whether more than `limit` elements are equal already among those of the first few values of an output index.
bool exceeds(TermSums& sums, int index, std::int64_t limit) {
  if (!sums.run_cut(0, index, kFewValues)) return false;
  const Groups first = groups_in(sums);
  Quotients quotients;
  std::vector<std::size_t> suspect;
  for (std::size_t g = 0; g < first.size(); ++g) {
    if (all_dead(first[g])) return false;
    if (!all_different(first[g], quotients)) suspect.push_back(g);
  }
  if (suspect.empty() || !sums.run_cut(1, index, kFewValues)) return false;
  const Groups second = groups_in(sums);
  for (const std::size_t g : suspect) {
    for (const Profile& profile : profiles_of(first[g], second[g], quotients)) {
      for (const auto& [scale, count] : profile) {
        if (count > limit) return true;
      }
    }
  }
  return false;
}

}  // namespace

Profile normalised(const Profile& profile) {
  std::int64_t common = 0;
  for (const auto& [scale, count] : profile) common = std::gcd(common, scale);
  if (common == 1) return profile;
  Profile result;
  for (const auto& [scale, count] : profile) result[scale / common] = count;
  return result;
}

ComponentClasses component_classes(const Component& part, const Program& program,
                                   std::int64_t limit, std::int64_t most_work) {
  ComponentClasses undecided{false, false, {}, false};
  if (!box(program, part.reductions, kMaxTerms)) return undecided;
  ComponentClasses result;
  if (told_by_one(part, program, std::min(most_work, kLittleWork))) return result;
  TermSums sums(part, program, part.visible);
  const std::vector<int> indices = sums.indices();
  std::int64_t elements = 1;
  for (const int v : indices) {
    if (__builtin_mul_overflow(elements, sums.extent(v), &elements)) return undecided;
  }
  if (limit > 0 && elements >= kManyElements) {
    for (const int v : indices) {
      if (!exceeds(sums, v, limit)) continue;
      result.exceeds = true;
      return result;
    }
  }
  const bool by_points = !sums.run(0, most_work);
  if (by_points && !box(program, part.leaves)) return undecided;
  const auto groups_of = [&](int round) {
    if (by_points) return sums_by_points(part, program, round);
    if (round > 0) sums.run(round, most_work);
    return groups_in(sums);
  };
  Groups first = groups_of(0);
  Quotients quotients;
  std::vector<bool> suspect;
  for (const std::vector<TermSum>& group : first) {
    if (all_dead(group)) return {true, true, {}, false};
    suspect.push_back(!all_different(group, quotients));
  }
  if (!by_points) {
    for (const std::int64_t extent : sums.repeated()) result.repeats.push_back({{{1, extent}}});
  }
  if (std::find(suspect.begin(), suspect.end(), true) == suspect.end()) return result;
  const Groups second = groups_of(1);
  for (std::size_t g = 0; g < first.size(); ++g) {
    if (!suspect[g]) continue;
    std::set<Profile> profiles = profiles_of(first[g], second[g], quotients);
    if (!profiles.empty()) result.repeats.push_back(std::move(profiles));
  }
  return result;
}

}  // namespace syno
