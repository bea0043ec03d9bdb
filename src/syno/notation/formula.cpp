#include "syno/notation/formula.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "syno/interp/access_map.h"
#include "syno/support/text.h"

namespace syno {
namespace {

// How tightly a piece of text binds: a piece is put in parentheses where something tighter is wanted.
enum Binds { kModulo, kSum, kProduct, kAtom };

struct Piece {
  std::string text;
  Binds binds = kAtom;

  std::string at_least(Binds wanted) const { return binds < wanted ? "(" + text + ")" : text; }
};

Piece size_piece(const Size& size, const Variables& variables) {
  std::vector<std::string> above;
  std::vector<std::string> below;
  for (std::size_t v = 0; v < variables.count(); ++v) {
    const int power = size.power(v);
    if (power == 0) continue;
    const int height = power < 0 ? -power : power;
    (power > 0 ? above : below)
        .push_back(variables.name(v) + (height == 1 ? "" : "^" + std::to_string(height)));
  }
  std::string text = above.empty() ? "1" : join(above, "*");
  if (!below.empty())
    text += "/" + Piece{join(below, "*"), below.size() > 1 ? kProduct : kAtom}.at_least(kAtom);
  return {text, above.size() + below.size() > 1 || !below.empty() ? kProduct : kAtom};
}

// Names of iterators and reductions.
class Names {
 public:
  Names(const Operator& op, const AccessMap& map) : map_(map) {
    names_.resize(map.expressions.size());
    for (std::size_t d = 0; d < map.iterators.size(); ++d)
      give(map.iterators[d], wanted(op.output()[d], map.iterators[d]));
    // In the order in which a reader meets them.
    for (const CoordinateId id : map.data) visit(id);
    for (const auto& dims : map.weights) {
      for (const CoordinateId id : dims) visit(id);
    }
    for (const CoordinateId id : map.reductions) visit(id);
  }

  const std::string& of(CoordinateId id) const { return names_[static_cast<std::size_t>(id)]; }
  const std::vector<CoordinateId>& reductions() const { return reductions_; }

 private:
  // The first variable of a size that can stand in no denominator says what a dimension is.
  std::string_view main_variable(const Size& size) const {
    const Variables& variables = *map_.variables;
    std::string_view found;
    for (std::size_t v = 0; v < variables.count(); ++v) {
      if (size.power(v) <= 0) continue;
      const std::string_view name = variables.name(v);
      if (found.empty() || (name[0] >= 'A' && name[0] <= 'Z')) found = name;
    }
    return found;
  }

  // Letters to try, best first.
  std::string_view wanted(const Dimension& dim, CoordinateId id) const {
    const std::string_view name = main_variable(dim.size);
    const bool kept = std::find(map_.data.begin(), map_.data.end(), id) != map_.data.end();
    if (name == "N" || name == "B" || name == "batch") return "nbhwtuv";
    if (name.starts_with("seq") || name == "T" || name == "L") return "tqlpuv";
    if (dim.unordered || name.starts_with("C")) return kept ? "cohwuv" : "ocuv";
    if (name.starts_with("W")) return "whuvpq";
    return "hwuvpq";
  }

  bool is_free(const std::string& name) const {
    return !map_.variables->find(name) &&
           std::find(names_.begin(), names_.end(), name) == names_.end();
  }

  void give(CoordinateId id, std::string_view letters) {
    constexpr std::string_view kRest = "abcdefghijklmnopqrstuvz";
    for (const std::string_view pool : {letters, kRest}) {
      for (const char letter : pool) {
        if (set(id, std::string(1, letter))) return;
      }
    }
    int number = 1;
    while (!set(id, letters[0] + std::to_string(number))) ++number;
  }

  bool set(CoordinateId id, const std::string& name) {
    if (!is_free(name)) return false;
    names_[static_cast<std::size_t>(id)] = name;
    return true;
  }

  void visit(CoordinateId id) {
    const Expression& expression = map_.at(id);
    if (expression.kind == ExpressionKind::kReduction) {
      if (!of(id).empty()) return;
      const std::string_view name = main_variable(expression.extent);
      const bool large = !name.empty() && name[0] >= 'A' && name[0] <= 'Z';
      give(id, large ? "ijrlmpq" : "abcdefpq");
      reductions_.push_back(id);
      return;
    }
    // Both results of a Merge name what they are made of: each is looked into once.
    if (std::find(visited_.begin(), visited_.end(), id) != visited_.end()) return;
    visited_.push_back(id);
    if (expression.a != kNoCoordinate) visit(expression.a);
    if (expression.b != kNoCoordinate) visit(expression.b);
  }

  const AccessMap& map_;
  std::vector<std::string> names_;
  std::vector<CoordinateId> reductions_;
  std::vector<CoordinateId> visited_;
};

// Which statement computes what: with `stages`, statement j multiplies with weight j, and what it reads is made by
// statement j+1. A view stands as near the input as what needs it allows, a window as near the output as the weights
// allow that hold its parts: there it makes one index of two.
class Levels {
 public:
  Levels(const Operator& op, const AccessMap& map, bool stages)
      : last_(stages ? std::max<int>(0, static_cast<int>(map.weights.size()) - 1) : 0) {
    const Graph& graph = op.graph();
    const std::size_t count = map.expressions.size();
    made_.assign(count, 0);
    used_.assign(count, -1);
    held_.assign(count, 0);
    if (last_ == 0) return;
    made_.assign(count, last_ + 1);
    const auto use = [&](CoordinateId id, int level) {
      int& made = made_[index(id)];
      made = std::min(made, level);
      used_[index(id)] = std::max(used_[index(id)], level);
    };
    for (const CoordinateId id : map.data) use(id, last_);
    for (std::size_t w = 0; w < map.weights.size(); ++w) {
      for (const CoordinateId id : map.weights[w]) {
        use(id, static_cast<int>(w));
        held_[index(id)] = std::max(held_[index(id)], static_cast<int>(w));
      }
    }
    for (auto step = graph.steps().end(); step != graph.steps().begin();) {
      --step;
      const PrimitiveInfo& info = primitive_info(step->primitive);
      int level = last_ + 1;
      for (int i = 0; i < info.produces; ++i)
        level = std::min(level, made_[index(step->out[static_cast<std::size_t>(i)])]);
      if (level > last_) level = 0;  // expanded
      for (int i = 0; i < info.produces; ++i)
        made_[index(step->out[static_cast<std::size_t>(i)])] = level;
      for (int i = 0; i < info.consumes; ++i) {
        const CoordinateId from = step->in[static_cast<std::size_t>(i)];
        if (step->makes(ExpressionKind::kWindow)) {
          const int held = std::max(held_[index(step->in[0])], held_[index(step->in[1])]);
          level = std::min(level, std::max(held, made_below(graph, *step)));
          made_[index(step->out[0])] = level;
        }
        if (!step->is_repetition()) use(from, level);
      }
    }
    for (const CoordinateId id : map.iterators) made_[index(id)] = -1;
  }

  int last() const { return last_; }
  /// The statement whose sum or views make it; -1 for an iterator where there are stages.
  int made(CoordinateId id) const { return made_[index(id)]; }
  /// Whether it is an index of what statement `level` makes.
  bool crosses(CoordinateId id, int level) const {
    return made_[index(id)] < level && used_[index(id)] >= level;
  }

 private:
  static std::size_t index(CoordinateId id) { return static_cast<std::size_t>(id); }

  // The first statement in which both sides of a window can be had: what they are made of may be held by weights.
  int made_below(const Graph& graph, const Step& step) const {
    int level = 0;
    const auto visit = [&](auto&& self, CoordinateId id) -> void {
      level = std::max(level, held_[index(id)]);
      const Step* producer = graph.producer(id);
      if (producer == nullptr) return;
      for (int i = 0; i < primitive_info(producer->primitive).consumes; ++i)
        self(self, producer->in[static_cast<std::size_t>(i)]);
    };
    for (const CoordinateId id : step.in) visit(visit, id);
    return level;
  }

  int last_;
  std::vector<int> made_;
  std::vector<int> used_;
  /// The last weight that holds it.
  std::vector<int> held_;
};

class Printer {
 public:
  Printer(const Operator& op, bool stages)
      : map_(make_access_map(op)),
        names_(op, map_),
        variables_(*map_.variables),
        levels_(op, map_, stages) {}

  std::string print() {
    std::string text;
    for (int level = levels_.last(); level >= 0; --level) {
      if (!text.empty()) text += "\n";
      text += statement(level);
    }
    return text;
  }

 private:
  const Piece& at(CoordinateId id) const { return pieces_[static_cast<std::size_t>(id)]; }

  // One line: what statement `level` makes of x or of the statement before it in the text.
  std::string statement(int level) {
    level_ = level;
    const std::vector<CoordinateId> target = level == 0 ? map_.iterators : crossing(level);
    name_target(target);
    pieces_.clear();
    for (std::size_t i = 0; i < map_.expressions.size(); ++i)
      pieces_.push_back(piece(static_cast<CoordinateId>(i)));
    read_ = level == levels_.last() ? map_.data : crossing(level + 1);

    std::string text = tensor(level) + (level == 0 ? indices(target) : sized(target)) + " = ";
    std::vector<std::string> sums;
    for (const CoordinateId id : names_.reductions()) {
      if (levels_.made(id) == level)
        sums.push_back(names_.of(id) + ":" + size_piece(map_.at(id).extent, variables_).text);
    }
    if (!sums.empty()) text += "sum(" + join(sums, ", ") + ") ";
    text += (level == levels_.last() ? "x" : tensor(level + 1)) + indices(read_);
    for (std::size_t t = 0; t < map_.weights.size(); ++t) {
      if (levels_.last() == 0 || static_cast<int>(t) == level)
        text += " * w" + std::to_string(t) + indices(map_.weights[t]);
    }
    std::vector<std::string> conditions;
    for (const CoordinateId id : map_.windows) {
      if (levels_.made(id) != level || zero_outside(id)) continue;
      conditions.push_back("0 <= " + at(id).at_least(kSum) + " < " +
                           size_piece(map_.at(id).extent, variables_).text);
    }
    if (!conditions.empty()) text += " where " + join(conditions, ", ");
    return text;
  }

  std::string tensor(int level) const {
    if (level == 0) return "y";
    const std::string name = levels_.last() == 1 ? "Z" : "Z" + std::to_string(level);
    return variables_.find(name) ? "stage_" + name : name;
  }

  std::vector<CoordinateId> crossing(int level) const {
    std::vector<CoordinateId> ids;
    for (std::size_t i = 0; i < map_.expressions.size(); ++i) {
      if (levels_.crosses(static_cast<CoordinateId>(i), level))
        ids.push_back(static_cast<CoordinateId>(i));
    }
    // In the order in which x and the weights have them.
    std::vector<CoordinateId> met;
    const auto visit = [&](auto&& self, CoordinateId id) -> void {
      if (id == kNoCoordinate || std::find(met.begin(), met.end(), id) != met.end()) return;
      met.push_back(id);
      self(self, map_.at(id).a);
      self(self, map_.at(id).b);
    };
    for (const CoordinateId id : map_.data) visit(visit, id);
    for (auto dims = map_.weights.rbegin(); dims != map_.weights.rend(); ++dims) {
      for (const CoordinateId id : *dims) visit(visit, id);
    }
    std::sort(ids.begin(), ids.end(), [&](CoordinateId a, CoordinateId b) {
      return std::find(met.begin(), met.end(), a) < std::find(met.begin(), met.end(), b);
    });
    return ids;
  }

  // Inside a stage, what it is asked at has the name of the first index in it, where no other has.
  void name_target(const std::vector<CoordinateId>& target) {
    inside_.assign(map_.expressions.size(), "");
    if (levels_.last() == 0) return;
    const auto taken = [&](const std::string& name) {
      if (variables_.find(name)) return true;
      if (std::find(inside_.begin(), inside_.end(), name) != inside_.end()) return true;
      return std::any_of(
          names_.reductions().begin(), names_.reductions().end(),
          [&](CoordinateId id) { return levels_.made(id) == level_ && names_.of(id) == name; });
    };
    const auto leaf = [&](CoordinateId id) { return !names_.of(id).empty(); };
    for (const CoordinateId id : target) {
      if (leaf(id)) inside_[static_cast<std::size_t>(id)] = names_.of(id);
    }
    for (const CoordinateId id : target) {
      if (leaf(id)) continue;
      CoordinateId first = id;
      while (!leaf(first)) first = map_.at(first).a;
      std::string name = names_.of(first);
      for (int number = 1; taken(name); ++number) name = names_.of(first) + std::to_string(number);
      inside_[static_cast<std::size_t>(id)] = name;
    }
  }

  // The indices of a stage, each with its size where what the stage is asked at may be read in several ways.
  std::string sized(const std::vector<CoordinateId>& ids) const {
    const auto has_window = [&](auto&& self, CoordinateId id) -> bool {
      if (is_leaf(id)) return false;
      const Expression& e = map_.at(id);
      return e.kind == ExpressionKind::kWindow || self(self, e.a) || self(self, e.b);
    };
    std::vector<std::string> texts;
    for (const CoordinateId id : ids) {
      const Expression& e = map_.at(id);
      const bool plain = e.kind == ExpressionKind::kWindow && is_leaf(e.a) && is_leaf(e.b);
      const bool open = !plain && has_window(has_window, id);
      texts.push_back(at(id).text + (open ? ":" + size_piece(e.extent, variables_).text : ""));
    }
    return "[" + join(texts, ",") + "]";
  }

  std::string indices(const std::vector<CoordinateId>& ids) const {
    std::vector<std::string> texts;
    for (const CoordinateId id : ids) texts.push_back(at(id).text);
    return "[" + join(texts, ",") + "]";
  }

  Piece piece(CoordinateId id) const {
    const std::string& inside = inside_[static_cast<std::size_t>(id)];
    if (!inside.empty()) return {inside, kAtom};
    const Expression& e = map_.at(id);
    if (e.kind == ExpressionKind::kIterator || e.kind == ExpressionKind::kReduction)
      return {names_.of(id), kAtom};
    const Piece size = size_piece(e.size, variables_);
    const Piece& a = at(e.a);
    switch (e.kind) {
      case ExpressionKind::kMixed:
        // a*C/g reads (a*C)/g, which is a*(C/g): the quotient is exact.
        return {a.at_least(kProduct) + "*" + size.text + "+" + at(e.b).at_least(kSum), kSum};
      case ExpressionKind::kScaled:
        // Not a*s/k, which reads floor(a*s/k).
        return {a.at_least(kProduct) + "*" +
                    (size.text.find('/') == std::string::npos ? size.text : "(" + size.text + ")"),
                kProduct};
      case ExpressionKind::kQuotient:
        return {a.at_least(kProduct) + "/" + size.at_least(kAtom), kProduct};
      case ExpressionKind::kRemainder:
        return {a.at_least(kAtom) + " mod " + size.at_least(kAtom), kModulo};
      case ExpressionKind::kCyclicShift: return shifted(id);
      case ExpressionKind::kWindow:
        return {a.at_least(kSum) + "+" + at(e.b).at_least(kSum) + "-" + size.text +
                    (e.causal ? "+1" : "/2"),
                kSum};
      case ExpressionKind::kIterator:
      case ExpressionKind::kReduction: break;
    }
    return {};
  }

  // (((t+1) mod s)+1) mod s is (t+2) mod s. Only of plain indices and windows that are read like that: a shift that is
  // used elsewhere, too, must be found in the text again. Under further views, and where one shift is by half a size, the
  // key of the sum may differ from that of the shifts.
  Piece shifted(CoordinateId id) const {
    const Expression& outer = map_.at(id);
    std::int64_t amount = outer.amount;
    CoordinateId from = outer.a;
    const auto again = [&](CoordinateId inner) {
      const Expression& e = map_.at(inner);
      return inside_[static_cast<std::size_t>(inner)].empty() &&
             e.kind == ExpressionKind::kCyclicShift && e.size == outer.size && is_unit(e) &&
             operand_of(inner) == 1 && !is_read(inner);
    };
    while (is_unit(outer) && again(from)) {
      amount += map_.at(from).amount;
      from = map_.at(from).a;
    }
    const bool window = map_.at(from).kind == ExpressionKind::kWindow;
    const bool plain =
        window ? is_leaf(map_.at(from).a) && is_leaf(map_.at(from).b) : is_leaf(from);
    if (!plain || operand_of(id) > 0) {
      amount = outer.amount;
      from = outer.a;
    }
    if (amount == 0) return at(from);
    return {"(" + at(from).at_least(kSum) + (amount > 0 ? "+" : "") + std::to_string(amount) +
                ") mod " + size_piece(outer.size, variables_).at_least(kAtom),
            kModulo};
  }

  static bool is_unit(const Expression& shift) { return shift.amount == 1 || shift.amount == -1; }

  bool is_leaf(CoordinateId id) const { return id == kNoCoordinate || !names_.of(id).empty(); }

  bool is_read(CoordinateId id) const {
    const auto among = [&](const std::vector<CoordinateId>& ids) {
      return std::find(ids.begin(), ids.end(), id) != ids.end();
    };
    return among(map_.data) || std::any_of(map_.weights.begin(), map_.weights.end(), among);
  }

  std::ptrdiff_t operand_of(CoordinateId id) const {
    return std::count_if(map_.expressions.begin(), map_.expressions.end(),
                         [&](const Expression& e) { return e.a == id || e.b == id; });
  }

  // Whether a value of `id` outside its extent always makes some index of x, or of a stage, fall outside, given that
  // everything else is inside: the major part of a Split, the quotient of a Merge and a Stride carry it on. A weight that is read outside
  // is zero as well, but the text does not say how large it is.
  bool zero_outside(CoordinateId id) const {
    if (std::find(read_.begin(), read_.end(), id) != read_.end()) return true;
    for (std::size_t i = static_cast<std::size_t>(id) + 1; i < map_.expressions.size(); ++i) {
      const Expression& e = map_.expressions[i];
      const bool carries = e.kind == ExpressionKind::kMixed ||
                           e.kind == ExpressionKind::kQuotient || e.kind == ExpressionKind::kScaled;
      if (carries && levels_.made(static_cast<CoordinateId>(i)) == level_ && e.a == id &&
          zero_outside(static_cast<CoordinateId>(i)))
        return true;
    }
    return false;
  }

  AccessMap map_;
  Names names_;
  const Variables& variables_;
  Levels levels_;
  // Of the statement that is printed.
  int level_ = 0;
  std::vector<CoordinateId> read_;
  /// Names of what it is asked at.
  std::vector<std::string> inside_;
  std::vector<Piece> pieces_;
};

}  // namespace

std::string formula(const Operator& op, bool stages) {
  return Printer(op, stages).print();
}

}  // namespace syno
