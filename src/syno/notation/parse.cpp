#include "syno/notation/parse.h"

#include <algorithm>
#include <set>

#include "syno/graph/canonical.h"
#include "syno/notation/recognise.h"
#include "syno/notation/resolve.h"
#include "syno/notation/witness.h"
#include "syno/support/error.h"
#include "syno/support/interrupt.h"
#include "syno/support/text.h"

namespace syno {
namespace notation {
namespace {

constexpr std::int64_t kMaxChoices = 200'000;
constexpr int kMaxGraphs = 200;

enum class RootKind : std::uint8_t { kData, kCondition, kWeight };

// One index of the text and the node that it is.
struct Root {
  RootKind kind = RootKind::kData;
  /// Which weight; which dimension of it or of x.
  std::size_t tensor = 0;
  std::size_t dim = 0;
  Index index;
  std::vector<NodeId> options;
};

// Graph, matching and weights in the order of the text.
struct Assembled {
  Graph graph;
  std::vector<CoordinateId> match;
  /// By leaf.
  std::vector<CoordinateId> leaves;
  /// contracted[i] is the weight of the text that step i contracts; dims are its coordinates in the text's order.
  std::vector<std::size_t> contracted;
  std::vector<std::vector<CoordinateId>> dims;
};

// How freely a text is read; the strictest way that gives an operator is taken.
struct Readings {
  /// Reading a weight bounds a window, although the text does not say how large a weight is.
  bool weights_bound = false;
  /// Sizes such as 1/k.
  bool any_size = false;
};

class Assembler {
 public:
  Assembler(Meaning& meaning, Readings readings)
      : meaning_(meaning),
        allowed_(readings),
        recogniser_(recognise({.every_window_is_bounded = false, .any_size = readings.any_size})) {}

  /// Nothing where the text has no reading whose sizes could be legal. Throws UserError where it has none at all.
  std::optional<ParsedFormula> run() {
    collect();
    try {
      choose(0);
    } catch (const TooManyReadings&) {
      if (!assembled_) too_many();
    }
    if (!assembled_) refuse();
    if (allowed_.any_size && cost_ >= kNeverLegal) return std::nullopt;
    return finish();
  }

 private:
  const FormulaText& text() const { return meaning_.source; }
  Recogniser& nodes() { return recogniser_; }

  Recogniser recognise(RecogniserOptions options) {
    std::map<FormId, std::optional<Size>> bounds;
    const auto bound = [&](const Index& index) {
      const auto [place, added] = bounds.emplace(index.form, index.extent);
      if (!added && !place->second) place->second = index.extent;
    };
    for (const Index& index : meaning_.data) bound(index);
    for (const Index& index : meaning_.conditions) bound(index);
    for (const Meaning::Weight& weight : meaning_.weights) {
      if (!allowed_.weights_bound) break;
      for (const Index& index : weight.indices) bound(index);
    }
    std::vector<Size> extents;
    for (const Leaf& leaf : meaning_.leaves) extents.push_back(*leaf.extent);
    return {meaning_.forms, std::move(extents), std::move(bounds), options};
  }

  // The readings of each index that can stand by themselves.
  void collect() {
    try {
      for (std::size_t d = 0; d < meaning_.data.size(); ++d)
        roots_.push_back({RootKind::kData, 0, d, meaning_.data[d], {}});
      for (const Index& condition : meaning_.conditions) {
        if (!always_inside(condition))
          roots_.push_back({RootKind::kCondition, 0, 0, condition, {}});
      }
      for (std::size_t w = 0; w < meaning_.weights.size(); ++w) {
        for (std::size_t d = 0; d < meaning_.weights[w].indices.size(); ++d)
          roots_.push_back({RootKind::kWeight, w, d, meaning_.weights[w].indices[d], {}});
      }
      for (Root& root : roots_) {
        for (const NodeId id : nodes().readings(root.index.form)) {
          // What is made of a weight's coordinate may carry a window to x: the whole graph says.
          if (nodes().pending(id) && root.kind != RootKind::kWeight) continue;
          if (root.index.extent && *root.index.extent != nodes().extent(id)) continue;
          root.options.push_back(id);
        }
        if (root.options.empty()) refuse_index(root);
        const bool open =
            root.kind == RootKind::kWeight ? allowed_.weights_bound : !root.index.extent;
        if (open) refuse_unknown_extent(root);
      }
    } catch (const TooManyReadings&) {
      too_many();
    }
  }

  // The text does not say how large a weight, a stage or x is: where a window reads it, that must follow.
  void refuse_unknown_extent(const Root& root) {
    std::set<Size> extents;
    for (const NodeId id : root.options) {
      if (nodes().has_window(id)) extents.insert(nodes().extent(id));
    }
    if (extents.size() < 2) return;
    std::vector<std::string> texts;
    for (const Size& extent : extents) texts.push_back(extent.text(*meaning_.variables));
    text().fail("index '" + root.index.text + "' of " + tensor_text(root) + " could run up to " +
                    join(texts, " or "),
                root.index.begin,
                "a condition, such as where 0 <= " + root.index.text + " < " + texts.front());
  }

  bool always_inside(const Index& condition) {
    for (const NodeId id : nodes().readings(condition.form)) {
      if (!nodes().has_window(id) &&
          (!condition.extent || *condition.extent == nodes().extent(id))) {
        return true;
      }
    }
    return false;
  }

  // What takes a node out of the frontier: both results of a Merge are one.
  int consumer(const Node& node) {
    Node kind = node;
    if (kind.kind == NodeKind::kRemainder) kind.kind = NodeKind::kQuotient;
    return consumers_.emplace(kind, static_cast<int>(consumers_.size())).first->second;
  }

  // Marks everything under `id` as used; false where something is consumed in two ways.
  bool claim(NodeId id, std::vector<NodeId>& claimed) {
    if (used_.contains(id)) return true;
    used_.emplace(id, kFree);
    claimed.push_back(id);
    const Node node = nodes().at(id);
    for (const NodeId below : {node.a, node.b}) {
      if (below == kNoNode) continue;
      if (!claim(below, claimed)) return false;
      if (!consume(below, consumer(node))) return false;
    }
    return true;
  }
  bool consume(NodeId id, int by) {
    int& now = used_.at(id);
    if (now != kFree && now != by) {
      twice_ = id;
      return false;
    }
    if (now == kFree) {
      now = by;
      consumed_.push_back(id);
    }
    return true;
  }

  void choose(std::size_t next) {
    if (found_) return;
    if (++choices_ > kMaxChoices) throw TooManyReadings{};
    if (choices_ % 16 == 0) check_interrupt();
    if (next == roots_.size()) {
      ++graphs_;
      std::optional<Assembled> made = assemble();
      if (!made) return;
      const int cost = cost_of(made->graph);
      if (!assembled_ || cost < cost_) {
        assembled_ = std::move(made);
        final_ = chosen_;
        cost_ = cost;
      }
      found_ = cost_ == 0 || graphs_ >= kMaxGraphs;
      return;
    }
    Root& root = roots_[next];
    for (const NodeId id : root.options) {
      std::vector<NodeId> claimed;
      const std::size_t consumed = consumed_.size();
      bool fits = claim(id, claimed);
      if (fits && root.kind == RootKind::kData) fits = consume(id, -2 - static_cast<int>(root.dim));
      if (fits) {
        chosen_.push_back(id);
        choose(next + 1);
        if (found_) return;
        chosen_.pop_back();
      } else if (!failed_at_) {
        failed_at_ = next;
        failed_node_ = twice_;
      }
      while (consumed_.size() > consumed) {
        used_.at(consumed_.back()) = kFree;
        consumed_.pop_back();
      }
      for (const NodeId other : claimed) used_.erase(other);
    }
  }

  // Of readings that compute the same, the one with the fewest quotients of sizes is meant: C/g*a+i divides C by g, not g
  // by C, and is legal for all that the text has a value for.
  int cost_of(const Graph& graph) const {
    int cost = 0;
    const auto add = [&](const Size& size) {
      for (std::size_t v = 0; v < meaning_.variables->count(); ++v)
        cost += std::max(0, -size.power(v));
    };
    for (const Coordinate& coordinate : graph.coordinates()) {
      if (coordinate.step >= 0) add(coordinate.extent);
    }
    for (const Step& step : graph.steps()) add(step.size);
    if (!small_bindings(graph, 2, 1).empty()) return cost;
    return cost + (small_bindings(graph, 1, 1).empty() ? kNeverLegal : kLegalAtOne);
  }

  // Whether a value of `id` outside its extent puts something outside that the text bounds.
  bool carried(NodeId id) {
    if (nodes().bounded(id)) return true;
    for (const auto& [other, by] : used_) {
      const Node& node = nodes().at(other);
      const bool carries = node.kind == NodeKind::kSplit || node.kind == NodeKind::kQuotient ||
                           node.kind == NodeKind::kStride;
      if (carries && node.a == id && carried(other)) return true;
    }
    return false;
  }

  // Takes the steps in an order in which every contraction finds its coordinates in the frontier.
  std::optional<Assembled> assemble() {
    for (const auto& [id, by] : used_) {
      if (nodes().at(id).kind == NodeKind::kWindow && !carried(id)) return std::nullopt;
    }
    Assembled made;
    Shape output;
    for (std::size_t d = 0; d < meaning_.output_rank; ++d) {
      Dimension dim{*meaning_.leaves[d].extent, false, false};
      if (meaning_.output) dim = (*meaning_.output)[d];
      output.push_back(dim);
    }
    made.graph = Graph(meaning_.variables, output);
    std::map<NodeId, CoordinateId> coordinates;
    made.leaves.assign(meaning_.leaves.size(), kNoCoordinate);
    for (std::size_t l = 0; l < meaning_.leaves.size(); ++l) {
      made.leaves[l] = static_cast<CoordinateId>(l);
      if (meaning_.leaves[l].reduction)
        made.leaves[l] = made.graph.apply(Step::reduce(*meaning_.leaves[l].extent)).out[0];
    }
    for (const auto& [id, by] : used_) {
      const Node& node = nodes().at(id);
      if (node.kind == NodeKind::kLeaf)
        coordinates[id] = made.leaves[static_cast<std::size_t>(node.amount)];
    }
    // Which weights hold each node, and in which order the text has their dimensions.
    std::vector<std::vector<NodeId>> weights(meaning_.weights.size());
    for (std::size_t r = 0; r < roots_.size(); ++r) {
      if (roots_[r].kind == RootKind::kWeight) weights[roots_[r].tensor].push_back(chosen_[r]);
    }
    std::map<NodeId, int> holders;
    for (const std::vector<NodeId>& dims : weights) {
      std::set<NodeId> once;
      for (const NodeId id : dims) {
        if (!once.insert(id).second) {
          twice_in_weight_ = id;
          return std::nullopt;
        }
        ++holders[id];
      }
    }
    std::set<NodeId> open;
    for (const auto& [id, by] : used_) {
      if (nodes().at(id).kind != NodeKind::kLeaf) open.insert(id);
    }
    made.dims.resize(weights.size());
    std::vector<bool> contracted(weights.size(), false);
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::size_t w = 0; w < weights.size(); ++w) {
        if (contracted[w]) continue;
        const bool ready = std::all_of(weights[w].begin(), weights[w].end(), [&](NodeId id) {
          return coordinates.contains(id) && made.graph.in_frontier(coordinates[id]);
        });
        if (!ready) continue;
        WeightDims dims;
        for (const NodeId id : weights[w]) {
          const bool leaves = used_.at(id) == kFree && --holders[id] == 0;
          if (used_.at(id) != kFree) --holders[id];
          const CoordinateId coordinate = coordinates[id];
          const bool held = made.graph.weight_count(coordinate) > 0;
          dims.push_back({coordinate, !leaves ? WeightRole::kKeep
                                      : held  ? WeightRole::kJoin
                                              : WeightRole::kDrop});
          made.dims[w].push_back(coordinate);
        }
        made.graph.apply(Step::contract(dims));
        made.contracted.push_back(w);
        contracted[w] = true;
        moved = true;
      }
      for (auto place = open.begin(); place != open.end();) {
        if (!step(*place, coordinates, holders, made.graph)) {
          ++place;
          continue;
        }
        place = open.erase(place);
        moved = true;
      }
    }
    if (!open.empty() ||
        std::find(contracted.begin(), contracted.end(), false) != contracted.end()) {
      order_fails_ = true;
      return std::nullopt;
    }
    for (std::size_t r = 0; r < meaning_.data.size(); ++r)
      made.match.push_back(coordinates[chosen_[r]]);
    // What nothing reads is repeated.
    const std::vector<CoordinateId> frontier(made.graph.frontier().begin(),
                                             made.graph.frontier().end());
    for (const CoordinateId id : frontier) {
      if (std::find(made.match.begin(), made.match.end(), id) == made.match.end())
        made.graph.apply(Step::expand(id));
    }
    return made;
  }

  bool step(NodeId id, std::map<NodeId, CoordinateId>& coordinates,
            const std::map<NodeId, int>& holders, Graph& graph) {
    const Node& node = nodes().at(id);
    if (coordinates.contains(id)) return true;  // the other result of a Merge
    for (const NodeId below : {node.a, node.b}) {
      if (below == kNoNode) continue;
      // A weight takes it first.
      const auto held = holders.find(below);
      if (!coordinates.contains(below) || (held != holders.end() && held->second > 0)) return false;
    }
    const CoordinateId a = coordinates[node.a];
    const CoordinateId b = node.b == kNoNode ? kNoCoordinate : coordinates[node.b];
    switch (node.kind) {
      case NodeKind::kLeaf: return true;
      case NodeKind::kSplit: coordinates[id] = graph.apply(Step::split(a, b)).out[0]; return true;
      case NodeKind::kShift:
        coordinates[id] = graph.apply(Step::shift(a, static_cast<int>(node.amount))).out[0];
        return true;
      case NodeKind::kWindow:
        coordinates[id] = graph.apply(Step::unfold(a, b, node.amount != 0)).out[0];
        return true;
      case NodeKind::kStride:
        coordinates[id] = graph.apply(Step::stride(a, node.size)).out[0];
        return true;
      case NodeKind::kQuotient:
      case NodeKind::kRemainder: break;
    }
    const Step& merged = graph.apply(Step::merge(a, node.size));
    for (const auto& [other, by] : used_) {
      const Node& half = nodes().at(other);
      if (half.a != node.a || half.size != node.size) continue;
      if (half.kind == NodeKind::kQuotient) coordinates[other] = merged.out[0];
      if (half.kind == NodeKind::kRemainder) coordinates[other] = merged.out[1];
    }
    return true;
  }

  ParsedFormula finish() {
    Shape input;
    for (std::size_t d = 0; d < assembled_->match.size(); ++d) {
      Dimension dim{assembled_->graph.extent(assembled_->match[d]), false, false};
      if (meaning_.input) dim = (*meaning_.input)[d];
      input.push_back(dim);
    }
    ParsedFormula result{Operator(assembled_->graph, std::move(input), assembled_->match), {}};
    const CanonicalGraph canonical = canonicalize(assembled_->graph, assembled_->match);
    renamed_ = canonical.renamed;
    std::vector<bool> taken(assembled_->dims.size(), false);
    for (const Weight& weight : result.op.graph().weights()) {
      std::vector<CoordinateId> wanted(weight.dims.begin(), weight.dims.end());
      std::sort(wanted.begin(), wanted.end());
      for (std::size_t w = 0; w < assembled_->dims.size(); ++w) {
        std::vector<CoordinateId> dims;
        for (const CoordinateId id : assembled_->dims[w]) dims.push_back(renamed(id));
        const std::vector<CoordinateId> in_text = dims;
        std::sort(dims.begin(), dims.end());
        if (taken[w] || dims != wanted) continue;
        taken[w] = true;
        NamedWeight named{meaning_.weights[w].name, {}};
        for (const CoordinateId id : weight.dims) {
          named.dims.push_back(
              static_cast<int>(std::find(in_text.begin(), in_text.end(), id) - in_text.begin()));
        }
        result.weights.push_back(std::move(named));
        weights_.push_back(w);
        break;
      }
    }
    ensure(result.weights.size() == meaning_.weights.size(),
           "parse_formula: a weight of the text is none of the operator's");
    Places places;
    for (const CoordinateId leaf : assembled_->leaves) places.leaves.push_back(renamed(leaf));
    places.weights = weights_;
    for (std::size_t r = 0; r < roots_.size(); ++r) {
      if (roots_[r].kind == RootKind::kCondition)
        places.conditions.emplace_back(roots_[r].index, nodes().extent(final_[r]));
    }
    constexpr std::size_t kBindings = 2;
    check_against_text(meaning_, result, places, small_bindings(assembled_->graph, 1, kBindings));
    return result;
  }

  CoordinateId renamed(CoordinateId id) const { return renamed_[static_cast<std::size_t>(id)]; }

  // Reasons.

  [[noreturn]] void too_many() const {
    text().fail(
        "the formula has too many readings to go through", 0, "",
        "name parts of the long indices: add conditions such as 0 <= h+a-k/2 < H, or stages");
  }

  [[noreturn]] void refuse_index(const Root& root) {
    const Index& index = root.index;
    Forms& forms = meaning_.forms;
    const Variables& variables = *meaning_.variables;
    const std::string what = "index '" + index.text + "' of " + tensor_text(root);
    const auto fail = [&](const std::string& why, const std::string& expected = "",
                          const std::string& hint = "") {
      text().fail(what + " " + why, index.begin, expected, hint);
    };
    const Form form = forms.at(index.form);
    if (form.terms.empty())
      fail("is constant: each dimension is read at a coordinate", "an index in it",
           "a name that is neither an index of the output nor summed over is a size");
    for (const Term& term : form.terms) {
      if (term.times < 0)
        fail("subtracts an index: reversed reading is outside the eight primitives");
      if (term.times > 1) {
        fail("has the factor " + std::to_string(term.times) + ", which is no size", "",
             "give the number a name: a variable with this value, such as sizes=\"s=" +
                 std::to_string(term.times) + "\"");
      }
    }
    std::vector<int> leaves;
    forms.leaves(index.form, leaves);
    std::sort(leaves.begin(), leaves.end());
    leaves.erase(std::unique(leaves.begin(), leaves.end()), leaves.end());
    for (std::size_t i = 1; i < form.terms.size(); ++i) {
      if (form.terms[i].atom != form.terms[i - 1].atom) continue;
      fail("uses '" + forms.text(forms.single(form.terms[i].atom)) +
           "' twice: the eight primitives use each coordinate once");
    }
    const std::vector<NodeId> readings = nodes().readings(index.form);
    for (const NodeId id : readings) {
      if (nodes().pending(id) || !index.extent) continue;
      fail("runs up to " + nodes().extent(id).text(variables),
           index.extent->text(variables) + ", the size of what it reads",
           "a coordinate covers the whole of a dimension");
    }
    Recogniser bounded =
        recognise({.every_window_is_bounded = true, .any_size = allowed_.any_size});
    for (const NodeId id : bounded.readings(index.form)) {
      if (index.extent && *index.extent != bounded.extent(id)) continue;
      fail("has a window whose value could come back inside: the eight primitives give 0 there", "",
           "say so: add where 0 <= i < N for the window i of extent N, or read a stage at it");
    }
    std::vector<std::string> extents;
    for (const int leaf : leaves) {
      const Leaf& known = meaning_.leaves[static_cast<std::size_t>(leaf)];
      extents.push_back(known.name + ":" + known.extent->text(variables));
    }
    const std::int64_t whole = forms.whole(index.form);
    fail("is outside the eight primitives (" + join(extents, ", ") + ")",
         "one of B*a+b with b:B, a/B, a mod B, (a+d) mod N with a:N, a+b-K/2 with b:K, S*a, or "
         "these "
         "in each other",
         hint_of(forms.at(index.form), whole));
    throw InternalError("refuse_index: no reason was given");
  }

  std::string tensor_text(const Root& root) const {
    if (root.kind == RootKind::kCondition) return "a condition or stage";
    return root.kind == RootKind::kData ? "x" : meaning_.weights[root.tensor].name;
  }

  [[noreturn]] void refuse() {
    if (failed_at_) {
      const Root& root = roots_[*failed_at_];
      std::string what = "a coordinate";
      std::vector<std::string> names;
      leaf_names(failed_node_, names);
      if (!names.empty()) what = "the coordinate of '" + join(names, "', '") + "'";
      text().fail("index '" + root.index.text + "' of " + tensor_text(root) + " needs " + what +
                      " a second time: the eight primitives use each coordinate once",
                  root.index.begin, "",
                  "a diagonal, an overlapping fold and a weight at a coordinate that x does not "
                  "pass are outside; compute with two operators, or use another index");
    }
    if (twice_in_weight_ != kNoNode) {
      text().fail(
          "a weight is read at one coordinate in two dimensions: its diagonal is outside "
          "the eight primitives",
          0, "each coordinate once in a weight");
    }
    if (order_fails_) {
      text().fail(
          "a weight is read at a coordinate and at what is made of it: no order of steps "
          "has both at once",
          0, "indices of a weight that can be had together");
    }
    text().fail("a window of the formula could come back inside: the eight primitives give 0 there",
                0, "", "add where 0 <= i < N for the window i of extent N, or read a stage at it");
  }

  void leaf_names(NodeId id, std::vector<std::string>& names) {
    constexpr std::size_t kMostNames = 6;
    if (id == kNoNode || names.size() >= kMostNames) return;
    const Node node = nodes().at(id);
    if (node.kind == NodeKind::kLeaf)
      names.push_back(meaning_.leaves[static_cast<std::size_t>(node.amount)].name);
    leaf_names(node.a, names);
    leaf_names(node.b, names);
  }

  static constexpr int kFree = -1;
  static constexpr int kLegalAtOne = 1000;
  static constexpr int kNeverLegal = 1'000'000;

  Meaning& meaning_;
  Readings allowed_;
  Recogniser recogniser_;
  std::vector<Root> roots_;
  std::vector<NodeId> chosen_;
  /// What was chosen for `assembled_`.
  std::vector<NodeId> final_;
  /// Every node in use, and what consumes it.
  std::map<NodeId, int> used_;
  std::vector<NodeId> consumed_;
  std::map<Node, int> consumers_;
  std::int64_t choices_ = 0;
  int graphs_ = 0;
  bool found_ = false;
  int cost_ = 0;
  std::optional<Assembled> assembled_;
  std::vector<CoordinateId> renamed_;
  /// weights_[t] is the weight of the text that weight t of the operator is.
  std::vector<std::size_t> weights_;
  // Why it fails.
  NodeId twice_ = kNoNode;
  NodeId twice_in_weight_ = kNoNode;
  NodeId failed_node_ = kNoNode;
  std::optional<std::size_t> failed_at_;
  bool order_fails_ = false;
};

}  // namespace
}  // namespace notation

ParsedFormula parse_formula(std::string_view text, const FormulaShapes& shapes) {
  notation::Meaning meaning = notation::resolve(text, shapes);
  // Sizes that are legal only where some variable is 1 need shapes that say so: else l+k would be a digit l of extent L
  // beside a stride by 1/L.
  const bool shaped = meaning.input.has_value() && meaning.output.has_value();
  std::string reason;
  for (const bool any_size : {false, true}) {
    if (any_size && !shaped) continue;
    for (const bool weights_bound : {false, true}) {
      try {
        std::optional<ParsedFormula> parsed =
            notation::Assembler(meaning, {weights_bound, any_size}).run();
        if (parsed) return *std::move(parsed);
      } catch (const UserError& error) {
        if (!any_size) reason = error.what();
      }
    }
  }
  throw UserError(reason);
}

}  // namespace syno
