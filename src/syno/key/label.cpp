#include "syno/key/label.h"

#include <algorithm>

#include "syno/support/at.h"
#include "syno/support/interrupt.h"
#include "syno/support/mix.h"

namespace syno::key {
namespace {

using Word = std::uint64_t;

class PieceFinder {
 public:
  explicit PieceFinder(const Points& points) : points_(points), algebra_(points.algebra) {}

  Pieces find() {
    bases_.resize(algebra_.base_count());
    for (std::size_t i = 0; i < bases_.size(); ++i) bases_[i].parent = static_cast<int>(i);
    for (const Exact& exact : points_.exact) join(exact.form);
    for (const Condition& condition : points_.conditions) join(condition.form);
    std::uint64_t bit = 1;
    for (const Partition& partition : points_.partitions) {
      const bool weight = partition.slot == kWeightSlot;
      for (const Form& generator : partition.generators) {
        const int lone = lone_base(generator);
        if (weight && lone >= 0) {
          bases_[at(lone)].held |= bit;
        } else {
          join(generator);
        }
      }
      if (weight) bit <<= 1;
    }
    Pieces pieces;
    if (points_.multiplicity != 1) pieces.loose.push_back({0, points_.multiplicity});
    pieces.of_base.assign(bases_.size(), Pieces::kNone);
    for (const int base : points_.box) {
      if (bases_[at(base)].loose) {
        pieces.loose.push_back({bases_[at(base)].held, algebra_.extent(base)});
        continue;
      }
      int& of_root = pieces.of_base[at(find(base))];
      if (of_root == Pieces::kNone) of_root = pieces.count++;
      pieces.of_base[at(base)] = of_root;
    }
    return pieces;
  }

 private:
  int lone_base(const Form& form) const {
    return form.terms.size() == 1 ? algebra_.atom(form.terms.front().atom).base : -1;
  }

  int find(int base) {
    while (bases_[at(base)].parent != base) {
      int& parent = bases_[at(base)].parent;
      parent = bases_[at(parent)].parent;
      base = parent;
    }
    return base;
  }

  void join(const Form& form) {
    int first = -1;
    algebra_.visit_atoms(form, [&](const Atom& atom) {
      if (!atom.is_digit()) return;
      bases_[at(atom.base)].loose = false;
      const int root = find(atom.base);
      if (first < 0) first = root;
      bases_[at(root)].parent = find(first);
    });
  }

  const Points& points_;
  const Algebra& algebra_;
  struct Base {
    int parent = 0;
    bool loose = true;
    // The weights it is a generator of.
    std::uint64_t held = 0;
  };
  InlineVector<Base, 32> bases_;
};

// The piece of a form, by its first digit; Pieces::kNone for a constant and for a loose digit.
int piece_of(const Algebra& algebra, const Form& form, const Pieces& pieces) {
  const Form* inside = &form;
  while (!inside->terms.empty()) {
    const Atom& atom = algebra.atom(inside->terms.front().atom);
    if (atom.is_digit()) return pieces.of_base[at(atom.base)];
    inside = &atom.inner;
  }
  return Pieces::kNone;
}

}  // namespace

Pieces find_pieces(const Points& points) {
  return PieceFinder(points).find();
}

Labelled Labeller::label(const Points& points) {
  read(points, nullptr, Pieces::kNone, {});
  return run();
}

Hash128 Labeller::hash(const Points& points, const Pieces& pieces,
                       std::span<const int> weight_numbers) {
  Hash128 sum;
  const auto add = [&sum](const Hash128& hash) {
    sum.high += hash.high;
    sum.low += hash.low;
  };
  for (int piece = 0; piece < pieces.count; ++piece) {
    read(points, &pieces, piece, weight_numbers);
    add(run().hash);
  }
  // Indices without a digit.
  for (const Exact& exact : points.exact) {
    if (exact.form.is_constant())
      add(Hasher("constant").add(exact.slot).add(exact.form.constant).finish());
  }
  return sum;
}

// Nodes and uses of one piece, or of everything when `pieces` is null.
void Labeller::read(const Points& points, const Pieces* pieces, int piece,
                    std::span<const int> weight_numbers) {
  algebra_ = &points.algebra;
  multiplicity_ = pieces == nullptr ? points.multiplicity : 1;
  bases_.clear();
  carries_.clear();
  slots_.clear();
  uses_.clear();
  terms_.clear();
  colours_.clear();
  node_of_base_.assign(algebra_->base_count(), -1);
  for (const int base : points.box) {
    if (pieces != nullptr && pieces->of_base[at(base)] != piece) continue;
    node_of_base_[at(base)] = static_cast<int>(bases_.size());
    bases_.push_back(base);
    colours_.push_back(mix_words(1, static_cast<Word>(algebra_->extent(base))));
  }
  if (bases_.size() > kMaxDigits) throw CapExceeded{"digits"};
  const auto is_here = [&](const Form& form) {
    return pieces == nullptr || piece_of(*algebra_, form, *pieces) == piece;
  };
  for (const Exact& exact : points.exact) {
    if (is_here(exact.form)) add(Kind::kExact, exact.form, static_cast<std::size_t>(exact.slot));
  }
  std::size_t weight = 0;
  for (const Partition& partition : points.partitions) {
    const bool numbered = partition.slot == kWeightSlot && pieces != nullptr;
    const int slot = numbered ? -1 - weight_numbers[weight++] : partition.slot;
    const std::size_t first_use = uses_.size();
    for (const Form& generator : partition.generators) {
      if (is_here(generator)) add(Kind::kGenerator, generator, slots_.size());
    }
    if (pieces == nullptr || uses_.size() > first_use) slots_.push_back(slot);
  }
  for (const Condition& condition : points.conditions) {
    if (!is_here(condition.form)) continue;
    Use& use = uses_[add(Kind::kCondition, condition.form, 0)];
    use.low = condition.low;
    use.high = condition.high;
  }
}

std::size_t Labeller::node_of(std::int32_t id) {
  const Atom& atom = algebra_->atom(id);
  if (atom.is_digit()) {
    if (atom.low != 1 || atom.high != algebra_->extent(atom.base))
      throw CapExceeded{"a digit that is cut"};
    const int node = node_of_base_[at(atom.base)];
    if (node < 0) throw CapExceeded{"a digit outside the box"};
    return static_cast<std::size_t>(node);
  }
  for (std::size_t i = 0; i < carries_.size(); ++i) {
    if (carries_[i].atom == id) return bases_.size() + i;
  }
  const std::size_t node = colours_.size();
  const std::size_t carry = carries_.size();
  carries_.push_back({id, 0});
  colours_.push_back(mix_words(2, static_cast<Word>(atom.divisor)));
  const std::size_t use = add(Kind::kInner, atom.inner, node);
  carries_[carry].use = use;
  return node;
}

std::size_t Labeller::add(Kind kind, const Form& form, std::size_t owner) {
  // Nodes first: a carry adds the use of its inner form.
  InlineVector<Term, 8> terms;
  for (const key::Term& term : form.terms) terms.push_back({node_of(term.atom), term.factor});
  Use use;
  use.kind = kind;
  use.owner = owner;
  use.constant = form.constant;
  use.first = terms_.size();
  terms_.insert(terms_.end(), terms.begin(), terms.end());
  use.end = terms_.size();
  uses_.push_back(use);
  return uses_.size() - 1;
}

Labeller::Word Labeller::signature(const Use& use, Integer sign) const {
  Word sum = 0;
  for (std::size_t i = use.first; i < use.end; ++i)
    sum += mix_words(colours_[terms_[i].node], static_cast<Word>(sign * terms_[i].factor));
  Word start = mix_words(static_cast<Word>(use.kind), static_cast<Word>(sign * use.constant));
  if (use.kind == Kind::kExact) start = mix_words(start, use.owner);
  if (use.kind == Kind::kCondition) {
    start = mix_words(start, static_cast<Word>(sign > 0 ? use.low : opposite_low(use.high)));
    start = mix_words(start, static_cast<Word>(sign > 0 ? use.high : opposite_high(use.low)));
  }
  return mix_words(start, sum);
}

void Labeller::sign(Use& use) const {
  use.plus = signature(use, 1);
  use.minus = says_the_same_negated(use.kind) ? signature(use, -1) : use.plus;
}

void Labeller::refine_once() {
  const auto both = [](Word a, Word b) { return mix_words(std::min(a, b), std::max(a, b)); };
  sums_.assign(slots_.size(), 0);
  next_ = colours_;
  for (Use& use : uses_) {
    sign(use);
    if (use.kind == Kind::kGenerator) sums_[use.owner] += both(use.plus, use.minus);
    if (use.kind == Kind::kInner) next_[use.owner] = mix_words(next_[use.owner], use.plus);
  }
  for (const Use& use : uses_) {
    Word context = static_cast<Word>(use.kind);
    if (use.kind == Kind::kGenerator)
      context =
          mix_words(mix_words(context, sums_[use.owner]), static_cast<Word>(slots_[use.owner]));
    if (use.kind == Kind::kInner) context = mix_words(context, colours_[use.owner]);
    const bool either = says_the_same_negated(use.kind);
    for (std::size_t i = use.first; i < use.end; ++i) {
      const auto factor = static_cast<Word>(terms_[i].factor);
      const Word plus = mix_words(use.plus, factor);
      const Word minus = either ? mix_words(use.minus, 0 - factor) : plus;
      next_[terms_[i].node] += mix_words(context, both(plus, minus));
    }
  }
  // What was summed up becomes a colour.
  for (Word& colour : next_) colour = mix_words(colour, 4);
  colours_.swap(next_);
}

std::size_t Labeller::cells() {
  sorted_ = colours_;
  std::sort(sorted_.begin(), sorted_.end());
  return static_cast<std::size_t>(std::unique(sorted_.begin(), sorted_.end()) - sorted_.begin());
}

void Labeller::refine() {
  std::size_t before = cells();
  while (before < colours_.size()) {
    refine_once();
    const std::size_t now = cells();
    if (now <= before) return;
    before = now;
  }
}

Labelled Labeller::run() {
  leaves_ = 0;
  best_words_.clear();
  refine();
  search();
  static const Hasher kStart("normal form");
  Hasher hasher = kStart;
  for (const Integer word : best_words_) hasher.add(word);
  Labelled result;
  result.hash = hasher.finish();
  result.order.swap(best_order_);
  return result;
}

void Labeller::search() {
  InlineVector<std::uint32_t, 16> order;
  order.resize(bases_.size());
  for (std::size_t node = 0; node < order.size(); ++node)
    order[node] = static_cast<std::uint32_t>(node);
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return colours_[a] < colours_[b]; });
  // The smallest cell of digits with more than one member; by colour among those.
  std::size_t cell = 0;
  std::size_t cell_size = 0;
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin + 1;
    while (end < order.size() && colours_[order[end]] == colours_[order[begin]]) ++end;
    if (end - begin > 1 && (cell_size == 0 || end - begin < cell_size)) {
      cell = begin;
      cell_size = end - begin;
    }
    begin = end;
  }
  if (cell_size > 0) {
    const std::vector<Word> colours = colours_;
    for (std::size_t i = cell; i < cell + cell_size; ++i) {
      colours_ = colours;
      colours_[order[i]] = mix_words(colours_[order[i]], 5);
      refine();
      search();
    }
    return;
  }
  if (++leaves_ > kMaxLeaves) throw CapExceeded{"leaves"};
  check_interrupt();
  encode({order.data(), order.size()});
  if (!best_words_.empty() && !(words_ < best_words_)) return;
  best_words_.swap(words_);
  best_order_.clear();
  for (const std::uint32_t node : order) best_order_.push_back(bases_[node]);
}

// The labelled normal form as words that can be read back in one way only. Lists start with their
// length; where their order means nothing, they are sorted by content.
void Labeller::encode(std::span<const std::uint32_t> order) {
  words_.clear();
  labels_.resize(order.size());
  words_.push_back(static_cast<Integer>(order.size()));
  words_.push_back(multiplicity_);
  for (std::size_t label = 0; label < order.size(); ++label) {
    labels_[order[label]] = static_cast<Integer>(label);
    words_.push_back(algebra_->extent(bases_[order[label]]));
  }
  // Exact forms stand in the order of their slots.
  for (const Use& use : uses_) {
    if (use.kind != Kind::kExact) continue;
    words_.push_back(static_cast<Integer>(use.owner));
    encode_form(use, 1, words_);
  }
  for (std::size_t partition = 0; partition < slots_.size(); ++partition) {
    for (const Use& use : uses_) {
      if (use.kind != Kind::kGenerator || use.owner != partition) continue;
      generators_.begin();
      encode_either(use, generators_.words);
    }
    partitions_.begin();
    partitions_.words.push_back(slots_[partition]);
    generators_.move_sorted_to(partitions_.words);
  }
  partitions_.move_sorted_to(words_);
  for (const Use& use : uses_) {
    if (use.kind != Kind::kCondition) continue;
    conditions_.begin();
    encode_either(use, conditions_.words);
  }
  conditions_.move_sorted_to(words_);
}

// Of f and -f, the one whose first digit counts up; without a digit, the lesser encoding.
void Labeller::encode_either(const Use& use, Words& words) const {
  Integer first_label = kNoHigh;
  Integer first_factor = 0;
  for (std::size_t i = use.first; i < use.end; ++i) {
    if (terms_[i].node >= bases_.size() || labels_[terms_[i].node] >= first_label) continue;
    first_label = labels_[terms_[i].node];
    first_factor = terms_[i].factor;
  }
  const auto encode_sign = [&](Integer sign, Words& to) {
    if (use.kind == Kind::kCondition) {
      to.push_back(sign > 0 ? use.low : opposite_low(use.high));
      to.push_back(sign > 0 ? use.high : opposite_high(use.low));
    }
    encode_form(use, sign, to);
  };
  if (first_factor != 0) {
    encode_sign(first_factor > 0 ? 1 : -1, words);
    return;
  }
  Words plus;
  Words minus;
  encode_sign(1, plus);
  encode_sign(-1, minus);
  const Words& less = minus < plus ? minus : plus;
  words.insert(words.end(), less.begin(), less.end());
}

// Counts and constant, digits by label, then carries by content.
void Labeller::encode_form(const Use& use, Integer sign, Words& words) const {
  InlineVector<std::pair<Integer, Integer>, 8> digits;
  std::vector<Words> carries;
  for (std::size_t i = use.first; i < use.end; ++i) {
    const Integer factor = sign * terms_[i].factor;
    if (terms_[i].node < bases_.size()) {
      digits.emplace_back(labels_[terms_[i].node], factor);
      continue;
    }
    const Carry& carry = carries_[terms_[i].node - bases_.size()];
    carries.push_back({factor, algebra_->atom(carry.atom).divisor});
    encode_form(uses_[carry.use], 1, carries.back());
  }
  std::sort(digits.begin(), digits.end());
  std::sort(carries.begin(), carries.end());
  words.push_back(static_cast<Integer>(digits.size() << 32 | carries.size()));
  words.push_back(sign * use.constant);
  for (const auto& [label, factor] : digits) {
    words.push_back(label);
    words.push_back(factor);
  }
  for (const Words& carry : carries) words.insert(words.end(), carry.begin(), carry.end());
}

void Labeller::Segments::move_sorted_to(Words& to) {
  const auto segment = [this](std::size_t i) {
    const std::size_t end = i + 1 < begins.size() ? begins[i + 1] : words.size();
    return std::span(words.data() + begins[i], end - begins[i]);
  };
  InlineVector<std::size_t, 8> order;
  for (std::size_t i = 0; i < begins.size(); ++i) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const auto first = segment(a);
    const auto second = segment(b);
    return std::lexicographical_compare(first.begin(), first.end(), second.begin(), second.end());
  });
  to.push_back(static_cast<Integer>(order.size()));
  for (const std::size_t i : order) {
    const auto words_of_it = segment(i);
    to.insert(to.end(), words_of_it.begin(), words_of_it.end());
  }
  begins.clear();
  words.clear();
}

}  // namespace syno::key
