// Canonical labelling: numbers for the digits that do not depend on the order in which they were
// found.
//
// Colours start as extents and are refined by the forms a digit is in. While two digits keep one
// colour, every member of the smallest such cell is set apart in turn, and the least hash of all
// leaves is the result. What is hashed is the whole labelled normal form, never colours, so two hashes
// are equal only for the same normal form.
//
// A normal form falls into pieces: digits that no exact form, condition or carry joins. Pieces meet
// only in weights. Where weights have numbers, the hash of each piece is enough: the normal form is
// the multiset of its pieces.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "syno/key/points.h"
#include "syno/support/hash.h"

namespace syno::key {

inline constexpr int kMaxLeaves = 200;
inline constexpr std::size_t kMaxDigits = 60;

struct Labelled {
  Hash128 hash;
  /// The bases of the digits, by label.
  std::vector<int> order;
};

/// The pieces of a normal form. A digit that only weights see is in none: what matters of such digits
/// is their product.
struct Pieces {
  /// A digit that no exact form, condition, carry or unordered dimension sees.
  struct Loose {
    /// A bit a weight, in the order of partitions; 0 for a factor of the whole sum.
    std::uint64_t weights = 0;
    Integer extent = 1;
  };
  static constexpr int kNone = -1;

  int count = 0;
  /// By base: its piece.
  InlineVector<int, 32> of_base;
  InlineVector<Loose, 4> loose;
};
Pieces find_pieces(const Points& points);

/// Keeps its memory from one labelling to the next.
class Labeller {
 public:
  /// The whole normal form; weights are told apart by their content alone. Throws CapExceeded when
  /// there are more than kMaxDigits digits or kMaxLeaves leaves.
  Labelled label(const Points& points);
  /// The sum of the hashes of all pieces, without loose digits, where weight i has the number
  /// `weight_numbers[i]`.
  Hash128 hash(const Points& points, const Pieces& pieces, std::span<const int> weight_numbers);

 private:
  using Word = std::uint64_t;
  enum class Kind : std::uint8_t { kExact, kGenerator, kCondition, kInner };
  struct Term {
    std::size_t node = 0;
    Integer factor = 0;
  };
  // A form and what it is for: terms_[first..end).
  struct Use {
    Kind kind = Kind::kExact;
    std::size_t first = 0;
    std::size_t end = 0;
    Integer constant = 0;
    Integer low = kNoLow;
    Integer high = kNoHigh;
    // Exact: the slot. Generator: the partition. Inner: the node of the carry.
    std::size_t owner = 0;
    Word plus = 0;
    Word minus = 0;
  };
  struct Carry {
    std::int32_t atom = 0;
    std::size_t use = 0;
  };

  void read(const Points& points, const Pieces* pieces, int piece,
            std::span<const int> weight_numbers);
  Labelled run();
  std::size_t node_of(std::int32_t id);
  std::size_t add(Kind kind, const Form& form, std::size_t owner);
  // Of a generator and a condition, f and -f say the same.
  static bool says_the_same_negated(Kind kind) {
    return kind == Kind::kGenerator || kind == Kind::kCondition;
  }
  void sign(Use& use) const;
  Word signature(const Use& use, Integer sign) const;
  void refine();
  void refine_once();
  std::size_t cells();
  void search();
  using Words = std::vector<Integer>;
  // Lists of words, one behind the other.
  struct Segments {
    void begin() { begins.push_back(words.size()); }
    // Appends their number and the lists, sorted, and starts anew.
    void move_sorted_to(Words& to);
    std::vector<std::size_t> begins;
    Words words;
  };
  void encode(std::span<const std::uint32_t> order);
  void encode_either(const Use& use, Words& words) const;
  void encode_form(const Use& use, Integer sign, Words& words) const;

  const Algebra* algebra_ = nullptr;
  Integer multiplicity_ = 1;
  // Digits, then carries.
  std::vector<int> bases_;
  std::vector<Carry> carries_;
  std::vector<int> node_of_base_;
  std::vector<int> slots_;
  std::vector<Use> uses_;
  std::vector<Term> terms_;
  std::vector<Word> colours_;
  std::vector<Word> next_;
  std::vector<Word> sums_;
  std::vector<Word> sorted_;
  std::vector<Integer> labels_;
  int leaves_ = 0;
  Words words_;
  Words best_words_;
  Segments generators_;
  Segments partitions_;
  Segments conditions_;
  std::vector<int> best_order_;
};

/// The normal form in readable lines; digits are d0:extent, d1:extent, ...
std::string normal_form_text(const Points& points, const Labelled& labelled);

}  // namespace syno::key
