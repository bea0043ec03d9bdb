#include "syno/quality/repeats.h"

#include <gtest/gtest.h>
#include <numeric>

#include "syno/interp/random_graph.h"
#include "syno/quality/coverage.h"

namespace syno {
namespace {

// The profiles of a component by definition: the terms of every element, listed.
std::set<Profile> listed_profiles(const Component& part, const Program& program) {
  const std::vector<Instruction> steps = instructions(program, part);
  std::vector<std::int64_t> slots(program.extents.size(), 0);
  std::map<std::map<std::vector<std::int64_t>, std::int64_t>, Profile> classes;
  first_index(part.iterators, slots);
  do {
    std::map<std::vector<std::int64_t>, std::int64_t> terms;
    first_index(part.reductions, slots);
    do {
      if (!execute(steps, slots)) continue;
      std::vector<std::int64_t> term;
      for (const CoordinateId id : part.visible)
        term.push_back(slots[static_cast<std::size_t>(id)]);
      ++terms[std::move(term)];
    } while (next_index(part.reductions, program.extents, slots));
    if (terms.empty()) continue;
    std::int64_t scale = 0;
    for (const auto& [term, count] : terms) scale = std::gcd(scale, count);
    for (auto& [term, count] : terms) count /= scale;
    ++classes[std::move(terms)][scale];
  } while (next_index(part.iterators, program.extents, slots));
  std::set<Profile> result;
  for (const auto& [terms, profile] : classes) result.insert(normalised(profile));
  return result;
}

// What the independent parts of a component say together.
std::set<Profile> combined(const ComponentClasses& classes) {
  if (classes.dead) return {};
  std::set<Profile> result{{{1, 1}}};
  for (const std::set<Profile>& profiles : classes.repeats) {
    std::set<Profile> next;
    for (const Profile& before : result) {
      for (const Profile& profile : profiles) {
        Profile product;
        for (const auto& [a, times] : before) {
          for (const auto& [b, count] : profile) product[a * b] += times * count;
        }
        next.insert(normalised(product));
      }
    }
    result = std::move(next);
  }
  return result;
}

struct SeenRepeats {
  int repeats = 0;
  int scaled = 0;
  int groups = 0;
  int dead = 0;
  int exceeds = 0;
  int many = 0;
};

void check(const RandomOperator& sampled, std::uint64_t seed, SeenRepeats& seen) {
  const AccessMap map = make_access_map(sampled.op);
  const Program program(map, sampled.values);
  for (const Component& part : components(map)) {
    if (part.iterators.empty()) continue;
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + sampled.op.text() +
                 sampled.binding.text());
    const std::set<Profile> listed = listed_profiles(part, program);
    const ComponentClasses classes = component_classes(part, program);
    ASSERT_TRUE(classes.decided);
    ASSERT_EQ(combined(classes), listed);
    ASSERT_EQ(combined(component_classes(part, program, 0, 1)), listed) << "by points";

    std::int64_t largest = 0;
    for (const Profile& profile : listed) {
      for (const auto& [scale, count] : profile) largest = std::max(largest, count);
      seen.scaled += profile.size() > 1;
    }
    for (const std::int64_t limit : {std::int64_t{1}, largest - 1, largest}) {
      if (limit < 1) continue;
      const ComponentClasses asked = component_classes(part, program, limit);
      if (asked.exceeds) {
        ASSERT_GT(largest, limit);
        ++seen.exceeds;
      } else {
        ASSERT_EQ(combined(asked), listed);
      }
    }
    seen.repeats += largest > 1;
    seen.groups += classes.repeats.size() > 1;
    seen.dead += classes.dead;
    seen.many += box(program, part.iterators).value_or(0) > 2048;
  }
}

void check_many(const RandomOptions& options, std::uint64_t count, SeenRepeats& seen) {
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    check(random_operator(seed, options), seed, seen);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(Repeats, AreThoseOfTheTermsListedOneByOne) {
  SeenRepeats seen;
  RandomOptions options;
  options.max_terms = 3000;
  options.causal_windows = 0.3;
  check_many(options, 1500, seen);
  EXPECT_GT(seen.repeats, 200);
}

TEST(Repeats, OfStridedAndWideWindowsAreThoseOfTheTermsListedOneByOne) {
  SeenRepeats seen;
  RandomOptions options;
  options.max_terms = 3000;
  options.mix.stride = 2;
  options.mix.unfold = 3;
  options.mix.reduce = 2.5;
  options.mix.contract = 1;
  options.wide_windows = 0.6;
  options.causal_windows = 0.2;
  check_many(options, 1500, seen);
  EXPECT_GT(seen.dead, 5);
}

// Without weights little tells elements apart but what they read, and how often.
TEST(Repeats, OfWindowsAloneAreThoseOfTheTermsListedOneByOne) {
  SeenRepeats seen;
  RandomOptions options;
  options.max_terms = 3000;
  options.max_weights = 0;
  options.mix.unfold = 3;
  options.mix.expand = 1.5;
  options.mix.merge = 2;
  options.mix.split = 2;
  options.wide_windows = 0.7;
  check_many(options, 1500, seen);
  EXPECT_GT(seen.repeats, 200);
  EXPECT_GT(seen.scaled, 20);
  EXPECT_GT(seen.groups, 5);
}

TEST(Repeats, OfLargerExtentsAreThoseOfTheTermsListedOneByOne) {
  SeenRepeats seen;
  RandomOptions options;
  options.extents = {2, 3, 5, 24, 40};
  options.max_extent = 120;
  options.max_terms = 60'000;
  options.max_elements = 60'000;
  options.max_weights = 1;
  options.mix.merge = 2;
  options.mix.split = 2;
  check_many(options, 250, seen);
  EXPECT_GT(seen.repeats, 30);
  EXPECT_GT(seen.many, 30);
  EXPECT_GT(seen.exceeds, 20);
}

// Split digits that do not agree with those of the Merge above them, in a box of billions of points.
TEST(Repeats, AreDecidedWhereTermsCannotBeListed) {
  const Operator op = Operator::parse(
      "syno operator 1\nout [N, C, H]\nin [N, D, H]\nreduce D -> r0\nreduce k^2 -> r1\n"
      "split o1 r1 -> c0\nmerge c0 k*C -> c1 c2\nunfold r0 c1 -> c3\ncontract c2:drop\n"
      "match o0 c3 o2\n");
  const Values values = Binding::parse("N=1, C=4096, D=4096, H=64, k=7").resolve(*op.variables());
  const OutputClasses classes = output_classes(op, values);
  EXPECT_TRUE(classes.decided);
  EXPECT_EQ(classes.largest, 1);
}

}  // namespace
}  // namespace syno
