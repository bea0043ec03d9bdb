#include "syno/key/section.h"

#include <algorithm>

#include "syno/support/at.h"
#include "syno/support/mix.h"

namespace syno::key {
namespace {

// A bit that the number of a dimension does not reach.
constexpr std::uint64_t kMirrored = std::uint64_t{1} << 32;

std::uint64_t step_colour(const Step& step, const Variables& variables) {
  const auto amount = static_cast<std::uint64_t>(static_cast<std::int64_t>(step.amount));
  return mix_words(mix_words(static_cast<std::uint64_t>(step.primitive), step.size.hash(variables)),
                   amount * 2 + (step.causal ? 1 : 0));
}

// Marks what is known when the marked coordinates are, at unmasked points.
void close(const Section& section, std::vector<char>& known) {
  const auto has = [&](int id) -> char& { return known[static_cast<std::size_t>(id)]; };
  for (bool changed = true; changed;) {
    changed = false;
    const auto learn = [&](int id) {
      if (has(id)) return;
      has(id) = 1;
      changed = true;
    };
    for (const Section::Unit& step : section.units) {
      const PrimitiveInfo& info = primitive_info(step.primitive);
      // Unused places are known: all that is consumed, or all that is made, is known when both places are.
      const auto both = [&](const auto& places) {
        return (places[0] < 0 || has(places[0])) && (places[1] < 0 || has(places[1]));
      };
      const auto learn_both = [&](const auto& places) {
        for (const int id : places) {
          if (id >= 0) learn(id);
        }
      };
      switch (info.relation) {
        case Relation::kOnto:
        case Relation::kOneToOne:
          if (both(step.in)) learn_both(step.out);
          if (both(step.out)) learn_both(step.in);
          break;
        case Relation::kSum:
          if (has(step.in[0]) && has(step.in[1])) learn(step.out[0]);
          if (has(step.out[0]) && has(step.in[1])) learn(step.in[0]);
          if (has(step.out[0]) && has(step.in[0])) learn(step.in[1]);
          break;
        case Relation::kNone: break;
      }
    }
  }
}

// The coordinates that tell what `dims` tell, as few and as early in the section as possible.
std::vector<int> independent_coordinates(const Section& section, const std::vector<int>& dims) {
  std::vector<char> known(section.coordinates.size(), 0);
  for (const int id : dims) known[static_cast<std::size_t>(id)] = 1;
  close(section, known);
  std::vector<char> kept = known;
  for (std::size_t id = known.size(); id-- > 0;) {
    if (!known[id]) continue;
    kept[id] = 0;
    std::vector<char> told = kept;
    close(section, told);
    if (!told[id]) kept[id] = 1;
  }
  std::vector<int> result;
  for (std::size_t id = 0; id < kept.size(); ++id) {
    if (kept[id]) result.push_back(static_cast<int>(id));
  }
  return result;
}

}  // namespace

void Sections::read(const Graph& graph, const Shape& input, std::span<const CoordinateId> match,
                    bool in_one, std::uint64_t mirrored) {
  mirrored_ = mirrored;
  graph_ = &graph;
  input_ = &input;
  match_ = match;
  find_sections(in_one);
  rank_.assign(graph.coordinates().size(), -1);
  number_.assign(graph.coordinates().size(), -1);
  ranks_ = 0;
  for (std::size_t d = 0; d < graph.output().size(); ++d) number(static_cast<CoordinateId>(d));
  order_steps();
  list_units();
  list_weights();
}

int Sections::find(int coordinate) {
  while (parent_[at(coordinate)] != coordinate) {
    int& parent = parent_[at(coordinate)];
    parent = parent_[at(parent)];
    coordinate = parent;
  }
  return coordinate;
}

void Sections::unite(CoordinateId a, CoordinateId b) {
  if (a == kNoCoordinate || b == kNoCoordinate) return;
  const int root_a = find(a);
  const int root_b = find(b);
  parent_[at(std::max(root_a, root_b))] = std::min(root_a, root_b);
}

void Sections::find_sections(bool in_one) {
  const auto count = static_cast<int>(graph_->coordinates().size());
  parent_.resize(at(count));
  for (int i = 0; i < count; ++i) parent_[at(i)] = in_one ? 0 : i;
  for (const Step& step : graph_->steps()) {
    if (in_one || step.info().produces == 0) continue;
    unite(step.in[0], step.in[1]);
    unite(step.in[0], step.out[0]);
    unite(step.in[0], step.out[1]);
  }
  section_of_.resize(at(count));
  section_sizes_.clear();
  for (int i = 0; i < count; ++i) {
    const int root = find(i);
    if (root == i) {
      section_of_[at(i)] = static_cast<int>(section_sizes_.size());
      section_sizes_.push_back(0);
    } else {
      section_of_[at(i)] = section_of_[at(root)];
    }
  }
}

void Sections::number(CoordinateId id) {
  rank_[at(id)] = ranks_++;
  number_[at(id)] = section_sizes_[at(section_of_[at(id)])]++;
}

// By size, look-alikes of one section by what they are used for.
void Sections::order_reductions() {
  const auto& steps = graph_->steps();
  const auto less = [&](int a, int b) {
    const Size& size_a = steps[at(a)].size;
    const Size& size_b = steps[at(b)].size;
    return size_a != size_b ? size_a < size_b : a < b;
  };
  std::sort(reductions_.begin(), reductions_.end(), less);
  bool look_alikes = false;
  for (std::size_t i = 0; i + 1 < reductions_.size(); ++i) {
    for (std::size_t j = i + 1; j < reductions_.size(); ++j) {
      const Step& a = steps[at(reductions_[i])];
      const Step& b = steps[at(reductions_[j])];
      look_alikes |= a.size == b.size && section_of_[at(a.out[0])] == section_of_[at(b.out[0])];
    }
  }
  if (!look_alikes) return;
  const std::vector<std::uint64_t> colours = use_colours();
  std::sort(reductions_.begin(), reductions_.end(), [&](int a, int b) {
    const Size& size_a = steps[at(a)].size;
    const Size& size_b = steps[at(b)].size;
    const std::uint64_t colour_a = colours[at(steps[at(a)].out[0])];
    const std::uint64_t colour_b = colours[at(steps[at(b)].out[0])];
    return size_a != size_b ? size_a < size_b : colour_a != colour_b ? colour_a < colour_b : a < b;
  });
}

// By coordinate: what becomes of it inside its section.
std::vector<std::uint64_t> Sections::use_colours() const {
  const Variables& variables = *graph_->variables();
  const std::size_t count = graph_->coordinates().size();
  std::vector<std::uint64_t> made(count, 0);
  for (std::size_t d = 0; d < graph_->output().size(); ++d) made[d] = mix_words(1, d);
  std::vector<std::uint64_t> colours;
  for (const Step& step : graph_->steps()) {
    colours.push_back(step_colour(step, variables));
    if (step.info().produces == 0) continue;
    std::uint64_t colour = colours.back();
    for (const CoordinateId in : step.in) colour = mix_words(colour, in < 0 ? 0 : made[at(in)]);
    for (std::size_t i = 0; i < 2; ++i) {
      if (step.out[i] >= 0) made[at(step.out[i])] = mix_words(colour, i);
    }
  }
  // Uses are summed, so that their order does not matter.
  std::vector<std::uint64_t> used(count, 0);
  for (std::size_t d = 0; d < match_.size(); ++d) used[at(match_[d])] += mix_words(2, d);
  for (const Weight& weight : graph_->weights()) {
    for (const CoordinateId id : weight.dims) {
      std::uint64_t beside = 0;
      for (const CoordinateId other : weight.dims) {
        if (section_of_[at(other)] == section_of_[at(id)]) beside += mix_words(3, made[at(other)]);
      }
      used[at(id)] += mix_words(beside, made[at(id)]);
    }
  }
  for (std::size_t s = graph_->steps().size(); s-- > 0;) {
    const Step& step = graph_->steps()[s];
    if (step.info().produces == 0) continue;
    std::uint64_t colour = colours[s];
    for (const CoordinateId out : step.out) colour = mix_words(colour, out < 0 ? 0 : used[at(out)]);
    for (std::size_t i = 0; i < 2; ++i) {
      if (step.in[i] < 0) continue;
      const CoordinateId other = step.in[1 - i];
      used[at(step.in[i])] += mix_words(mix_words(colour, i), other < 0 ? 0 : made[at(other)]);
    }
  }
  return used;
}

// Reductions first; then always the step that can be taken and comes first: by primitive, then by the
// places of what it takes. Inside a section the order is the one it would have alone.
void Sections::order_steps() {
  const auto& steps = graph_->steps();
  reductions_.clear();
  waiting_.clear();
  order_.clear();
  for (std::size_t s = 0; s < steps.size(); ++s) {
    if (steps[s].info().produces == 0) continue;
    const bool reduction = steps[s].is_reduction();
    (reduction ? reductions_ : waiting_).push_back(static_cast<int>(s));
  }
  order_reductions();
  for (const int s : reductions_) {
    order_.push_back(s);
    number(steps[at(s)].out[0]);
  }
  const auto place = [&](CoordinateId id) { return id < 0 ? 0 : rank_[at(id)]; };
  while (!waiting_.empty()) {
    std::size_t best = waiting_.size();
    std::array<int, 3> best_key{};
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      const Step& step = steps[at(waiting_[i])];
      const std::array<int, 3> key{static_cast<int>(step.primitive), place(step.in[0]),
                                   place(step.in[1])};
      if (key[1] < 0 || key[2] < 0 || (best < waiting_.size() && best_key < key)) continue;
      best = i;
      best_key = key;
    }
    const int taken = waiting_[best];
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(best));
    order_.push_back(taken);
    for (const CoordinateId out : steps[at(taken)].out) {
      if (out >= 0) number(out);
    }
  }
}

void Sections::list_units() {
  const auto section_of = [&](int step) {
    return at(section_of_[at(graph_->steps()[at(step)].out[0])]);
  };
  ranges_.assign(section_sizes_.size(), {});
  for (const int step : order_) ++ranges_[section_of(step)].units_end;
  std::size_t end = 0;
  for (Range& range : ranges_) {
    range.units = end;
    end += range.units_end;
    range.units_end = range.units;
  }
  units_.resize(order_.size());
  for (const int step : order_) units_[ranges_[section_of(step)].units_end++] = step;
}

void Sections::list_weights() {
  holdings_.clear();
  numbers_.clear();
  const auto& weights = graph_->weights();
  for (std::size_t w = 0; w < weights.size(); ++w) {
    const std::size_t first_of_weight = holdings_.size();
    for (const CoordinateId id : weights[w].dims) {
      const int section = section_of_[at(id)];
      bool known = false;
      for (std::size_t h = first_of_weight; h < holdings_.size(); ++h)
        known |= holdings_[h].section == section;
      if (known) continue;
      Holding holding{section, static_cast<int>(w), numbers_.size(), 0};
      for (const CoordinateId other : weights[w].dims) {
        if (section_of_[at(other)] == section) numbers_.push_back(number_[at(other)]);
      }
      holding.end = numbers_.size();
      std::sort(numbers_.begin() + static_cast<std::ptrdiff_t>(holding.first), numbers_.end());
      holdings_.push_back(holding);
    }
  }
  std::sort(holdings_.begin(), holdings_.end(), [&](const Holding& a, const Holding& b) {
    if (a.section != b.section) return a.section < b.section;
    const auto held_a = held(a);
    const auto held_b = held(b);
    const auto order = std::lexicographical_compare_three_way(held_a.begin(), held_a.end(),
                                                              held_b.begin(), held_b.end());
    return order != 0 ? order < 0 : a.weight < b.weight;
  });
  holding_weights_.clear();
  for (std::size_t h = 0; h < holdings_.size(); ++h) {
    Range& range = ranges_[at(holdings_[h].section)];
    if (range.weights_end == 0) range.weights = h;
    range.weights_end = h + 1;
    holding_weights_.push_back(holdings_[h].weight);
  }
}

std::span<const int> Sections::held(const Holding& holding) const {
  return {numbers_.data() + holding.first, holding.end - holding.first};
}

std::span<const int> Sections::weights(std::size_t s) const {
  const Range& range = ranges_[s];
  return {holding_weights_.data() + range.weights, range.weights_end - range.weights};
}

Hash128 Sections::hash(std::size_t s, const SizeWords& sizes, Hasher hasher) const {
  const auto section = static_cast<int>(s);
  const Range& range = ranges_[s];
  const std::size_t outputs = graph_->output().size();
  const auto number = [&](CoordinateId id) {
    return static_cast<std::uint64_t>(id < 0 ? 0 : number_[at(id)] + 1);
  };
  // A list of dimensions ends with 0, all others begin with their length.
  for (std::size_t d = 0; d < outputs; ++d) {
    if (section_of_[d] != section) continue;
    const bool unordered = graph_->output()[d].unordered;
    hasher.add(std::uint64_t{d + 1} * 2 + (unordered ? 1 : 0) +
               (is_mirrored(d) && !unordered ? kMirrored : 0));
    hasher.add(sizes.outputs[d]);
  }
  hasher.add(std::uint64_t{0}).add(std::uint64_t{range.units_end - range.units});
  for (std::size_t i = range.units; i < range.units_end; ++i) {
    const Step& step = graph_->steps()[at(units_[i])];
    hasher.add(number(step.in[0]) << 40 | number(step.in[1]) << 16 |
               static_cast<std::uint64_t>(step.primitive) << 8 | (step.causal ? 1U : 0U));
    if (step.info().argument == Argument::kAmount) hasher.add(step.amount);
    if (!step.size.is_one()) hasher.add(sizes.steps[at(units_[i])]);
  }
  for (std::size_t d = 0; d < match_.size(); ++d) {
    if (section_of_[at(match_[d])] != section) continue;
    const bool unordered = (*input_)[d].unordered;
    hasher.add((outputs + d + 1) * 2 + (unordered ? 1 : 0) +
               (is_mirrored(outputs + d) && !unordered ? kMirrored : 0));
    hasher.add(number(match_[d]));
  }
  hasher.add(std::uint64_t{0});
  for (std::size_t h = range.weights; h < range.weights_end; ++h) {
    const auto dims = held(holdings_[h]);
    hasher.add(std::uint64_t{dims.size()});
    for (const int dim : dims) hasher.add(dim);
  }
  return hasher.finish();
}

Section Sections::section(std::size_t s) const {
  Section result;
  const auto mine = static_cast<int>(s);
  result.coordinates.resize(at(section_sizes_[s]));
  for (std::size_t id = 0; id < number_.size(); ++id) {
    if (section_of_[id] == mine)
      result.coordinates[at(number_[id])] = static_cast<CoordinateId>(id);
  }
  const auto outputs = static_cast<int>(graph_->output().size());
  for (int d = 0; d < outputs; ++d) {
    if (section_of_[at(d)] == mine)
      result.outputs.push_back(
          {d, graph_->output()[at(d)].unordered, number_[at(d)], is_mirrored(at(d))});
  }
  for (std::size_t d = 0; d < match_.size(); ++d) {
    if (section_of_[at(match_[d])] == mine)
      result.inputs.push_back({outputs + static_cast<int>(d), (*input_)[d].unordered,
                               number_[at(match_[d])], is_mirrored(at(outputs) + d)});
  }
  for (const auto* dims : {&result.outputs, &result.inputs}) {
    for (const Section::Dim& dim : *dims) {
      if (dim.unordered) result.partitions.push_back({dim.slot, {dim.coordinate}});
    }
  }
  const auto number = [&](CoordinateId id) { return id < 0 ? -1 : number_[at(id)]; };
  const Range& range = ranges_[s];
  for (std::size_t i = range.units; i < range.units_end; ++i) {
    const Step& step = graph_->steps()[at(units_[i])];
    result.units.push_back({step.primitive,
                            {number(step.in[0]), number(step.in[1])},
                            {number(step.out[0]), number(step.out[1])},
                            step.amount,
                            step.causal,
                            units_[i]});
  }
  for (std::size_t h = range.weights; h < range.weights_end; ++h) {
    const auto dims = held(holdings_[h]);
    result.partitions.push_back({kWeightSlot, {dims.begin(), dims.end()}});
    ++result.weights;
  }
  for (Section::Told& told : result.partitions)
    told.coordinates = independent_coordinates(result, told.coordinates);
  return result;
}

}  // namespace syno::key
