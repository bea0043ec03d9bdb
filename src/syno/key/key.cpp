#include "syno/key/key.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>

#include "syno/key/label.h"
#include "syno/key/points.h"
#include "syno/key/section.h"
#include "syno/support/error.h"
#include "syno/support/flat_table.h"
#include "syno/support/interrupt.h"
#include "syno/support/mix.h"

namespace syno {
namespace {

// Weights are tried in every order up to this many; the sections of operators with more are one.
constexpr std::size_t kMaxOrderedWeights = 4;
// Sections and normal forms that are kept; then all are forgotten.
constexpr std::size_t kMaxKept = std::size_t{1} << 19;

void check_values(const Variables& variables, const Values& values) {
  if (values.size() == variables.count()) return;
  throw Complaint("a binding has " + std::to_string(values.size()) + " values for " +
                  std::to_string(variables.count()) + " variables")
      .where("the semantic key")
      .hint("give one value a variable, in the order of the operator's variables")
      .error();
}

// Throws CapExceeded.
void normalise(key::Points& points) {
  key::settle_cyclic_shifts(points);
  key::reflect_digits(points);
  // Partitions and conditions may cut digits, which changes the other forms.
  for (int round = 0;; ++round) {
    if (round > key::kMaxRecursion) throw key::CapExceeded{"rounds"};
    check_interrupt();
    key::simplify_partitions(points);
    key::simplify_conditions(points);
    if (points.masked) return;
    if (key::split_bases(points) || key::free_top_digits(points) || key::cover_windows(points) ||
        key::reflect_digits(points))
      continue;
    if (!key::coarsen_digits(points)) break;
  }
  key::drop_implied_bounds(points);
}

// All orders of 0..count-1.
std::vector<std::vector<int>> permutations(std::size_t count) {
  std::vector<int> order(count);
  for (std::size_t i = 0; i < count; ++i) order[i] = static_cast<int>(i);
  std::vector<std::vector<int>> all;
  do all.push_back(order);
  while (std::next_permutation(order.begin(), order.end()));
  return all;
}

// Numbers by hash.
class HashIndex {
 public:
  std::size_t size() const { return size_; }
  void clear() {
    slots_.clear(kFirstSlots);
    size_ = 0;
  }
  /// Nothing when there is none; until the next change.
  const std::uint32_t* find(const Hash128& hash) {
    const Slot& slot = slot_of(hash);
    return slot.is_free() ? nullptr : &slot.number;
  }
  /// Adds a hash that is not there yet.
  std::uint32_t add(const Hash128& hash, std::size_t number) {
    ensure(number < kFree, "HashIndex: too many numbers");
    slots_.room(size_++);
    slot_of(hash) = {hash, static_cast<std::uint32_t>(number)};
    return static_cast<std::uint32_t>(number);
  }

 private:
  static constexpr std::size_t kFirstSlots = 64;
  static constexpr std::uint32_t kFree = static_cast<std::uint32_t>(-1);
  struct Slot {
    Hash128 name;
    std::uint32_t number = kFree;
    bool is_free() const { return number == kFree; }
    // Packed sizes come here too, so the bits are mixed.
    std::uint64_t hash() const { return table_hash(name.high, name.low); }
  };
  Slot& slot_of(const Hash128& hash) {
    return slots_.find(table_hash(hash.high, hash.low),
                       [&](const Slot& other) { return other.name == hash; });
  }

  FlatTable<Slot> slots_{kFirstSlots};
  std::size_t size_ = 0;
};

void add_to(Hash128& sum, const Hash128& hash) {
  sum.high += hash.high;
  sum.low += hash.low;
}

}  // namespace

class Keyer::Table {
 public:
  Table(VariablesPtr variables, std::vector<Values> bindings) : variables_(std::move(variables)) {
    std::vector<std::pair<Hash128, Values>> sorted;
    for (Values& values : bindings) {
      check_values(*variables_, values);
      Hasher hasher("binding");
      for (std::size_t v = 0; v < values.size(); ++v)
        hasher.add(variables_->name_hash(v)).add(values[v]);
      sorted.emplace_back(hasher.finish(), std::move(values));
    }
    std::sort(sorted.begin(), sorted.end());
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    for (auto& [hash, values] : sorted) {
      binding_hashes_.push_back(hash);
      bindings_.push_back(std::move(values));
    }
    new_values_.resize(bindings_.size());
    for (std::size_t count = 0; count <= kMaxOrderedWeights; ++count)
      weight_orders_.push_back(permutations(count));
    for (std::size_t count = 0; count <= kMaxOrderedWeights + 1; ++count)
      starts_.push_back(Hasher("section").add(std::uint64_t{count}));
    use_table(variables_);
  }

  Hash128 key(const Graph& graph, const Shape& input, std::span<const CoordinateId> match,
              std::uint64_t mirrored, const Operator* op) {
    ++counts_.operators;
    structure_.reset();
    graph_ = &graph;
    if (graph.variables() != op_variables_) use_table(graph.variables());
    read_sizes(input);
    const std::size_t weights = graph.weights().size();
    in_one_ = weights > kMaxOrderedWeights;
    weight_count_ = in_one_ ? 0 : weights;
    sections_.read(graph, input, match, in_one_, mirrored);
    look_up_sections();
    list_codes();
    Hasher hasher("semantic key 2");
    hasher.add(static_cast<std::int64_t>(weights));
    bool fell_back = false;
    for (std::size_t b = 0; b < bindings_.size(); ++b) {
      hasher.add(shape_hashes_[b]);
      const Answer answer = combine(b);
      hasher.add(static_cast<int>(answer.kind)).add(answer.hash);
      if (answer.kind != Kind::kFallback) continue;
      if (!structure_) {
        structure_ = op != nullptr
                         ? op->structure()
                         : Operator(graph, input, {match.begin(), match.end()}).structure();
      }
      hasher.add(*structure_);
      fell_back = true;
    }
    counts_.fallbacks += fell_back;
    structure_.reset();
    return hasher.finish();
  }

  const KeyCounts& counts() const { return counts_; }

 private:
  enum class Kind : std::uint8_t { kNormal, kZero, kUnfit, kFallback };

  // A section under one binding. Where weights have numbers, a hash for each way to number those the
  // section holds: number i counts weight_count^i.
  struct NormalForm {
    Kind kind = Kind::kNormal;
    std::uint32_t first_hash = 0;
    std::uint32_t first_loose = 0;
    std::uint32_t end_loose = 0;
  };
  struct Answer {
    Kind kind = Kind::kNormal;
    Hash128 hash;
  };
  // Sizes of the operator are powers by its own variables.
  void use_table(const VariablesPtr& variables) {
    op_variables_ = variables;
    place_.clear();
    for (std::size_t v = 0; v < variables->count(); ++v)
      place_.push_back(variables_->index(variables->name(v)));
    op_bindings_.clear();
    for (const Values& values : bindings_) {
      Values translated;
      for (const std::size_t v : place_) translated.push_back(values[v]);
      op_bindings_.push_back(std::move(translated));
    }
    shape_words_.clear();
  }

  // The number of a size. Its values under the bindings stand in size_values_.
  std::size_t number_of(const Size& size) {
    static_assert(kMaxVariables == 16);
    std::array<std::int8_t, kMaxVariables> powers{};
    for (std::size_t v = 0; v < place_.size(); ++v)
      powers[place_[v]] = static_cast<std::int8_t>(size.power(v));
    Hash128 packed;
    std::memcpy(&packed.low, powers.data(), 8);
    std::memcpy(&packed.high, powers.data() + 8, 8);
    if (const std::uint32_t* known = sizes_.find(packed)) return *known;
    for (std::size_t b = 0; b < op_bindings_.size(); ++b)
      new_values_[b] = size.evaluate(op_bindings_[b]).value_or(0);
    size_values_.insert(size_values_.end(), new_values_.begin(), new_values_.end());
    return sizes_.add(packed, sizes_.size());
  }
  key::Integer value_of(std::size_t size, std::size_t b) const {
    return size_values_[size * bindings_.size() + b];
  }

  void read_sizes(const Shape& input) {
    output_words_.clear();
    step_words_.clear();
    shape_now_.clear();
    const auto read_shape = [&](const Shape& shape) {
      for (const Dimension& dim : shape) {
        shape_now_.push_back(number_of(dim.size));
        shape_now_.push_back((dim.unordered ? 1U : 0U) + (dim.causal ? 2U : 0U));
      }
    };
    read_shape(graph_->output());
    for (std::size_t d = 0; d < graph_->output().size(); ++d)
      output_words_.push_back(shape_now_[2 * d]);
    shape_now_.push_back(graph_->output().size());
    read_shape(input);
    for (const Step& step : graph_->steps()) step_words_.push_back(number_of(step.size));
    if (shape_now_ != shape_words_) hash_shapes(input);
  }

  // Shapes are part of every key: keys of different specifications never meet.
  void hash_shapes(const Shape& input) {
    shape_hashes_.clear();
    for (std::size_t b = 0; b < bindings_.size(); ++b) {
      Hasher hasher("shapes");
      hasher.add(binding_hashes_[b]);
      for (const Shape* shape : {&graph_->output(), &input}) {
        hasher.add(static_cast<std::int64_t>(shape->size()));
        for (const Dimension& dim : *shape)
          hasher.add(value_of(number_of(dim.size), b)).add(dim.unordered).add(dim.causal);
      }
      shape_hashes_.push_back(hasher.finish());
    }
    shape_words_ = shape_now_;
  }

  void look_up_sections() {
    if (by_section_.size() + by_values_.size() > kMaxKept) forget();
    found_.clear();
    for (std::size_t s = 0; s < sections_.count(); ++s) {
      const Hash128 hash = sections_.hash(s, {output_words_, step_words_}, start());
      const std::uint32_t* known = by_section_.find(hash);
      found_.push_back(known != nullptr ? *known : by_section_.add(hash, add_section(s)));
    }
  }

  // Hashes of a section are not the same when weights are numbered in another way.
  const Hasher& start() const { return in_one_ ? starts_.back() : starts_[weight_count_]; }

  void forget() {
    by_section_.clear();
    by_values_.clear();
    of_section_.clear();
    normal_forms_.clear();
    hashes_.clear();
    loose_.clear();
  }

  // The place in of_section_ of the normal forms of section `s`, one a binding.
  std::size_t add_section(std::size_t s) {
    ++counts_.sections;
    const key::Section section = sections_.section(s);
    extent_numbers_.clear();
    for (const CoordinateId id : section.coordinates)
      extent_numbers_.push_back(number_of(graph_->extent(id)));
    output_values_.assign(output_words_.size(), 0);
    step_values_.assign(step_words_.size(), 0);
    const std::size_t first = of_section_.size();
    for (std::size_t b = 0; b < bindings_.size(); ++b) {
      values_.extents.clear();
      for (const std::size_t number : extent_numbers_)
        values_.extents.push_back(value_of(number, b));
      values_.sizes.clear();
      for (const key::Section::Unit& unit : section.units)
        values_.sizes.push_back(value_of(step_words_[static_cast<std::size_t>(unit.step)], b));
      of_section_.push_back(key::fits(section, values_) ? number_of_form(s, section) : kUnfit);
    }
    return first;
  }

  // The place in normal_forms_ of section `s` under values_.
  std::uint32_t number_of_form(std::size_t s, const key::Section& section) {
    for (const key::Section::Dim& dim : section.outputs)
      output_values_[static_cast<std::size_t>(dim.slot)] =
          static_cast<std::uint64_t>(values_.extents[static_cast<std::size_t>(dim.coordinate)]);
    for (std::size_t i = 0; i < section.units.size(); ++i)
      step_values_[static_cast<std::size_t>(section.units[i].step)] =
          static_cast<std::uint64_t>(values_.sizes[i]);
    const Hash128 hash = sections_.hash(s, {output_values_, step_values_}, start());
    if (const std::uint32_t* known = by_values_.find(hash)) return *known;
    return by_values_.add(hash, add_normal_form(section));
  }

  std::size_t add_normal_form(const key::Section& section) {
    ++counts_.normal_forms;
    ensure(hashes_.size() < kUnfit, "Keyer: too many normal forms");
    NormalForm result;
    result.first_hash = static_cast<std::uint32_t>(hashes_.size());
    result.first_loose = result.end_loose = static_cast<std::uint32_t>(loose_.size());
    try {
      key::read_points(section, values_, points_);
      normalise(points_);
      if (points_.masked) {
        result.kind = Kind::kZero;
      } else if (in_one_) {
        hashes_.push_back(labeller_.label(points_).hash);
      } else {
        add_hashes(points_, section.weights);
        result.end_loose = static_cast<std::uint32_t>(loose_.size());
      }
    } catch (const key::CapExceeded&) {
      result.kind = Kind::kFallback;
    }
    normal_forms_.push_back(result);
    return normal_forms_.size() - 1;
  }

  void add_hashes(const key::Points& points, std::size_t held) {
    const key::Pieces pieces = key::find_pieces(points);
    const std::size_t first = hashes_.size();
    std::size_t count = 1;
    for (std::size_t i = 0; i < held; ++i) count *= weight_count_;
    hashes_.resize(first + count);
    std::vector<int> numbers(held);
    for (std::size_t code = 0; code < count; ++code) {
      std::size_t rest = code;
      unsigned used = 0;
      for (int& number : numbers) {
        number = static_cast<int>(rest % weight_count_);
        used |= 1U << number;
        rest /= weight_count_;
      }
      if (static_cast<std::size_t>(std::popcount(used)) == held)
        hashes_[first + code] = labeller_.hash(points, pieces, numbers);
    }
    loose_.insert(loose_.end(), pieces.loose.begin(), pieces.loose.end());
  }

  // For each order of weights and each section: which of the section's hashes counts.
  void list_codes() {
    codes_.clear();
    for (const std::vector<int>& order : weight_orders_[weight_count_]) {
      for (std::size_t s = 0; s < sections_.count(); ++s) {
        std::size_t code = 0;
        std::size_t scale = 1;
        for (const int weight : sections_.weights(s)) {
          if (in_one_) break;
          code += scale * static_cast<std::size_t>(order[static_cast<std::size_t>(weight)]);
          scale *= weight_count_;
        }
        codes_.push_back(static_cast<std::uint32_t>(code));
      }
    }
  }

  // The sections of the operator side by side, weights in the order with the least hash.
  Answer combine(std::size_t b) {
    forms_.clear();
    bool zero = false;
    bool fallback = false;
    bool loose = false;
    for (const std::size_t first : found_) {
      const std::size_t number = of_section_[first + b];
      if (number == kUnfit) return {Kind::kUnfit, {}};
      const NormalForm& form = normal_forms_[number];
      forms_.push_back(&form);
      zero |= form.kind == Kind::kZero;
      fallback |= form.kind == Kind::kFallback;
      loose |= form.end_loose > form.first_loose;
    }
    if (zero) return {Kind::kZero, {}};
    if (fallback) return {Kind::kFallback, {}};
    Answer answer;
    bool first_order = true;
    const std::uint32_t* code = codes_.data();
    for (const std::vector<int>& order : weight_orders_[weight_count_]) {
      Hash128 sum;
      for (const NormalForm* form : forms_) add_to(sum, hashes_[form->first_hash + *code++]);
      if (loose && !add_loose(sum, order)) return {Kind::kFallback, {}};
      if (first_order || sum < answer.hash) answer.hash = sum;
      first_order = false;
    }
    return answer;
  }

  // Of digits that only weights see, the product counts: for each set of weights that see them. False
  // when that does not fit in 64 bits.
  bool add_loose(Hash128& sum, const std::vector<int>& order) {
    std::array<key::Integer, std::size_t{1} << kMaxOrderedWeights> product;
    const std::size_t sets = std::size_t{1} << weight_count_;
    std::fill_n(product.begin(), sets, 1);
    for (std::size_t s = 0; s < forms_.size(); ++s) {
      const auto weights = sections_.weights(s);
      for (std::size_t i = forms_[s]->first_loose; i < forms_[s]->end_loose; ++i) {
        std::size_t seen = 0;
        for (std::size_t w = 0; w < weights.size(); ++w) {
          if (loose_[i].weights >> w & 1)
            seen |= std::size_t{1} << order[static_cast<std::size_t>(weights[w])];
        }
        if (__builtin_mul_overflow(product[seen], loose_[i].extent, &product[seen])) return false;
      }
    }
    static const Hasher kStart("loose");
    for (std::size_t seen = 0; seen < sets; ++seen) {
      if (product[seen] == 1) continue;
      Hasher hasher = kStart;
      add_to(sum, hasher.add(std::uint64_t{seen}).add(product[seen]).finish());
    }
    return true;
  }

  static constexpr std::uint32_t kUnfit = static_cast<std::uint32_t>(-1);

  VariablesPtr variables_;
  std::vector<Hash128> binding_hashes_;
  std::vector<Values> bindings_;
  std::vector<std::vector<std::vector<int>>> weight_orders_;
  std::vector<Hasher> starts_;
  KeyCounts counts_;

  // The table of the operator at hand: its variables' places in variables_, bindings in its order.
  VariablesPtr op_variables_;
  std::vector<std::size_t> place_;
  std::vector<Values> op_bindings_;
  // Sizes have numbers by first use; their values by number and binding.
  HashIndex sizes_;
  std::vector<key::Integer> size_values_;
  std::vector<key::Integer> new_values_;

  // The operator at hand.
  const Graph* graph_ = nullptr;
  std::optional<Hash128> structure_;
  bool in_one_ = false;
  std::size_t weight_count_ = 0;
  std::vector<std::uint64_t> output_words_;
  std::vector<std::uint64_t> step_words_;
  std::vector<std::uint64_t> shape_now_;
  std::vector<std::uint64_t> shape_words_;
  std::vector<Hash128> shape_hashes_;
  key::Sections sections_;
  std::vector<std::size_t> found_;
  std::vector<const NormalForm*> forms_;
  std::vector<std::uint32_t> codes_;

  // The section at hand: the numbers of its extents, its values under one binding, by dimension and step.
  std::vector<std::size_t> extent_numbers_;
  key::SectionValues values_;
  std::vector<std::uint64_t> output_values_;
  std::vector<std::uint64_t> step_values_;

  // What is known of sections.
  key::Points points_;
  key::Labeller labeller_;
  HashIndex by_section_;
  HashIndex by_values_;
  std::vector<std::uint32_t> of_section_;
  std::vector<NormalForm> normal_forms_;
  std::vector<Hash128> hashes_;
  std::vector<key::Pieces::Loose> loose_;
};

Keyer::Keyer(VariablesPtr variables, std::vector<Values> bindings)
    : table_(std::make_unique<Table>(std::move(variables), std::move(bindings))) {}
Keyer::Keyer(Keyer&&) noexcept = default;
Keyer& Keyer::operator=(Keyer&&) noexcept = default;
Keyer::~Keyer() = default;

Hash128 Keyer::key(const Operator& op) {
  return table_->key(op.graph(), op.input(), op.match(), 0, &op);
}

Hash128 Keyer::key(const Graph& graph, const Shape& input, std::span<const CoordinateId> match,
                   std::uint64_t mirrored) {
  return table_->key(graph, input, match, mirrored, nullptr);
}

const KeyCounts& Keyer::counts() const {
  return table_->counts();
}

Hash128 semantic_key(const Operator& op, const std::vector<Values>& bindings) {
  return Keyer(op.variables(), bindings).key(op);
}

std::string key_normal_form(const Operator& op, const Values& values) {
  check_values(*op.variables(), values);
  key::Sections sections;
  sections.read(op.graph(), op.input(), op.match(), true);
  if (sections.count() == 0) return "";
  const key::Section section = sections.section(0);
  const key::SectionValues numbers = key::evaluate(section, op.graph(), values);
  if (!key::fits(section, numbers)) return "unfit\n";
  try {
    key::Points points;
    key::read_points(section, numbers, points);
    normalise(points);
    return points.masked ? "zero\n" : key::normal_form_text(points, key::Labeller().label(points));
  } catch (const key::CapExceeded& exceeded) {
    return std::string("fallback: ") + exceeded.cap + "\n";
  }
}

}  // namespace syno
