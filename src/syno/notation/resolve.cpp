#include "syno/notation/resolve.h"

#include <algorithm>
#include <set>

#include "syno/support/error.h"

namespace syno::notation {
namespace {

// Leaves beyond this many are no operator that anything could run.
constexpr std::size_t kMaxLeaves = 64;

using NameSet = std::set<std::string>;

void names_in(const AstPtr& ast, NameSet& found) {
  if (ast == nullptr) return;
  if (ast->kind == AstKind::kName) found.insert(ast->name);
  names_in(ast->a, found);
  names_in(ast->b, found);
}

// Names that something is divided by, or that have a power: sizes.
void divisors_in(const AstPtr& ast, NameSet& found) {
  if (ast == nullptr) return;
  if (ast->kind == AstKind::kDivide || ast->kind == AstKind::kModulo) names_in(ast->b, found);
  if (ast->kind == AstKind::kPower) names_in(ast->a, found);
  divisors_in(ast->a, found);
  divisors_in(ast->b, found);
}

// Which names are indices and which are variables of sizes.
struct Classes {
  NameSet indices;
  NameSet variables;
};

Classes classify(const FormulaText& text, const FormulaShapes& shapes) {
  NameSet definitions;
  for (const Definition& definition : text.definitions) definitions.insert(definition.name);
  NameSet sizes;
  for (const std::string& shape : {shapes.input, shapes.output}) {
    for (const std::string& name : variables_in_shape(shape)) sizes.insert(name);
  }
  for (const auto& [name, value] : shapes.values) sizes.insert(name);
  Classes classes;
  NameSet used;
  std::map<std::string, std::size_t> places;
  for (const Stage& stage : text.stages) {
    for (const AstPtr& size : stage.target.sizes) names_in(size, sizes);
    for (const AstPtr& index : stage.target.indices) divisors_in(index, sizes);
    for (const Declared& sum : stage.sums) names_in(sum.size, sizes);
    for (const Condition& condition : stage.conditions) {
      names_in(condition.extent, sizes);
      names_in(condition.value, used);
    }
    for (const Access& factor : stage.factors) {
      for (const AstPtr& index : factor.indices) names_in(index, used);
    }
  }
  for (const Declared& declared : text.declared) names_in(declared.size, sizes);
  for (const Definition& definition : text.definitions) {
    names_in(definition.value, used);
    sizes.erase(definition.name);
  }
  for (const Stage& stage : text.stages) {
    for (const Declared& sum : stage.sums) {
      classes.indices.insert(sum.name);
      places.emplace(sum.name, sum.begin);
    }
    for (const AstPtr& index : stage.target.indices) {
      if (index->kind == AstKind::kName) {
        classes.indices.insert(index->name);
        places.emplace(index->name, index->begin);
        continue;
      }
      NameSet names;
      names_in(index, names);
      for (const std::string& name : names) {
        if (!sizes.contains(name) && !definitions.contains(name)) classes.indices.insert(name);
      }
    }
  }
  for (const std::string& name : classes.indices) {
    if (sizes.contains(name)) {
      text.fail("'" + name + "' is an index and a variable of sizes at once", places[name],
                "another name for the index");
    }
    if (definitions.contains(name)) {
      text.fail("'" + name + "' is an index and is defined by a statement", places[name],
                "another name for one of them");
    }
  }
  for (const NameSet& names : {sizes, used}) {
    for (const std::string& name : names) {
      if (!classes.indices.contains(name) && !definitions.contains(name))
        classes.variables.insert(name);
    }
  }
  return classes;
}

class Resolver {
 public:
  Resolver(Meaning& meaning, NameSet indices) : meaning_(meaning), indices_(std::move(indices)) {}

  void run() {
    const FormulaText& text = meaning_.source;
    for (const Stage& stage : text.stages) {
      if (is_data(stage.target.tensor)) {
        text.fail("'" + stage.target.tensor + "' is the input: no statement makes it",
                  stage.target.begin);
      }
      if (!stages_.emplace(stage.target.tensor, &stage).second) {
        text.fail("'" + stage.target.tensor + "' is made twice", stage.target.begin,
                  "one statement for each stage");
      }
    }
    for (const Definition& definition : text.definitions) {
      if (!definitions_.emplace(definition.name, &definition).second)
        text.fail("'" + definition.name + "' is defined twice", definition.begin);
    }
    NameSet read;
    for (const Stage& stage : text.stages) {
      for (const Access& factor : stage.factors) read.insert(factor.tensor);
    }
    const Stage* last = nullptr;
    for (const Stage& stage : text.stages) {
      if (read.contains(stage.target.tensor)) continue;
      if (last != nullptr) {
        text.fail("two statements make what nothing reads: '" + last->target.tensor + "' and '" +
                      stage.target.tensor + "'",
                  stage.target.begin, "one output");
      }
      last = &stage;
    }
    if (last == nullptr) text.fail("each stage is read by another one: there is no output", 0);
    output(*last);
    for (const Stage& stage : text.stages) {
      if (!taken_.contains(stage.target.tensor)) {
        text.fail("the output does not read stage '" + stage.target.tensor + "'",
                  stage.target.begin);
      }
    }
    if (!read_data_) {
      text.fail("the formula does not read x", last->target.begin, "x[...] as one of the factors",
                "the input is called x");
    }
    declare();
  }

 private:
  using Scope = std::map<std::string, FormId>;

  static bool is_data(const std::string& tensor) { return tensor == "x" || tensor == "X"; }
  Forms& forms() { return meaning_.forms; }
  const FormulaText& text() const { return meaning_.source; }

  int add_leaf(std::string name, std::optional<Size> extent, bool reduction, std::size_t begin) {
    if (meaning_.leaves.size() >= kMaxLeaves)
      text().fail("the formula has too many indices", begin);
    const int number = static_cast<int>(meaning_.leaves.size());
    meaning_.leaves.push_back({std::move(name), extent, reduction, begin});
    return number;
  }

  void output(const Stage& stage) {
    const Access& target = stage.target;
    meaning_.output_rank = target.indices.size();
    if (meaning_.output && meaning_.output->size() != target.indices.size()) {
      text().fail("'" + text().quote(target) + "' has " + std::to_string(target.indices.size()) +
                      " indices",
                  target.begin,
                  "the " + std::to_string(meaning_.output->size()) + " dimensions of " +
                      shape_text(*meaning_.output, *meaning_.variables));
    }
    std::vector<FormId> actual;
    for (std::size_t d = 0; d < target.indices.size(); ++d) {
      const AstPtr& index = target.indices[d];
      std::optional<Size> extent;
      if (meaning_.output) extent = (*meaning_.output)[d].size;
      if (target.sizes[d] != nullptr) {
        const Size given = size(target.sizes[d], {});
        if (extent && *extent != given) {
          text().fail("index " + std::to_string(d) + " of " + target.tensor + " runs up to " +
                          given.text(*meaning_.variables),
                      target.sizes[d]->begin,
                      extent->text(*meaning_.variables) + ", as the output shape has it");
        }
        extent = given;
      }
      const std::string name =
          index->kind == AstKind::kName ? index->name : "(" + text().quote(*index) + ")";
      const int number = add_leaf(name, extent, false, index->begin);
      actual.push_back(forms().leaf(number, name));
    }
    take(stage, actual, 0);
  }

  void take(const Stage& stage, const std::vector<FormId>& actual, int depth) {
    taken_.insert(stage.target.tensor);
    Scope scope;
    NameSet bound;
    for (std::size_t d = 0; d < actual.size(); ++d) bind(stage.target, d, actual[d], scope, bound);
    for (const Declared& sum : stage.sums) {
      if (!bound.insert(sum.name).second)
        text().fail("'" + sum.name + "' names two indices", sum.begin, "a name for each");
      std::optional<Size> extent;
      if (sum.size != nullptr) extent = size(sum.size, {});
      const int number = add_leaf(sum.name, extent, true, sum.begin);
      scope[sum.name] = forms().leaf(number, sum.name);
    }
    for (const Condition& condition : stage.conditions) {
      meaning_.conditions.push_back({form(condition.value, scope), size(condition.extent, scope),
                                     text().quote(*condition.value), condition.value->begin});
    }
    for (const Access& factor : stage.factors) read(factor, scope, depth);
  }

  void read(const Access& factor, const Scope& scope, int depth) {
    std::vector<Index> indices;
    for (const AstPtr& index : factor.indices) {
      indices.push_back({form(index, scope), std::nullopt, text().quote(*index), index->begin});
    }
    const auto place = stages_.find(factor.tensor);
    if (place != stages_.end()) {
      const Stage& stage = *place->second;
      if (taken_.contains(factor.tensor)) {
        text().fail("stage '" + factor.tensor + "' is read twice, or reads itself", factor.begin,
                    "each stage read once: the eight primitives use everything once");
      }
      check_rank(factor, stage.target.indices.size());
      constexpr int kMostStages = 40;
      if (depth > kMostStages) text().fail("there are too many stages", factor.begin);
      std::vector<FormId> actual;
      for (std::size_t d = 0; d < indices.size(); ++d) {
        if (stage.target.sizes[d] != nullptr) indices[d].extent = size(stage.target.sizes[d], {});
        actual.push_back(indices[d].form);
        // A stage is zero outside, as x is.
        meaning_.conditions.push_back(indices[d]);
      }
      take(stage, actual, depth + 1);
      return;
    }
    if (is_data(factor.tensor)) {
      if (read_data_) {
        text().fail("x is read twice: an operator is linear in x, and reads it once", factor.begin,
                    "one factor x[...]",
                    "sum over an index that moves over what is read, or use one operator for each");
      }
      read_data_ = true;
      if (meaning_.input) check_rank(factor, meaning_.input->size());
      for (std::size_t d = 0; d < indices.size() && meaning_.input; ++d)
        indices[d].extent = (*meaning_.input)[d].size;
      meaning_.data = std::move(indices);
      return;
    }
    if (factor.indices.empty()) {
      text().fail("weight '" + factor.tensor + "' has no index: it would only scale", factor.begin,
                  "at least one index");
    }
    for (const Meaning::Weight& other : meaning_.weights) {
      if (other.name == factor.tensor) {
        text().fail(
            "weight '" + factor.tensor + "' is read twice: an operator is linear in each weight",
            factor.begin, "a name for each weight");
      }
    }
    meaning_.weights.push_back({factor.tensor, std::move(indices), factor.begin});
  }

  void check_rank(const Access& access, std::size_t rank) const {
    if (access.indices.size() == rank) return;
    text().fail(
        "'" + text().quote(access) + "' has " + std::to_string(access.indices.size()) + " indices",
        access.begin, std::to_string(rank));
  }

  // What the indices of a target are, given the value that the target is asked at: itself, or digits of it.
  void bind(const Access& target, std::size_t d, FormId actual, Scope& scope, NameSet& bound) {
    const AstPtr& index = target.indices[d];
    const auto once = [&](const std::string& name) {
      if (!bound.insert(name).second)
        text().fail("'" + name + "' names two indices of " + target.tensor, index->begin,
                    "a name for each");
    };
    if (index->kind == AstKind::kName) {
      once(index->name);
      scope[index->name] = actual;
      return;
    }
    // Leaves of its own stand for the digits while the target is read.
    NameSet names;
    names_in(index, names);
    Scope digits;
    std::map<int, std::string> atoms;
    for (const std::string& name : names) {
      if (!indices_.contains(name)) continue;
      const int number = static_cast<int>(kMaxLeaves + scratch_++);
      digits[name] = forms().leaf(number, name);
      atoms[forms().at(digits[name]).terms[0].atom] = name;
    }
    const FormId id = form(index, digits);
    const auto fail = [&](const std::string& why) {
      text().fail("the target index '" + text().quote(*index) + "' " + why, index->begin,
                  "an index, or digits such as h*s+a with a < s");
    };
    std::vector<Term> terms = forms().at(id).terms;
    for (Term& term : terms) {
      // G*C/g is G*(C/g): a digit has an integer factor.
      const Atom& atom = forms().atom(term.atom);
      if (atom.kind != AtomKind::kQuotient || forms().at(atom.of).terms.size() != 1 ||
          !forms().at(atom.of).offsets.empty()) {
        continue;
      }
      const Term inner = forms().at(atom.of).terms[0];
      term = {inner.atom, term.size * inner.size / atom.size, term.times * inner.times};
    }
    if (!forms().at(id).offsets.empty()) fail("has an offset");
    for (const Term& term : terms) {
      if (term.times != 1 || !atoms.contains(term.atom)) fail("is no sum of digits");
    }
    if (terms.empty()) fail("has no index");
    if (std::none_of(terms.begin(), terms.end(), [](const Term& t) { return t.size.is_one(); }))
      fail("leaves out elements: no digit has the factor 1");
    const std::size_t variables = meaning_.variables->count();
    const auto divides = [&](const Size& a, const Size& b, bool surely = false) {
      const Size quotient = b / a;
      bool above = false;
      for (std::size_t v = 0; v < variables; ++v) {
        above = above || quotient.power(v) > 0;
        if (surely && !a.is_one() && quotient.power(v) < 0) return false;
      }
      return above;
    };
    // From the last digit to the first: C/g may be a multiple of 1, and of s, but g/C is none.
    for (std::size_t i = 0; i < terms.size(); ++i) {
      const auto first = terms.begin() + static_cast<std::ptrdiff_t>(i);
      const auto least = [&](bool surely) {
        return std::find_if(first, terms.end(), [&](const Term& term) {
          return (i > 0 || term.size.is_one()) &&
                 std::all_of(first, terms.end(), [&](const Term& other) {
                   return other == term || divides(term.size, other.size, surely);
                 });
        });
      };
      auto next = least(true);
      if (next == terms.end()) next = least(false);
      if (next == terms.end()) fail("is no sum of digits");
      std::swap(terms[i], *next);
    }
    FormId rest = actual;
    for (std::size_t i = terms.size(); i-- > 0;) {
      const std::string& name = atoms[terms[i].atom];
      once(name);
      if (i > 0 && !divides(terms[i - 1].size, terms[i].size)) fail("is no sum of digits");
      scope[name] = i == 0 ? rest : forms().quotient_of(rest, terms[i].size);
      if (i > 0) rest = forms().remainder_of(rest, terms[i].size);
      std::optional<Size> extent;
      if (i + 1 < terms.size()) extent = terms[i + 1].size / terms[i].size;
      digits_.push_back({name, scope[name], extent, terms[i].size, actual});
    }
  }

  // `where c < m`: of a reduction, an index of y, or a digit.
  void declare() {
    for (const Declared& declared : text().declared) {
      const Size given = size(declared.size, {});
      bool known = false;
      const auto agree = [&](std::optional<Size>& extent) {
        known = true;
        if (!extent) extent = given;
        if (*extent == given) return;
        text().fail("'" + declared.name + "' runs up to " + extent->text(*meaning_.variables),
                    declared.begin, "",
                    "it is declared to run up to " + given.text(*meaning_.variables));
      };
      for (Leaf& leaf : meaning_.leaves) {
        if (leaf.name == declared.name) agree(leaf.extent);
      }
      for (const Digit& digit : digits_) {
        if (digit.name != declared.name) continue;
        known = true;
        std::optional<Size> extent = digit.extent;
        if (extent) agree(extent);
        const int leaf = forms().only_leaf(digit.whole);
        if (!digit.extent && leaf >= 0) {
          std::optional<Size>& whole = meaning_.leaves[static_cast<std::size_t>(leaf)].extent;
          if (!whole) whole = given * digit.factor;
          if (*whole != given * digit.factor) {
            text().fail(
                "'" + declared.name + "' cannot run up to " + given.text(*meaning_.variables),
                declared.begin, "what makes " + whole->text(*meaning_.variables));
          }
        }
      }
      if (!known && indices_.contains(declared.name)) known = true;
      if (!known) text().fail("'" + declared.name + "' is no index of the formula", declared.begin);
    }
  }

  Size size(const AstPtr& ast, const Scope& scope) {
    try {
      return forms().as_size(form(ast, scope));
    } catch (const NoIndex& none) {
      text().fail(none.why, ast->begin, "a size, such as C_out/(g*s)", none.hint);
    }
  }

  FormId form(const AstPtr& ast, const Scope& scope) {
    try {
      switch (ast->kind) {
        case AstKind::kNumber: return forms().integer(ast->number);
        case AstKind::kName: return named(*ast, scope);
        case AstKind::kNegate: return forms().add(forms().integer(0), form(ast->a, scope), -1);
        case AstKind::kAdd: return forms().add(form(ast->a, scope), form(ast->b, scope));
        case AstKind::kSubtract: return forms().add(form(ast->a, scope), form(ast->b, scope), -1);
        case AstKind::kMultiply: return forms().multiply(form(ast->a, scope), form(ast->b, scope));
        case AstKind::kDivide: return forms().divide(form(ast->a, scope), form(ast->b, scope));
        case AstKind::kModulo: return forms().modulo(form(ast->a, scope), form(ast->b, scope));
        case AstKind::kPower: return forms().power(form(ast->a, scope), ast->b->number);
      }
    } catch (const NoIndex& none) {
      text().fail("'" + text().quote(*ast) + "' is no index: " + none.why, ast->begin, "",
                  none.hint);
    }
    throw InternalError("form: an unknown kind of expression");
  }

  FormId named(const Ast& ast, const Scope& scope) {
    const auto bound = scope.find(ast.name);
    if (bound != scope.end()) return bound->second;
    const auto definition = definitions_.find(ast.name);
    if (definition != definitions_.end()) {
      if (!open_.insert(ast.name).second)
        text().fail("'" + ast.name + "' is defined by itself", definition->second->begin);
      constexpr std::size_t kMostOpen = 40;
      if (open_.size() > kMostOpen) text().fail("definitions are nested too deeply", ast.begin);
      if (++expanded_ > kMaxExpanded) text().fail("definitions are used too often", ast.begin);
      const FormId value = form(definition->second->value, scope);
      open_.erase(ast.name);
      return value;
    }
    if (indices_.contains(ast.name)) {
      text().fail("'" + ast.name + "' is no index here", ast.begin,
                  "an index of what the statement makes, or of its sum",
                  "sum over it: sum(" + ast.name + ":size)");
    }
    return forms().size(Size::variable(meaning_.variables->index(ast.name)));
  }

  struct Digit {
    std::string name;
    FormId value = 0;
    std::optional<Size> extent;
    Size factor;
    FormId whole = 0;
  };
  static constexpr int kMaxExpanded = 5000;

  Meaning& meaning_;
  NameSet indices_;
  std::map<std::string, const Stage*> stages_;
  std::map<std::string, const Definition*> definitions_;
  NameSet taken_;
  NameSet open_;
  std::vector<Digit> digits_;
  std::size_t scratch_ = 0;
  int expanded_ = 0;
  bool read_data_ = false;
};

}  // namespace

namespace {

// h+a-1 with a window a of k = 3 is h+a-k/2: numbers stand for variables that have such a value.
void name_paddings(Meaning& meaning, const std::map<std::string, std::int64_t>& values) {
  const auto visit = [&](Index& index) {
    const Form form = meaning.forms.at(index.form);
    const std::int64_t whole = meaning.forms.whole(index.form);
    if (whole >= 0 || form.terms.size() < 2) return;
    std::optional<Size> window;
    for (const Term& term : form.terms) {
      const Atom& atom = meaning.forms.atom(term.atom);
      if (atom.kind != AtomKind::kLeaf || !term.size.is_one() || term.times != 1) continue;
      const Leaf& leaf = meaning.leaves[static_cast<std::size_t>(atom.of)];
      for (const auto& [name, value] : values) {
        const auto variable = meaning.variables->find(name);
        if (!leaf.reduction || !variable || *leaf.extent != Size::variable(*variable)) continue;
        if (value / 2 != -whole) continue;
        // Two windows of one size: the text does not say which.
        if (window && *window != *leaf.extent) return;
        window = *leaf.extent;
      }
    }
    if (!window) return;
    Form named = form;
    named.offsets.push_back({Size(), false, Size(), -whole});
    named.offsets.push_back({Size(), true, *window, -1});
    index.form = meaning.forms.intern(std::move(named));
  };
  for (Index& index : meaning.data) visit(index);
  for (Index& index : meaning.conditions) visit(index);
  for (Meaning::Weight& weight : meaning.weights) {
    for (Index& index : weight.indices) visit(index);
  }
}

}  // namespace

Meaning resolve(std::string_view text, const FormulaShapes& shapes) {
  FormulaText source = read_formula(text);
  Classes classes = classify(source, shapes);
  const VariablesPtr variables =
      Variables::make({classes.variables.begin(), classes.variables.end()});
  Meaning meaning{
      std::move(source), variables, Forms(variables, shapes.values), {}, 0, {}, {}, {}, {}, {}};
  if (!shapes.input.empty()) meaning.input = parse_shape(shapes.input, *variables);
  if (!shapes.output.empty()) meaning.output = parse_shape(shapes.output, *variables);
  Resolver(meaning, std::move(classes.indices)).run();
  infer_extents(meaning);
  name_paddings(meaning, shapes.values);
  return meaning;
}

}  // namespace syno::notation
