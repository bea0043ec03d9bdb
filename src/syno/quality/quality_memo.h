// The quality conditions (quality.h) for many operators of one specification: answers about a component are kept, and
// components come again and again. What is answered does not depend on what was asked before.
#pragma once

#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "syno/quality/compact_map.h"
#include "syno/quality/coverage.h"
#include "syno/quality/quality.h"
#include "syno/support/hash.h"

namespace syno {

class QualityMemo {
 public:
  /// Keeps references. Operators have the shapes of `spec`; their maps are read with `extents`.
  QualityMemo(const Specification& spec, ExtentTable& extents);

  /// Whether operators of this specification can be checked here: its causal dimensions pair up.
  bool usable() const { return usable_; }
  /// Forgets everything; to be called when `extents` is cleared.
  void clear();
  std::size_t size() const { return verdicts_.size() + futures_.size(); }

  /// no_weight and wasted steps, in the order of quality.h.
  static Reason structure(const Graph& graph, const CompactMap& map);
  /// max_pooling. Throws UserError on overflow.
  Reason pooling(const CompactMap& map, FitMask fit) const;
  /// input_unread, output_constant, equal_outputs, reads_future, in this order; undecided questions count.
  Reason reads(const CompactMap& map, FitMask fit);

 private:
  /// What is known of a component, under the bindings `checked`.
  struct Verdict {
    FitMask checked = 0;
    FitMask unread = 0;
    FitMask dead = 0;
    FitMask undecided = 0;
    FitMask exceeds = 0;
    FitMask repeated = 0;
    std::vector<std::pair<FitMask, std::vector<std::set<Profile>>>> repeats;
  };
  struct Future {
    FitMask checked = 0;
    FitMask found = 0;
  };

  void split(const CompactMap& map);
  const Verdict& verdict(const CompactMap& map, CoordinateMask part, FitMask fit);
  void check(Verdict& verdict, const CompactMap& map, CoordinateMask part, FitMask fit) const;
  bool reads_future(const CompactMap& map, std::pair<int, int> dims, FitMask fit);
  AccessMap part_map(const CompactMap& map, CoordinateMask part) const;

  const Specification& spec_;
  ExtentTable& extents_;
  bool usable_ = true;
  std::vector<std::pair<int, int>> pairs_;
  std::unordered_map<Hash128, Verdict> verdicts_;
  std::unordered_map<Hash128, Future> futures_;
  /// Of the operator at hand.
  std::vector<CoordinateMask> parts_;
  std::vector<const Verdict*> found_;
};

}  // namespace syno
