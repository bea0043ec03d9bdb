#include "syno/notation/formula.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "syno/access/access_map.h"
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

class Printer {
 public:
  explicit Printer(const Operator& op)
      : map_(make_access_map(op)), names_(op, map_), variables_(*map_.variables) {
    for (std::size_t i = 0; i < map_.expressions.size(); ++i)
      pieces_.push_back(piece(static_cast<CoordinateId>(i)));
  }

  std::string print() const {
    std::string text = "y" + indices(map_.iterators) + " = ";
    if (!names_.reductions().empty()) {
      std::vector<std::string> sums;
      for (const CoordinateId id : names_.reductions())
        sums.push_back(names_.of(id) + ":" + size_piece(map_.at(id).extent, variables_).text);
      text += "sum(" + join(sums, ", ") + ") ";
    }
    text += "x" + indices(map_.data);
    for (std::size_t t = 0; t < map_.weights.size(); ++t)
      text += " * w" + std::to_string(t) + indices(map_.weights[t]);
    std::vector<std::string> conditions;
    for (const CoordinateId id : map_.windows) {
      if (zero_outside(id)) continue;
      conditions.push_back("0 <= " + at(id).at_least(kSum) + " < " +
                           size_piece(map_.at(id).extent, variables_).text);
    }
    if (!conditions.empty()) text += " where " + join(conditions, ", ");
    return text;
  }

 private:
  const Piece& at(CoordinateId id) const { return pieces_[static_cast<std::size_t>(id)]; }

  std::string indices(const std::vector<CoordinateId>& ids) const {
    std::vector<std::string> texts;
    for (const CoordinateId id : ids) texts.push_back(at(id).text);
    return "[" + join(texts, ",") + "]";
  }

  Piece piece(CoordinateId id) const {
    const Expression& e = map_.at(id);
    if (e.kind == ExpressionKind::kIterator || e.kind == ExpressionKind::kReduction)
      return {names_.of(id), kAtom};
    const Piece size = size_piece(e.size, variables_);
    const Piece& a = at(e.a);
    switch (e.kind) {
      case ExpressionKind::kMixed:
        // a*C/g reads (a*C)/g, which is a*(C/g): the quotient is exact.
        return {a.at_least(kProduct) + "*" + size.text + "+" + at(e.b).at_least(kSum), kSum};
      case ExpressionKind::kScaled: return {a.at_least(kProduct) + "*" + size.text, kProduct};
      case ExpressionKind::kQuotient:
        return {a.at_least(kProduct) + "/" + size.at_least(kAtom), kProduct};
      case ExpressionKind::kRemainder:
        return {a.at_least(kAtom) + " mod " + size.at_least(kAtom), kModulo};
      case ExpressionKind::kRotated:
        return {"(" + a.at_least(kSum) + (e.amount > 0 ? "+" : "") + std::to_string(e.amount) +
                    ") mod " + size.at_least(kAtom),
                kModulo};
      case ExpressionKind::kWindow:
        return {a.at_least(kSum) + "+" + at(e.b).at_least(kSum) + "-" + size.text +
                    (e.causal ? "+1" : "/2"),
                kSum};
      case ExpressionKind::kIterator:
      case ExpressionKind::kReduction: break;
    }
    return {};
  }

  // Whether a value of `id` outside its extent always makes some index of x or of a weight fall outside, given that
  // everything else is inside: the major part of a Split, the quotient of a Merge and a Stride carry it on.
  bool zero_outside(CoordinateId id) const {
    const auto read_at = [&](const std::vector<CoordinateId>& ids) {
      return std::find(ids.begin(), ids.end(), id) != ids.end();
    };
    if (read_at(map_.data) || std::any_of(map_.weights.begin(), map_.weights.end(), read_at))
      return true;
    for (std::size_t i = static_cast<std::size_t>(id) + 1; i < map_.expressions.size(); ++i) {
      const Expression& e = map_.expressions[i];
      const bool carries = e.kind == ExpressionKind::kMixed ||
                           e.kind == ExpressionKind::kQuotient || e.kind == ExpressionKind::kScaled;
      if (carries && e.a == id && zero_outside(static_cast<CoordinateId>(i))) return true;
    }
    return false;
  }

  AccessMap map_;
  Names names_;
  const Variables& variables_;
  std::vector<Piece> pieces_;
};

}  // namespace

std::string formula(const Operator& op) {
  return Printer(op).print();
}

}  // namespace syno
