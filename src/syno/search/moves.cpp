#include "syno/search/moves.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "syno/support/at.h"
#include "syno/support/error.h"

namespace syno {
namespace {

// Steps on the coordinates of the operator that is changed, and on new ones. They may make no operator.
struct Sketch {
  std::vector<Step> reductions;
  std::vector<Step> steps;
  std::vector<CoordinateId> match;
};

void remove_index(Step& contraction, CoordinateId id) {
  const auto* place = std::find_if(contraction.dims.begin(), contraction.dims.end(),
                                   [id](const WeightDim& dim) { return dim.coordinate == id; });
  if (place != contraction.dims.end()) contraction.dims.erase(place);
}

bool keeps(const Step& step, CoordinateId id) {
  const WeightDim kept{id, WeightRole::kKeep};
  return std::find(step.dims.begin(), step.dims.end(), kept) != step.dims.end();
}

// Whoever reads `from` after step `place` reads `to`.
void read_instead(Sketch& sketch, std::size_t place, CoordinateId from, CoordinateId to) {
  for (std::size_t s = place + 1; s < sketch.steps.size(); ++s) {
    std::replace(sketch.steps[s].in.begin(), sketch.steps[s].in.end(), from, to);
    for (WeightDim& dim : sketch.steps[s].dims)
      if (dim.coordinate == from) dim.coordinate = to;
  }
  std::replace(sketch.match.begin(), sketch.match.end(), from, to);
}

class Moves {
 public:
  Moves(const Operator& op, const Coefficients& sizes, const MoveOptions& options)
      : options_(options), sizes_(sizes), original_(op), op_(op.in_table(table(op))) {
    for (const Step& step : graph().steps())
      (step.is_reduction() ? whole_.reductions : whole_.steps).push_back(step);
    whole_.match = op_.match();
    for (std::size_t id = 0; id < graph().coordinates().size(); ++id)
      names_.push_back(graph().name(static_cast<CoordinateId>(id)));
    // A value that the operator has beats the usual one, which keeps its place.
    known_ = {{options.factor, options.usual_factor}, {options.window, options.usual_window}};
    for (const auto& [name, value] : sizes) {
      const auto has_name = [&name = name](const auto& each) { return each.first == name; };
      const auto known = std::find_if(known_.begin(), known_.end(), has_name);
      if (known == known_.end()) {
        known_.emplace_back(name, value);
      } else {
        known->second = value;
      }
    }
  }

  std::vector<MovedOperator> all() {
    change_values();
    change_indices();
    change_reductions();
    change_windows();
    dilate();
    return std::move(found_);
  }

 private:
  const Graph& graph() const { return op_.graph(); }
  CoordinateId new_reduction() const {
    return static_cast<CoordinateId>(graph().coordinates().size());
  }
  CoordinateId new_view() const { return static_cast<CoordinateId>(new_reduction() + 1); }

  // The variables of the operator and those that moves may need, as far as a table has place.
  VariablesPtr table(const Operator& op) const {
    std::set<std::string> names(op.variables()->names().begin(), op.variables()->names().end());
    const auto add = [&](const std::string& name) {
      if (names.size() < kMaxVariables) names.insert(name);
    };
    add(options_.factor);
    add(options_.window);
    for (const auto& [name, value] : sizes_) add(name);
    return Variables::make({names.begin(), names.end()});
  }

  // The variable as a size; 1, with which no step can be taken, where the table has no place for it.
  Size variable(const std::string& name, int power = 1) const {
    const auto index = op_.variables()->find(name);
    return index ? Size::variable(*index, power) : Size();
  }

  void add(const Sketch& sketch) {
    std::optional<Operator> made = operator_of(sketch);
    if (!made) return;
    Coefficients sizes;
    for (const auto& each : known_)
      if (made->variables()->find(each.first)) sizes.push_back(each);
    found_.push_back({*std::move(made), std::move(sizes)});
  }

  // The operator that the steps make; nothing where they make none.
  std::optional<Operator> operator_of(const Sketch& sketch) const {
    Graph made = graph().root();
    std::vector<CoordinateId> now(graph().coordinates().size() + 2, kNoCoordinate);
    std::iota(now.begin(), now.begin() + static_cast<std::ptrdiff_t>(made.output().size()),
              CoordinateId{0});
    const auto take = [&](Step step) {
      const auto out = step.out;
      for (CoordinateId& id : step.in)
        if (id != kNoCoordinate) id = now[at(id)];
      for (WeightDim& dim : step.dims) dim.coordinate = now[at(dim.coordinate)];
      const Step& taken = made.apply(std::move(step));
      for (std::size_t i = 0; i < out.size(); ++i)
        if (out[i] != kNoCoordinate) now[at(out[i])] = taken.out[i];
    };
    try {
      for (const Step& step : sketch.reductions) take(step);
      for (const Step& step : sketch.steps) take(step);
      std::vector<CoordinateId> match;
      for (const CoordinateId id : sketch.match) match.push_back(now[at(id)]);
      return Operator(made, op_.input(), std::move(match));
    } catch (const UserError&) {
      return std::nullopt;
    }
  }

  // One coefficient is twice or half as large, or a window has another size.
  void change_values() {
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      const auto& [name, value] = sizes_[i];
      std::vector<std::int64_t> others = options_.windows;
      if (name != options_.window) others = {2 * value, value / 2};
      for (const std::int64_t other : others) {
        if (other == value || other < options_.smallest || other > options_.largest) continue;
        found_.push_back({original_, sizes_});
        found_.back().sizes[i].second = other;
      }
    }
  }

  // A weight has one index more or less.
  void change_indices() {
    // Of the output's dimensions, those that a weight has: others are positions.
    std::set<CoordinateId> there;
    for (const Step& step : whole_.steps)
      for (const WeightDim& dim : step.dims)
        if (graph().is_iterator(dim.coordinate)) there.insert(dim.coordinate);
    for (const Step& step : whole_.reductions) there.insert(step.out[0]);
    for (std::size_t place = 0; place < whole_.steps.size(); ++place) {
      const Step& step = whole_.steps[place];
      for (const CoordinateId id : step.in) there.erase(id);
      for (const CoordinateId id : step.out)
        if (id != kNoCoordinate) there.insert(id);
      if (!step.is_contraction()) continue;
      std::map<std::string, CoordinateId> others;
      for (const CoordinateId id : there) others.emplace(names_[at(id)], id);
      for (const WeightDim& dim : step.dims) {
        if (dim.role == WeightRole::kKeep && step.dims.size() > 1)
          add(without_index(place, dim.coordinate));
        others.erase(names_[at(dim.coordinate)]);
      }
      for (const auto& [name, id] : others) add(with_index(place, id));
      for (const WeightDim& dim : step.dims)
        if (dim.role != WeightRole::kKeep) there.erase(dim.coordinate);
    }
  }

  Sketch with_index(std::size_t place, CoordinateId id) const {
    Sketch sketch = whole_;
    sketch.steps[place].dims.push_back({id, WeightRole::kKeep});
    return sketch;
  }

  Sketch without_index(std::size_t place, CoordinateId id) const {
    Sketch sketch = whole_;
    remove_index(sketch.steps[place], id);
    const auto before = whole_.steps.begin() + static_cast<std::ptrdiff_t>(place);
    if (std::any_of(whole_.steps.begin(), before, [id](const Step& s) { return keeps(s, id); }))
      return sketch;
    // The weight that joins it on this one is now the first that has it.
    for (Step& step : sketch.steps)
      for (WeightDim& dim : step.dims)
        if (dim == WeightDim{id, WeightRole::kJoin}) dim.role = WeightRole::kDrop;
    return sketch;
  }

  // A reduction is divided by one coefficient more, or lacks a factor.
  void change_reductions() {
    std::set<std::string> coefficients{options_.factor};
    for (const auto& [name, value] : sizes_) coefficients.insert(name);
    coefficients.erase(options_.window);
    for (std::size_t place = 0; place < whole_.reductions.size(); ++place) {
      const Size size = whole_.reductions[place].size;
      if (is_coefficient(size)) continue;  // a move that changes its value changes it as well
      for (std::size_t v = 0; v < op_.variables()->count(); ++v) {
        const int power = size.power(v);
        if (power != 0) add(with_size(place, size * Size::variable(v, -power)));
      }
      for (const std::string& name : coefficients) {
        const auto v = op_.variables()->find(name);
        if (v && size.power(*v) == 0) add(with_size(place, size * Size::variable(*v, -1)));
      }
    }
  }

  bool is_coefficient(const Size& size) const {
    return size == variable(options_.window) ||
           std::any_of(sizes_.begin(), sizes_.end(),
                       [&](const auto& each) { return size == variable(each.first); });
  }

  Sketch with_size(std::size_t place, const Size& size) const {
    Sketch sketch = whole_;
    sketch.reductions[place].size = size;
    return sketch;
  }

  // Without one of the windows, and with one more along a dimension of the map.
  void change_windows() {
    for (std::size_t place = 0; place < whole_.steps.size(); ++place) {
      const Step& step = whole_.steps[place];
      if (step.info().slides() && graph().is_reduction(step.in[1])) add(without_window(place));
    }
    for (const CoordinateId id : whole_.match) {
      if (!graph().is_iterator(id) || id == 0) continue;
      for (std::size_t place = 0; place < whole_.steps.size(); ++place)
        if (whole_.steps[place].is_contraction()) add(with_window(place, id));
    }
  }

  Sketch without_window(std::size_t place) const {
    Sketch sketch = bypassing(place);
    const CoordinateId window = whole_.steps[place].in[1];
    std::erase_if(sketch.reductions, [window](const Step& s) { return s.out[0] == window; });
    for (Step& step : sketch.steps) remove_index(step, window);
    return sketch;
  }

  Sketch with_window(std::size_t place, CoordinateId along) const {
    Sketch sketch = with_index(place, new_reduction());
    Step reduce = Step::reduce(variable(options_.window));
    reduce.out[0] = new_reduction();
    sketch.reductions.push_back(std::move(reduce));
    Step unfold = Step::unfold(along, new_reduction());
    unfold.out[0] = new_view();
    sketch.steps.push_back(std::move(unfold));
    std::replace(sketch.match.begin(), sketch.match.end(), along, new_view());
    return sketch;
  }

  // A window is dilated by a coefficient, or what is scaled is not scaled any more.
  void dilate() {
    for (std::size_t place = 0; place < whole_.steps.size(); ++place) {
      const Step& step = whole_.steps[place];
      if (step.info().slides() && graph().is_reduction(step.in[1])) add(dilated(place));
      if (step.info().scales()) add(bypassing(place));
    }
  }

  Sketch dilated(std::size_t place) const {
    Sketch sketch = whole_;
    Step stride = Step::stride(whole_.steps[place].in[1], variable(options_.factor));
    stride.out[0] = new_view();
    sketch.steps[place].in[1] = new_view();
    sketch.steps.insert(sketch.steps.begin() + static_cast<std::ptrdiff_t>(place),
                        std::move(stride));
    return sketch;
  }

  // Without a view: what it made is the first coordinate that it took.
  Sketch bypassing(std::size_t place) const {
    Sketch sketch = whole_;
    const Step& step = whole_.steps[place];
    read_instead(sketch, place, step.out[0], step.in[0]);
    sketch.steps.erase(sketch.steps.begin() + static_cast<std::ptrdiff_t>(place));
    return sketch;
  }

  const MoveOptions& options_;
  const Coefficients& sizes_;
  const Operator& original_;
  /// In the table of all variables that moves need.
  Operator op_;
  Sketch whole_;
  std::vector<std::string> names_;
  Coefficients known_;
  std::vector<MovedOperator> found_;
};

}  // namespace

std::vector<MovedOperator> moved_operators(const Operator& op, const Coefficients& sizes,
                                           const MoveOptions& options) {
  return Moves(op, sizes, options).all();
}

}  // namespace syno
