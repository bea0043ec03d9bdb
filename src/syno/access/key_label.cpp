#include "syno/access/key_label.h"

#include <algorithm>
#include <map>

#include "syno/support/hash.h"

namespace syno::key {
namespace {

using Word = std::uint64_t;
using Words = std::vector<Integer>;

Word mix(Word a, Word b) {
  Word x = (a ^ (b + 0x9E3779B97F4A7C15ULL + (a << 6) + (a >> 2))) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 30)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

Word mix_sorted(Word start, std::vector<Word>& words) {
  std::sort(words.begin(), words.end());
  for (const Word word : words) start = mix(start, word);
  return start;
}

// A form, what it is for, and whether f and -f say the same there.
struct Use {
  enum class Kind : std::uint8_t { kExact, kGenerator, kCondition, kInner };
  Kind kind = Kind::kExact;
  std::vector<std::pair<std::size_t, Integer>> terms;  // node, factor
  Integer constant = 0;
  Integer low = kNoLow;
  Integer high = kNoHigh;
  /// Exact: the slot. Generator: the partition. Inner: the node of the carry.
  std::size_t owner = 0;
};

// Digits and carries as nodes 0.., the forms that connect them.
class Labeller {
 public:
  explicit Labeller(const Points& points) : points_(points), algebra_(points.algebra) {
    for (const int base : points.box) {
      nodes_.emplace(node_key(base, -1), colours_.size());
      colours_.push_back(mix(1, static_cast<Word>(algebra_.extent(base))));
    }
    if (colours_.size() > kMaxDigits) throw CapExceeded{"digits"};
    for (const Exact& exact : points.exact)
      add(Use::Kind::kExact, exact.form, static_cast<std::size_t>(exact.slot));
    for (std::size_t i = 0; i < points.partitions.size(); ++i) {
      for (const Form& generator : points.partitions[i].generators)
        add(Use::Kind::kGenerator, generator, i);
    }
    for (const Condition& condition : points.conditions) {
      Use& use = add(Use::Kind::kCondition, condition.form, 0);
      use.low = condition.low;
      use.high = condition.high;
    }
  }

  Labelled run() {
    refine(colours_);
    search(colours_);
    return std::move(best_);
  }

 private:
  static std::pair<int, std::int32_t> node_key(int base, std::int32_t carry) {
    return {base, carry};
  }

  std::size_t node_of(std::int32_t id) {
    const Atom& atom = algebra_.atom(id);
    const auto key = atom.is_digit() ? node_key(atom.base, -1) : node_key(-1, id);
    const auto place = nodes_.find(key);
    if (atom.is_digit() && (atom.low != 1 || atom.high != algebra_.extent(atom.base)))
      throw CapExceeded{"a digit that is cut"};
    if (place != nodes_.end()) return place->second;
    if (atom.is_digit()) throw CapExceeded{"a digit outside the box"};
    const std::size_t node = colours_.size();
    nodes_.emplace(key, node);
    colours_.push_back(mix(2, static_cast<Word>(atom.divisor)));
    add(Use::Kind::kInner, atom.inner, node);
    return node;
  }

  Use& add(Use::Kind kind, const Form& form, std::size_t owner) {
    Use use;
    use.kind = kind;
    use.constant = form.constant;
    use.owner = owner;
    for (const Term& term : form.terms) use.terms.emplace_back(node_of(term.atom), term.factor);
    uses_.push_back(std::move(use));
    return uses_.back();
  }

  static bool is_signed(const Use& use) {
    return use.kind == Use::Kind::kExact || use.kind == Use::Kind::kInner;
  }

  Word signature(const Use& use, const std::vector<Word>& colours, Integer sign) const {
    std::vector<Word> words;
    for (const auto& [node, factor] : use.terms)
      words.push_back(mix(colours[node], static_cast<Word>(sign * factor)));
    Word start = mix(static_cast<Word>(use.kind), static_cast<Word>(sign * use.constant));
    if (use.kind == Use::Kind::kExact) start = mix(start, use.owner);
    if (use.kind == Use::Kind::kCondition) {
      const Integer low = use.low == kNoLow ? kNoHigh : -use.low;
      const Integer high = use.high == kNoHigh ? kNoLow : -use.high;
      start = mix(mix(start, static_cast<Word>(sign > 0 ? use.low : high)),
                  static_cast<Word>(sign > 0 ? use.high : low));
    }
    return mix_sorted(start, words);
  }

  // One round of refinement.
  std::vector<Word> refined(const std::vector<Word>& colours) const {
    struct Signs {
      Word plus, minus;
    };
    std::vector<Signs> signs(uses_.size());
    std::vector<std::vector<Word>> of_partition(points_.partitions.size());
    std::vector<Word> of_carry(colours.size(), 0);
    for (std::size_t i = 0; i < uses_.size(); ++i) {
      const Use& use = uses_[i];
      signs[i].plus = signature(use, colours, 1);
      signs[i].minus = is_signed(use) ? signs[i].plus : signature(use, colours, -1);
      if (use.kind == Use::Kind::kGenerator)
        of_partition[use.owner].push_back(
            mix(std::min(signs[i].plus, signs[i].minus), std::max(signs[i].plus, signs[i].minus)));
      if (use.kind == Use::Kind::kInner) of_carry[use.owner] = signs[i].plus;
    }
    std::vector<Word> partitions;
    for (std::size_t i = 0; i < of_partition.size(); ++i)
      partitions.push_back(
          mix_sorted(mix(3, static_cast<Word>(points_.partitions[i].slot)), of_partition[i]));
    std::vector<std::vector<Word>> seen(colours.size());
    for (std::size_t i = 0; i < uses_.size(); ++i) {
      const Use& use = uses_[i];
      Word context = static_cast<Word>(use.kind);
      if (use.kind == Use::Kind::kGenerator) context = mix(context, partitions[use.owner]);
      if (use.kind == Use::Kind::kInner) context = mix(context, colours[use.owner]);
      for (const auto& [node, factor] : use.terms) {
        const Word plus = mix(signs[i].plus, static_cast<Word>(factor));
        const Word minus = is_signed(use) ? plus : mix(signs[i].minus, static_cast<Word>(-factor));
        seen[node].push_back(mix(mix(context, std::min(plus, minus)), std::max(plus, minus)));
      }
    }
    std::vector<Word> next(colours.size());
    for (std::size_t node = 0; node < colours.size(); ++node)
      next[node] = mix_sorted(mix(colours[node], of_carry[node]), seen[node]);
    return next;
  }

  static std::size_t cells(std::vector<Word> colours) {
    std::sort(colours.begin(), colours.end());
    return static_cast<std::size_t>(std::unique(colours.begin(), colours.end()) - colours.begin());
  }

  void refine(std::vector<Word>& colours) const {
    std::size_t before = cells(colours);
    while (true) {
      colours = refined(colours);
      const std::size_t now = cells(colours);
      if (now <= before) return;
      before = now;
    }
  }

  void search(const std::vector<Word>& colours) {
    // The smallest cell of digits with more than one member; by colour among those.
    std::map<Word, std::vector<std::size_t>> by_colour;
    for (std::size_t node = 0; node < points_.box.size(); ++node)
      by_colour[colours[node]].push_back(node);
    const std::vector<std::size_t>* cell = nullptr;
    for (const auto& [colour, members] : by_colour) {
      if (members.size() > 1 && (cell == nullptr || members.size() < cell->size())) cell = &members;
    }
    if (cell != nullptr) {
      for (const std::size_t node : *cell) {
        std::vector<Word> apart = colours;
        apart[node] = mix(apart[node], 5);
        refine(apart);
        search(apart);
      }
      return;
    }
    if (++leaves_ > kMaxLeaves) throw CapExceeded{"leaves"};
    std::vector<int> order;
    for (const auto& [colour, members] : by_colour) order.push_back(points_.box[members.front()]);
    Words words = encode(order);
    if (best_.words.empty() || words < best_.words) best_ = {std::move(words), std::move(order)};
  }

  // The encoding under an order of digits; every list starts with its length.
  Words encode(const std::vector<int>& order) const {
    std::map<int, Integer> labels;
    Words words{static_cast<Integer>(order.size())};
    for (const int base : order) {
      labels.emplace(base, static_cast<Integer>(labels.size()));
      words.push_back(algebra_.extent(base));
    }
    words.push_back(points_.multiplicity);
    for (const Exact& exact : points_.exact) {
      words.push_back(exact.slot);
      append(words, encode_form(exact.form, labels, 1));
    }
    std::vector<Words> partitions;
    for (const Partition& partition : points_.partitions) {
      std::vector<Words> generators;
      for (const Form& generator : partition.generators)
        generators.push_back(
            std::min(encode_form(generator, labels, 1), encode_form(generator, labels, -1)));
      Words one{partition.slot};
      append_sorted(one, generators);
      partitions.push_back(std::move(one));
    }
    append_sorted(words, partitions);
    std::vector<Words> conditions;
    for (const Condition& condition : points_.conditions) {
      Words plus{condition.low, condition.high};
      append(plus, encode_form(condition.form, labels, 1));
      Words minus{condition.high == kNoHigh ? kNoLow : -condition.high,
                  condition.low == kNoLow ? kNoHigh : -condition.low};
      append(minus, encode_form(condition.form, labels, -1));
      conditions.push_back(std::min(plus, minus));
    }
    append_sorted(words, conditions);
    return words;
  }

  Words encode_form(const Form& form, const std::map<int, Integer>& labels, Integer sign) const {
    std::vector<Words> terms;
    for (const Term& term : form.terms) {
      const Atom& atom = algebra_.atom(term.atom);
      Words one;
      if (atom.is_digit()) {
        one = {labels.at(atom.base), sign * term.factor};
      } else {
        one = {-1, sign * term.factor, atom.divisor};
        append(one, encode_form(atom.inner, labels, 1));
      }
      terms.push_back(std::move(one));
    }
    Words words{sign * form.constant};
    append_sorted(words, terms);
    return words;
  }

  static void append(Words& words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
  }
  static void append_sorted(Words& words, std::vector<Words>& lists) {
    std::sort(lists.begin(), lists.end());
    words.push_back(static_cast<Integer>(lists.size()));
    for (const Words& list : lists) append(words, list);
  }

  const Points& points_;
  const Algebra& algebra_;
  std::map<std::pair<int, std::int32_t>, std::size_t> nodes_;
  std::vector<Word> colours_;
  std::vector<Use> uses_;
  Labelled best_;
  int leaves_ = 0;
};

}  // namespace

Labelled label(const Points& points) {
  return Labeller(points).run();
}

}  // namespace syno::key
