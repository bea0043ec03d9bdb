// An operator under one binding as a set of points with functions on them.
//
// A point is one value of every output iterator and every reduction: one term of the sum. On the
// points there are
//   exact forms   the index of each ordered dimension of y and of x
//   partitions    which points read the same element: of a weight, or of an unordered dimension
//   conditions    low <= form <= high, one an Unfold: where one fails the term is masked
// Two operators are the same when a bijection of their unmasked points keeps the exact forms and
// turns the partitions into each other, weight by weight. Every rewrite here is such a bijection,
// an identity of functions at unmasked points, or the same partition in other words; what is not
// recognised stays as it is.
#pragma once

#include <vector>

#include "syno/key/form.h"
#include "syno/key/section.h"

namespace syno::key {

/// A dimension: output dimensions from 0, input dimensions after them.
struct Exact {
  int slot = 0;
  Form form;
};

/// Points are in one part when all generators agree on them.
struct Partition {
  int slot = kWeightSlot;
  InlineVector<Form, 4> generators;
};

inline constexpr Integer kNoLow = std::numeric_limits<Integer>::min();
inline constexpr Integer kNoHigh = std::numeric_limits<Integer>::max();
/// The bounds of -form, from those of form.
inline Integer opposite_low(Integer high) {
  return high == kNoHigh ? kNoLow : -high;
}
inline Integer opposite_high(Integer low) {
  return low == kNoLow ? kNoHigh : -low;
}

/// low <= form <= high. A condition may be rewritten with facts of earlier steps only: two
/// conditions must not prove each other away.
struct Condition {
  Form form;
  Integer low = kNoLow;
  Integer high = kNoHigh;
  int step = 0;
};

/// s = (before + amount) mod extent, kept as a variable of its own until rewrites/cyclic_shift.cpp settles
/// it.
struct CyclicShift {
  /// Digits of s, each a base: (s mod high) div low.
  struct Part {
    int base = 0;
    Integer low = 1;
    Integer high = 1;
  };
  InlineVector<Part, 3> parts;
  Form before;
  Integer amount = 0;
  Integer extent = 1;
  int step = 0;
};

struct Points {
  /// Forgets everything; memory stays.
  void clear();

  Algebra algebra;
  /// The bases whose product is the set of points.
  std::vector<int> box;
  std::vector<Exact> exact;
  std::vector<Partition> partitions;
  std::vector<Condition> conditions;
  std::vector<CyclicShift> cyclic_shifts;
  /// Points that no function tells apart: a factor of the whole sum.
  Integer multiplicity = 1;
  /// All points are masked: the operator is zero.
  bool masked = false;
};

/// The numbers of a section under one binding; 0 stands for a size that is not a positive integer.
struct SectionValues {
  /// By coordinate.
  std::vector<Integer> extents;
  /// By unit.
  std::vector<Integer> sizes;
};
/// `values` are in the order of the graph's variables.
SectionValues evaluate(const Section& section, const Graph& graph, const Values& values);
/// Whether every size is a positive integer and every step makes sense.
bool fits(const Section& section, const SectionValues& values);

/// Reads a section into `points`.
void read_points(const Section& section, const SectionValues& values, Points& points);

/// Replaces digits in every form.
void rewrite(Points& points, Replace replace);

/// Calls visit(atom) for every atom in exact forms, partitions, conditions and cyclic shifts.
template <class Visit>
void visit_all(const Points& points, const Visit& visit) {
  const Algebra& algebra = points.algebra;
  for (const Exact& exact : points.exact) algebra.visit_atoms(exact.form, visit);
  for (const Partition& partition : points.partitions) {
    for (const Form& generator : partition.generators) algebra.visit_atoms(generator, visit);
  }
  for (const Condition& condition : points.conditions) algebra.visit_atoms(condition.form, visit);
  for (const CyclicShift& cyclic_shift : points.cyclic_shifts)
    algebra.visit_atoms(cyclic_shift.before, visit);
}

/// Gives every digit that occurs a base of its own. Cuts of one base that do not divide each other
/// become carries over the digit they lie in, never independent digits. Returns whether there was
/// anything to split.
bool split_bases(Points& points);

/// Frees or writes out every cyclic shift, in the order of steps.
void settle_cyclic_shifts(Points& points);

/// Rewrites each partition to a fixed point; keeps what it tells apart at unmasked points.
void simplify_partitions(Points& points);

/// Normalises bounds, drops conditions that always hold, and finds out whether one never does.
void simplify_conditions(Points& points);

/// Where one digit of the box takes up, modulo its extent, whatever else is added to it, that sum
/// takes its place: the rest reaches the carry alone. Returns whether anything changed.
bool free_top_digits(Points& points);

/// Where a window covers its whole extent whatever else is added, the place in the extent takes the
/// place of the window's digit, and the condition is gone. Returns whether anything changed.
bool cover_windows(Points& points);

/// Drops bounds that another bound implies. The last rewrite of all: facts may not be used on what
/// is left.
void drop_implied_bounds(Points& points);

/// Turns digits round that only ever count down in exact forms and are in no carry. Returns whether
/// there were any.
bool reflect_digits(Points& points);

/// Joins two digits into one where nothing tells them apart, and takes out those that nothing
/// mentions. Returns whether any were joined.
bool coarsen_digits(Points& points);

}  // namespace syno::key
