// The normal form in readable lines.
#include "syno/support/text.h"

#include <algorithm>
#include <map>

#include "syno/affine/sum_text.h"
#include "syno/key/label.h"

namespace syno::key {
namespace {

class Writer {
 public:
  Writer(const Points& points, const Labelled& labelled) : points_(points) {
    for (const int base : labelled.order) names_.emplace(base, "d" + std::to_string(names_.size()));
    for (const int base : labelled.order)
      digits_.push_back(names_.at(base) + ":" + std::to_string(points.algebra.extent(base)));
  }

  std::string text() const {
    std::string result = "digits " + join(digits_, " ");
    if (points_.multiplicity != 1) result += "  times " + std::to_string(points_.multiplicity);
    result += "\n";
    for (const Exact& exact : points_.exact)
      result += "dim " + std::to_string(exact.slot) + " = " + form(exact.form, 1) + "\n";
    std::vector<std::string> lines;
    for (const Partition& partition : points_.partitions) {
      std::vector<std::string> generators;
      for (const Form& generator : partition.generators)
        generators.push_back(plainer(form(generator, 1), form(generator, -1)));
      std::sort(generators.begin(), generators.end());
      const std::string name = partition.slot == kWeightSlot
                                   ? std::string("weight")
                                   : "dim " + std::to_string(partition.slot) + " unordered";
      lines.push_back(name + " {" + join(generators, ", ") + "}\n");
    }
    std::sort(lines.begin(), lines.end());
    for (const std::string& line : lines) result += line;
    lines.clear();
    for (const Condition& condition : points_.conditions)
      lines.push_back(plainer(text_of(condition, 1), text_of(condition, -1)));
    std::sort(lines.begin(), lines.end());
    for (const std::string& line : lines) result += line;
    return result;
  }

 private:
  // Where f and -f say the same, the one with fewer signs is written.
  static std::string plainer(std::string a, std::string b) {
    const auto signs_a = std::count(a.begin(), a.end(), '-');
    const auto signs_b = std::count(b.begin(), b.end(), '-');
    return signs_a < signs_b || (signs_a == signs_b && a < b) ? a : b;
  }

  std::string text_of(const Condition& condition, Integer sign) const {
    const Integer low = sign > 0 ? condition.low : opposite_low(condition.high);
    const Integer high = sign > 0 ? condition.high : opposite_high(condition.low);
    std::string line = "where ";
    if (low != kNoLow) line += std::to_string(low) + " <= ";
    line += form(condition.form, sign);
    if (high != kNoHigh) line += " <= " + std::to_string(high);
    return line + "\n";
  }

  std::string atom_text(const Atom& atom) const {
    if (atom.is_digit()) {
      const auto place = names_.find(atom.base);
      return place == names_.end() ? "?" : place->second;
    }
    return "floor((" + form(atom.inner, 1) + ")/" + std::to_string(atom.divisor) + ")";
  }

  std::string form(const Form& value, Integer sign) const {
    std::vector<std::pair<std::string, Integer>> terms;
    for (const Term& term : value.terms)
      terms.emplace_back(atom_text(points_.algebra.atom(term.atom)), sign * term.factor);
    std::sort(terms.begin(), terms.end());
    SumText sum(SumText::Spaces::kNone);
    for (const auto& [name, factor] : terms) sum.add(factor, name);
    sum.add(sign * value.constant);
    return sum.text();
  }

  const Points& points_;
  std::map<int, std::string> names_;
  std::vector<std::string> digits_;
};

}  // namespace

std::string normal_form_text(const Points& points, const Labelled& labelled) {
  return Writer(points, labelled).text();
}

}  // namespace syno::key
