// How many steps at least turn coordinates of these sizes into coordinates of those: a lower bound that looks at sizes
// only and needs no search over moves. The completion bound asks it first.
//
// Splits and Merges connect coordinates into groups; in a group the product of what goes in equals the product of what
// comes out. A group with I coordinates in and O out takes at least I-1 Splits and O-1 Merges (the paper's appendix A).
// What comes out is a coordinate of the input, or is removed. The paper's shape distance charges one step for each
// coordinate removed; here all that contractions remove costs one step together, so the bound never exceeds the truth.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "syno/space/size_space.h"

namespace syno {

/// How a coordinate may be removed from the frontier whole.
struct Removal {
  bool contraction = false;
  /// Only after another contraction holds it.
  bool second_contraction = false;
  /// As a window, or repeated: a step of its own.
  bool step = false;
  /// That step is a window which only a contraction before it allows.
  bool step_after_contraction = false;
};

struct ReshapeInput {
  SizeId size = kNoSize;
  Removal removal;
};

struct ReshapeLimits {
  int splits = 0;
  int merges = 0;
  int contractions = 0;
  /// Steps of their own that remove a coordinate: windows and repeats.
  int removals = 0;
  /// Whether a contraction is needed anyway.
  bool unweighted = false;
};

class Reshape {
 public:
  /// Keeps a reference to `sizes`. `target` are the sizes that have to come out.
  Reshape(const SizeSpace& sizes, const Specification& spec, const std::vector<SizeId>& target);

  /// Whether at most `steps` steps may do; false means that they cannot.
  bool possible(std::span<const ReshapeInput> inputs, const ReshapeLimits& limits, int steps);

 private:
  /// Subsets of more inputs than this are not enumerated: the search decides.
  static constexpr std::size_t kMaxInputs = 12;
  /// Powers of all variables in two words, so that products are compared at once.
  struct Powers {
    std::array<std::uint64_t, kMaxVariables / 8> words{};

    std::int8_t at(std::size_t v) const {
      return static_cast<std::int8_t>(words[v / 8] >> (8 * (v % 8)) & 0xFF);
    }
    /// Adds byte by byte: powers wrap in their own byte.
    void add(const Powers& other);
    /// Word by word: the compiler's own comparison of arrays is a call of memcmp, and this is asked most of all.
    friend bool operator==(const Powers& a, const Powers& b) {
      for (std::size_t w = 0; w < a.words.size(); ++w) {
        if (a.words[w] != b.words[w]) return false;
      }
      return true;
    }
  };
  static Powers powers_of(const Size& size);
  const Powers& powers_of(SizeId size);
  using Subset = std::uint32_t;

  bool choose(std::size_t target, Subset free, int splits, int merges, int pieces);
  bool finish(Subset rest, int splits, int merges, int pieces) const;
  bool has_more(Subset subset, const Powers& wanted) const;

  const SizeSpace& sizes_;
  /// The variables that never stand in a denominator.
  std::vector<std::size_t> primaries_;
  std::vector<Powers> target_;
  /// By the numbers of sizes, as far as they were requested.
  std::vector<Powers> powers_;
  /// The powers of the product of each subset of the inputs.
  std::vector<Powers> products_;
  std::span<const ReshapeInput> inputs_;
  ReshapeLimits limits_;
  int steps_ = 0;
};

}  // namespace syno
