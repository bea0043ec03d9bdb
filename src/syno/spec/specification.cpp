#include "syno/spec/specification.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include "syno/support/error.h"
#include "syno/support/text.h"

namespace syno {
namespace {

std::int64_t elements(const Shape& shape, const Values& values) {
  Size product;
  for (const Dimension& dim : shape) product = product * dim.size;
  return product.evaluate(values).value_or(0);
}

// "7/2": the size where it is no integer.
std::string quotient_text(const Size& size, const Values& values) {
  double above = 1;
  double below = 1;
  for (std::size_t v = 0; v < values.size(); ++v) {
    (size.power(v) > 0 ? above : below) *=
        std::pow(static_cast<double>(values[v]), std::abs(size.power(v)));
  }
  return number_text(above) + "/" + number_text(below);
}

void check_pairs(const std::vector<std::pair<int, int>>& pairs, const Shape& output,
                 const Shape& input, const Variables& variables) {
  std::set<int> outs;
  std::set<int> ins;
  for (const auto& [out, in] : pairs) {
    const std::string pair = "(" + std::to_string(out) + ", " + std::to_string(in) + ")";
    if (out < 0 || in < 0 || out >= static_cast<int>(output.size()) ||
        in >= static_cast<int>(input.size())) {
      throw UserError("passed_through pair " + pair +
                      " names a dimension that does not exist\n  in " +
                      shape_text(input, variables) + " -> " + shape_text(output, variables));
    }
    const Size& from = input[static_cast<std::size_t>(in)].size;
    const Size& to = output[static_cast<std::size_t>(out)].size;
    if (from != to) {
      throw Complaint("passed_through pair " + pair + " joins dimensions of different sizes")
          .where(shape_text(input, variables) + " -> " + shape_text(output, variables))
          .expected("one size", to.text(variables) + " and " + from.text(variables))
          .error();
    }
    if (!outs.insert(out).second || !ins.insert(in).second) {
      throw Complaint("passed_through pair " + pair + " names a dimension twice")
          .where(shape_text(input, variables) + " -> " + shape_text(output, variables))
          .expected("each dimension in one pair at most", "another pair with it")
          .error();
    }
  }
}

}  // namespace

VariableInfo parse_variable(std::string_view text, bool primary) {
  Cursor cursor(text, "variable");
  VariableInfo info;
  info.primary = primary;
  info.name = cursor.name("of a variable");
  if (cursor.accept('=')) {
    const std::size_t column = cursor.column();
    const std::int64_t value = cursor.integer("as the value of '" + info.name + "'");
    if (value <= 0)
      cursor.fail_at("the value of '" + info.name + "' must be a positive integer, got " +
                         std::to_string(value),
                     column);
    info.value = value;
  }
  cursor.expect(':', "and a budget, as in \"" + info.name + ": 2\"");
  const std::size_t column = cursor.column();
  const std::int64_t budget = cursor.integer("as the budget of '" + info.name + "'");
  if (budget < 0 || budget > 100) {
    cursor.fail_at(
        "the budget of '" + info.name + "' must be within 0..100, got " + std::to_string(budget),
        column);
  }
  info.budget = static_cast<int>(budget);
  cursor.expect_end();
  return info;
}

std::string variable_text(const VariableInfo& variable) {
  return variable.name + (variable.value ? "=" + std::to_string(*variable.value) : "") + ": " +
         std::to_string(variable.budget);
}

Specification::Specification(SpecificationSource source) : source_(std::move(source)) {
  check_limits(source_.limits);
  std::vector<VariableInfo> infos;
  for (const std::string& text : source_.primary) infos.push_back(parse_variable(text, true));
  for (const std::string& text : source_.coefficient) infos.push_back(parse_variable(text, false));
  std::vector<std::string> names;
  for (const VariableInfo& info : infos) {
    if (std::find(names.begin(), names.end(), info.name) != names.end()) {
      throw Complaint("variable '" + info.name + "' is declared twice")
          .expected("each variable once, primary or coefficient", "\"" + variable_text(info) + "\"")
          .error();
    }
    names.push_back(info.name);
  }
  variables_ = Variables::make(names);
  for (const std::string& name : variables_->names()) {
    infos_.push_back(*std::find_if(infos.begin(), infos.end(),
                                   [&](const VariableInfo& info) { return info.name == name; }));
  }
  input_ = parse_shape(source_.input, *variables_);
  output_ = parse_shape(source_.output, *variables_);
  for (const Shape* shape : {&input_, &output_}) {
    for (std::size_t d = 0; d < shape->size(); ++d) {
      const Size& size = (*shape)[d].size;
      for (std::size_t v = 0; v < infos_.size(); ++v) {
        if (!infos_[v].primary || size.power(v) >= 0) continue;
        throw UserError("dimension " + std::to_string(d) + " has the primary variable '" +
                        infos_[v].name + "' in a denominator: " + size.text(*variables_) +
                        "\n  in shape \"" + (shape == &input_ ? source_.input : source_.output) +
                        "\"\n  expected: primary variables with positive powers only");
      }
      if (!size.is_below_one()) continue;
      throw Complaint("dimension " + std::to_string(d) +
                      " is an integer under no binding, as all of its powers are negative: " +
                      size.text(*variables_))
          .where("shape \"" + (shape == &input_ ? source_.input : source_.output) + "\"")
          .hint("write a size with a positive power, too, such as s^-1*H")
          .error();
    }
  }
  check_pairs(source_.passed_through, output_, input_, *variables_);
  for (const std::string& text : source_.symmetries) symmetries_.push_back(parse_symmetry(text));
  check_symmetries(symmetries_, input_, output_, *variables_);

  // A variable that only passed-through dimensions use may be left open: operators work for any value of it.
  std::vector<bool> open(infos_.size(), true);
  const auto close = [&](const Shape& shape, auto passes) {
    for (std::size_t d = 0; d < shape.size(); ++d) {
      for (std::size_t v = 0; v < infos_.size(); ++v) {
        if (!passes(static_cast<int>(d)) && shape[d].size.power(v) != 0) open[v] = false;
      }
    }
  };
  close(input_, [&](int d) { return passes_input(d); });
  close(output_, [&](int d) { return passes_output(d); });

  std::vector<Binding> bindings = source_.bindings;
  const bool all_default = std::all_of(infos_.begin(), infos_.end(), [&](const VariableInfo& info) {
    return info.value.has_value() || (open[variables_->index(info.name)] && info.primary);
  });
  if (bindings.empty() && all_default) bindings.emplace_back();
  if (bindings.size() > kMaxBindings) {
    throw UserError("a specification has at most " + std::to_string(kMaxBindings) +
                    " bindings, got " + std::to_string(bindings.size()) +
                    "\n  hint: give equal layers one binding with a multiplicity");
  }
  for (const Binding& binding : bindings) {
    std::map<std::string, std::int64_t> full;
    for (const auto& [name, value] : binding.values()) {
      if (!variables_->find(name)) {
        throw UserError("unknown variable '" + name + "' in binding \"" + binding.text() +
                        "\"\n  known variables: " + join(variables_->names(), ", "));
      }
      full[name] = value;
    }
    for (std::size_t v = 0; v < infos_.size(); ++v) {
      if (infos_[v].value) full.emplace(infos_[v].name, *infos_[v].value);
      if (infos_[v].primary && open[v]) full.emplace(infos_[v].name, 1);
    }
    const Values values = Binding(full).resolve(*variables_);
    for (const Shape* shape : {&input_, &output_}) {
      for (const Dimension& dim : *shape) {
        if (dim.size.evaluate(values)) continue;
        throw Complaint("dimension " + dim.size.text(*variables_) +
                        " is not a positive integer under the binding \"" + Binding(full).text() +
                        "\"")
            .where("shape \"" + (shape == &input_ ? source_.input : source_.output) + "\"")
            .expected("a positive integer", quotient_text(dim.size, values))
            .hint("give values with which every quotient is whole")
            .error();
      }
    }
    values_.push_back(values);
  }
  check_coefficients();
  multiplicities_ = source_.multiplicities;
  if (multiplicities_.empty()) multiplicities_.assign(values_.size(), 1);
  if (multiplicities_.size() != values_.size() ||
      std::any_of(multiplicities_.begin(), multiplicities_.end(),
                  [](std::int64_t m) { return m <= 0; })) {
    throw UserError(
        "multiplicities must be one positive integer a binding: " + std::to_string(values_.size()) +
        " bindings, " + std::to_string(source_.multiplicities.size()) + " multiplicities");
  }
  if (!source_.layer_macs.empty() && source_.layer_macs.size() != values_.size()) {
    throw UserError("layer_macs must be one number a binding: " + std::to_string(values_.size()) +
                    " bindings, " + std::to_string(source_.layer_macs.size()) + " numbers");
  }
  double total = 0;
  for (std::size_t b = 0; b < values_.size(); ++b) {
    shares_.push_back(source_.layer_macs.empty()
                          ? static_cast<double>(multiplicities_[b]) *
                                static_cast<double>(elements(input_, values_[b])) *
                                static_cast<double>(elements(output_, values_[b]))
                          : source_.layer_macs[b]);
    total += shares_.back();
  }
  for (double& share : shares_) share /= total;
  static std::atomic<std::uint64_t> made{0};
  identity_ = ++made;
  set_caps();
  full_fit_ = values_.size() == 64 ? ~FitMask{0} : (FitMask{1} << values_.size()) - 1;
}

void Specification::set_caps() {
  for (std::size_t p = 0; p < kPrimitiveCount; ++p) {
    const PrimitiveInfo& info = primitive_info(static_cast<Primitive>(p));
    const auto member = std::get<std::int64_t Limits::*>(limit_option(info.limit).member);
    caps_[p] = limits().*member;
    // What is repeated is limited by its product, and 1 switches it off.
    if (info.kind == StepKind::kRepetition) caps_[p] = caps_[p] > 1 ? limits().max_depth : 0;
  }
}

// A size that a coefficient of 1 makes is 1, or equal to one without it: operators would be found under several names.
// Layers may differ, though: a coefficient may be 1 in some of them.
void Specification::check_coefficients() const {
  for (std::size_t v = 0; v < infos_.size(); ++v) {
    const VariableInfo& info = infos_[v];
    const bool is_one = values_.empty()
                            ? info.value == 1
                            : std::all_of(values_.begin(), values_.end(),
                                          [&](const Values& values) { return values[v] == 1; });
    if (info.primary || !is_one) continue;
    throw Complaint("coefficient '" + info.name + "' is 1" +
                    (values_.empty() ? "" : " under every binding"))
        .where("variable \"" + variable_text(info) + "\"")
        .expected("a coefficient of at least 2", info.name + "=1")
        .hint("leave '" + info.name + "' out of the specification, or give it another value")
        .error();
  }
}

bool Specification::passes_output(int dim) const {
  return std::any_of(source_.passed_through.begin(), source_.passed_through.end(),
                     [&](const auto& pair) { return pair.first == dim; });
}

bool Specification::passes_input(int dim) const {
  return std::any_of(source_.passed_through.begin(), source_.passed_through.end(),
                     [&](const auto& pair) { return pair.second == dim; });
}

bool Specification::fit_suffices(FitMask fit) const {
  if (fit == full_fit_) return true;
  if (limits().min_fit >= 1) return false;
  double covered = 0;
  for (std::size_t b = 0; b < shares_.size(); ++b) {
    if (fit >> b & 1) covered += shares_[b];
  }
  // Shares are rounded; a hair below the limit is at the limit.
  return fit != 0 && covered >= limits().min_fit - 1e-9;
}

bool Specification::legal(const Size& size) const {
  int variables = 0;
  int power = 0;
  for (std::size_t v = 0; v < infos_.size(); ++v) {
    const int p = size.power(v);
    if (p == 0) continue;
    if (p < 0 && infos_[v].primary) return false;
    ++variables;
    power += std::abs(p);
  }
  return variables > 0 && variables <= limits().max_size_variables &&
         power <= limits().max_size_power;
}

std::string Specification::why_illegal(const Size& size) const {
  for (std::size_t v = 0; v < infos_.size(); ++v) {
    if (size.power(v) < 0 && infos_[v].primary) {
      return size.text(*variables_) + " has the primary " + infos_[v].name + " in a denominator";
    }
  }
  if (size.is_one()) return "a size of 1 is not used";
  if (size.variable_count() > limits().max_size_variables) {
    return size.text(*variables_) +
           " has more than max_size_variables=" + std::to_string(limits().max_size_variables) +
           " variables";
  }
  if (size.total_power() > limits().max_size_power) {
    return size.text(*variables_) +
           " has a total power above max_size_power=" + std::to_string(limits().max_size_power);
  }
  return "";
}

FitMask Specification::fit(const Size& size) const {
  FitMask mask = 0;
  for (std::size_t b = 0; b < values_.size(); ++b) {
    if (size.extent(values_[b])) mask |= FitMask{1} << b;
  }
  return mask;
}

std::string Specification::text() const {
  return shape_text(input_, *variables_) + " -> " + shape_text(output_, *variables_);
}

Hash128 Specification::key() const {
  Hasher hasher("specification");
  hasher.add(shape_text(input_, *variables_)).add(shape_text(output_, *variables_));
  for (const VariableInfo& info : infos_) hasher.add(variable_text(info)).add(info.primary);
  std::vector<std::pair<Values, double>> layers;
  for (std::size_t b = 0; b < values_.size(); ++b)
    layers.emplace_back(values_[b], static_cast<double>(multiplicities_[b]));
  std::sort(layers.begin(), layers.end());
  for (const auto& [values, multiplicity] : layers) {
    for (const std::int64_t value : values) hasher.add(value);
    hasher.add(static_cast<std::int64_t>(multiplicity));
  }
  auto pairs = source_.passed_through;
  std::sort(pairs.begin(), pairs.end());
  for (const auto& [out, in] : pairs) hasher.add(out).add(in);
  for (const Option<Limits>& option : limit_options()) {
    hasher.add(option.name).add(static_cast<std::int64_t>(option.get(limits()) * 1e6));
  }
  std::vector<std::string> symmetries;
  for (const Symmetry& symmetry : symmetries_) symmetries.push_back(symmetry_text(symmetry));
  std::sort(symmetries.begin(), symmetries.end());
  for (const std::string& symmetry : symmetries) hasher.add(symmetry);
  return hasher.finish();
}

}  // namespace syno
