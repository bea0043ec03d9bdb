#include "syno/graph/json_form.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "syno/graph/text_format.h"
#include "syno/support/error.h"
#include "syno/support/text.h"

namespace syno {
namespace {

constexpr std::int64_t kMaxShift = 1'000'000;
constexpr std::array<std::string_view, 4> kTop = {"out", "in", "steps", "match"};
constexpr std::array<WeightRole, 3> kWeightRoles = {WeightRole::kKeep, WeightRole::kDrop,
                                                    WeightRole::kJoin};

// What a field of a step holds: names of coordinates that are there or that it makes, one or two of them, a size, an
// amount, a flag that may be left out, or the dimensions of a weight.
enum class Kind { kOne, kPair, kNew, kNewPair, kSize, kInteger, kFlag, kRoles };

struct StepField {
  std::string_view name;
  Kind kind;
};

// The name of the argument in JSON, and what it holds.
std::optional<StepField> argument_field(Argument argument) {
  switch (argument) {
    case Argument::kNone: return std::nullopt;
    case Argument::kExtent: return StepField{"size", Kind::kSize};
    case Argument::kBlock: return StepField{"block", Kind::kSize};
    case Argument::kFactor: return StepField{"S", Kind::kSize};
    case Argument::kAmount: return StepField{"d", Kind::kInteger};
    case Argument::kCausal: return StepField{"causal", Kind::kFlag};
    case Argument::kRoles: return StepField{"dims", Kind::kRoles};
  }
  throw InternalError("argument_field: not an argument");
}

// The fields of a step behind "op", in the order in which they are written.
std::vector<StepField> fields_of(Primitive primitive) {
  const PrimitiveInfo& info = primitive_info(primitive);
  std::vector<StepField> fields;
  if (info.consumes > 0 && info.kind != StepKind::kContraction)
    fields.push_back({"in", info.consumes == 1 ? Kind::kOne : Kind::kPair});
  if (const auto argument = argument_field(info.argument)) fields.push_back(*argument);
  if (info.produces > 0)
    fields.push_back({"out", info.produces == 1 ? Kind::kNew : Kind::kNewPair});
  return fields;
}

// Writing.

std::string list_of(const std::vector<std::string>& parts) {
  return "[" + join(parts, ", ") + "]";
}

std::string shape_json(const Shape& shape, const Variables& variables) {
  std::vector<std::string> dims;
  for (const Dimension& dim : shape) {
    dims.push_back("{\"size\": " + json::quoted(dim.size.text(variables)) +
                   ", \"unordered\": " + (dim.unordered ? "true" : "false") +
                   (dim.causal ? ", \"causal\": true" : "") + "}");
  }
  return list_of(dims);
}

std::string field_json(const Graph& graph, const Step& step, const StepField& field) {
  const auto& names = field.name == "in" ? step.in : step.out;
  const auto name = [&](CoordinateId id) { return json::quoted(graph.name(id)); };
  switch (field.kind) {
    case Kind::kOne:
    case Kind::kNew: return name(names[0]);
    case Kind::kPair:
    case Kind::kNewPair: return list_of({name(names[0]), name(names[1])});
    case Kind::kSize: return json::quoted(step.size.text(*graph.variables()));
    case Kind::kInteger: return std::to_string(step.amount);
    case Kind::kFlag: return step.causal ? "true" : "";
    case Kind::kRoles: {
      std::vector<std::string> dims;
      for (const WeightDim& dim : step.dims)
        dims.push_back(list_of({name(dim.coordinate), json::quoted(role_name(dim.role))}));
      return list_of(dims);
    }
  }
  throw InternalError("field_json: not a kind");
}

std::string step_json(const Graph& graph, const Step& step) {
  std::string text = "{\"op\": " + json::quoted(primitive_info(step.primitive).name);
  for (const StepField& field : fields_of(step.primitive)) {
    const std::string value = field_json(graph, step, field);
    if (!value.empty()) text += ", " + json::quoted(field.name) + ": " + value;
  }
  return text + "}";
}

// Reading.

bool is_name(const json::Value& value, bool is_new) {
  const std::string* text = value.as<std::string>();
  return text != nullptr && !(is_new && text->empty());
}

bool are_two_names(const json::Value& value, bool are_new) {
  const json::List* items = value.as<json::List>();
  return items != nullptr && items->size() == 2 &&
         std::all_of(items->begin(), items->end(),
                     [&](const json::Value& item) { return is_name(item, are_new); });
}

std::optional<WeightRole> role_of(const json::Value& value) {
  const std::string* text = value.as<std::string>();
  for (const WeightRole role : kWeightRoles) {
    if (text != nullptr && *text == role_name(role)) return role;
  }
  return std::nullopt;
}

std::string_view wanted(Kind kind) {
  switch (kind) {
    case Kind::kOne: return "the name of a coordinate";
    case Kind::kNew: return "a name for the new coordinate";
    case Kind::kPair:
    case Kind::kNewPair: return "a list of two names";
    case Kind::kRoles: return "a list of [name, role] with role keep, drop or join";
    case Kind::kInteger: return "a non-zero integer within 1000000";
    case Kind::kFlag: return "true or false";
    case Kind::kSize: return "a size string such as \"k^2\"";
  }
  throw InternalError("wanted: not a kind");
}

bool is_good(Kind kind, const json::Value& value) {
  switch (kind) {
    case Kind::kOne:
    case Kind::kSize: return is_name(value, false);
    case Kind::kNew: return is_name(value, true);
    case Kind::kPair: return are_two_names(value, false);
    case Kind::kNewPair: return are_two_names(value, true);
    case Kind::kFlag: return value.is_null() || value.as<bool>() != nullptr;
    case Kind::kInteger: {
      const json::Number* number = value.as<json::Number>();
      return number != nullptr && number->whole && *number->whole != 0 &&
             *number->whole >= -kMaxShift && *number->whole <= kMaxShift;
    }
    case Kind::kRoles: {
      const json::List* dims = value.as<json::List>();
      return dims != nullptr && !dims->empty() &&
             std::all_of(dims->begin(), dims->end(), [](const json::Value& dim) {
               return are_two_names(dim, false) && role_of(dim.as<json::List>()->back());
             });
    }
  }
  throw InternalError("is_good: not a kind");
}

// Which entry of a list is wrong, and why, with the entry; else no words and `value`.
std::pair<std::string, const json::Value*> wrong_entry(Kind kind, const json::Value& value) {
  const json::List* items = value.as<json::List>();
  if (items == nullptr) return {"", &value};
  for (std::size_t i = 0; i < items->size(); ++i) {
    const json::Value& entry = (*items)[i];
    const std::string number = "entry " + std::to_string(i + 1);
    if ((kind == Kind::kPair || kind == Kind::kNewPair) && items->size() == 2) {
      if (!is_name(entry, kind == Kind::kNewPair))
        return {": " + number + " is not a name", &entry};
    } else if (kind == Kind::kRoles) {
      const json::List* dim = entry.as<json::List>();
      if (dim == nullptr || dim->size() != 2)
        return {": " + number + " is not a pair of a name and a role", &entry};
      if (!is_name(dim->front(), false))
        return {": the name in " + number + " is not a string", &dim->front()};
      if (!role_of(dim->back())) return {": the role in " + number + " is not known", &dim->back()};
    }
  }
  return {"", &value};
}

class FormReader {
 public:
  explicit FormReader(const json::Value& data) : data_(data) {}

  Operator read() {
    check_object(data_, kTop, kTop);
    for (const std::string_view field : kTop) {
      const json::Value& value = *data_.field(field);
      if (value.as<json::List>() == nullptr)
        fail("the field '" + std::string(field) + "' is not a list", "a list",
             json::described(value));
    }
    const std::vector<Dim> output = dims("out");
    const std::vector<Dim> input = dims("in");
    std::vector<StepData> steps;
    for (const json::Value& step : list("steps")) steps.push_back(check_step(steps.size(), step));
    where_ = "'out' of the operator's JSON";
    guarded([&] {
      const VariablesPtr variables = Variables::make(variables_);
      graph_.emplace(variables, shape(output, *variables));
    });
    for (std::size_t d = 0; d < output.size(); ++d)
      name("o" + std::to_string(d), static_cast<CoordinateId>(d));
    for (std::size_t number = 0; number < steps.size(); ++number) {
      place(number, steps[number].primitive);
      apply(steps[number]);
    }
    where_ = "'match' of the operator's JSON";
    std::vector<CoordinateId> match;
    for (const json::Value& entry : list("match")) match.push_back(coordinate(entry));
    return guarded(
        [&] { return Operator(*graph_, shape(input, *graph_->variables()), std::move(match)); });
  }

 private:
  struct Dim {
    std::string size;
    bool unordered = false;
    bool causal = false;
  };
  // A step whose form has been checked.
  struct StepData {
    Primitive primitive;
    const json::Value* data;
  };

  const json::List& list(std::string_view field) const {
    return *data_.field(field)->as<json::List>();
  }

  // Checks of form, before anything is built.

  void check_object(const json::Value& value, std::span<const std::string_view> required,
                    std::span<const std::string_view> known) const {
    const json::Object* fields = value.as<json::Object>();
    if (fields == nullptr) fail("this is not an object", "an object", json::described(value));
    std::vector<std::string> names;
    for (const json::Field& field : *fields) names.push_back(field.first);
    for (const std::string_view field : required) {
      if (value.field(field) != nullptr) continue;
      const std::string quoted = "'" + std::string(field) + "'";
      fail("the field " + quoted + " is missing", quoted,
           "only " + (names.empty() ? "nothing" : join(names, ", ")));
    }
    if (known.empty()) return;
    for (const std::string& field : names) {
      if (std::find(known.begin(), known.end(), field) != known.end()) continue;
      const std::string quoted = "'" + field + "'";
      fail("the field " + quoted + " is not known", join({known.begin(), known.end()}, ", "),
           json::described(quoted));
    }
  }

  std::vector<Dim> dims(std::string_view field) {
    static constexpr std::array<std::string_view, 3> kDim = {"size", "unordered", "causal"};
    std::vector<Dim> result;
    for (const json::Value& dim : list(field)) {
      where_ = "dimension " + std::to_string(result.size()) + " of '" + std::string(field) +
               "' of the operator's JSON";
      check_object(dim, std::span(kDim).first(1), kDim);
      Dim made{size("size", *dim.field("size")), flag(dim, "unordered"), flag(dim, "causal")};
      if (made.unordered && made.causal) fail("a dimension cannot be unordered and causal at once");
      if (trim(made.size) == "1") fail("a dimension of size 1 is not used: leave it out");
      result.push_back(std::move(made));
    }
    return result;
  }

  // Checks that a step has the fields of its op.
  StepData check_step(std::size_t number, const json::Value& step) {
    static constexpr std::array<std::string_view, 1> kOp = {"op"};
    where_ = "step " + std::to_string(number + 1) + " of the operator's JSON";
    check_object(step, kOp, {});
    const json::Value& op = *step.field("op");
    const std::string* named = op.as<std::string>();
    const auto primitive = named != nullptr ? find_primitive(*named) : std::nullopt;
    if (!primitive) {
      std::vector<std::string> ops;
      for (std::size_t i = 0; i < kPrimitiveCount; ++i)
        ops.emplace_back(primitive_info(static_cast<Primitive>(i)).name);
      fail("the step's 'op' is not known", "one of " + join(ops, ", "), json::described(op));
    }
    place(number, *primitive);
    std::vector<std::string_view> required = {"op"};
    std::vector<std::string_view> known = {"op"};
    const std::vector<StepField> fields = fields_of(*primitive);
    for (const StepField& field : fields) {
      known.push_back(field.name);
      if (field.kind != Kind::kFlag) required.push_back(field.name);
    }
    check_object(step, required, known);
    for (const StepField& field : fields) {
      const json::Value* value = step.field(field.name);
      if (value == nullptr) continue;
      check_field(field.name, field.kind, *value);
      if (field.kind == Kind::kSize) size(field.name, *value);
    }
    return {*primitive, &step};
  }

  void check_field(std::string_view field, Kind kind, const json::Value& value) const {
    if (is_good(kind, value)) return;
    const auto [why, found] = wrong_entry(kind, value);
    fail("the field '" + std::string(field) + "' is malformed" + why, wanted(kind),
         json::described(*found));
  }

  // A size as it is written; its variables are noted.
  std::string size(std::string_view field, const json::Value& value) {
    check_field(field, Kind::kSize, value);
    const std::string& text = *value.as<std::string>();
    for (std::string& name : guarded([&] { return Size::names_in(text); }))
      variables_.push_back(std::move(name));
    return text;
  }

  bool flag(const json::Value& dim, std::string_view field) const {
    const json::Value* value = dim.field(field);
    if (value == nullptr) return false;
    const bool* flag = value->as<bool>();
    if (flag == nullptr)
      fail("the field '" + std::string(field) + "' is malformed", wanted(Kind::kFlag),
           json::described(*value));
    return *flag;
  }

  // Building.

  static Shape shape(const std::vector<Dim>& dims, const Variables& variables) {
    Shape result;
    for (const Dim& dim : dims)
      result.push_back({Size::parse(dim.size, variables), dim.unordered, dim.causal});
    return result;
  }

  void apply(const StepData& data) {
    Step step;
    step.primitive = data.primitive;
    std::vector<std::string> results;
    std::string size;
    for (const StepField& field : fields_of(data.primitive)) {
      const json::Value* value = data.data->field(field.name);
      if (value == nullptr) continue;
      const json::List* items = value->as<json::List>();
      switch (field.kind) {
        case Kind::kOne: step.in[0] = coordinate(*value); break;
        case Kind::kPair: step.in = {coordinate(items->front()), coordinate(items->back())}; break;
        case Kind::kNew: results = {*value->as<std::string>()}; break;
        case Kind::kNewPair:
          results = {*items->front().as<std::string>(), *items->back().as<std::string>()};
          break;
        case Kind::kSize: size = *value->as<std::string>(); break;
        case Kind::kInteger:
          step.amount = static_cast<int>(*value->as<json::Number>()->whole);
          break;
        case Kind::kFlag: step.causal = !value->is_null() && *value->as<bool>(); break;
        case Kind::kRoles:
          for (const json::Value& dim : *items) {
            const json::List& pair = *dim.as<json::List>();
            step.dims.push_back({coordinate(pair.front()), *role_of(pair.back())});
          }
          break;
      }
    }
    const Step applied = guarded([&] {
      if (!size.empty()) step.size = Size::parse(size, *graph_->variables());
      return graph_->apply(std::move(step));
    });
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (find(results[i]) != kNoCoordinate)
        fail("the coordinate '" + results[i] + "' is made twice", "a new name",
             json::described(results[i]));
      name(std::move(results[i]), applied.out[i]);
    }
  }

  void name(std::string own, CoordinateId id) { names_.emplace_back(std::move(own), id); }

  CoordinateId find(std::string_view name) const {
    for (const auto& [known, id] : names_) {
      if (known == name) return id;
    }
    return kNoCoordinate;
  }

  CoordinateId coordinate(const json::Value& value) const {
    const std::string* name = value.as<std::string>();
    if (name == nullptr)
      fail("this is not the name of a coordinate", "a string", json::described(value));
    const CoordinateId id = find(*name);
    if (id == kNoCoordinate) {
      std::vector<std::string> known;
      for (const auto& [other, other_id] : names_) known.push_back(other);
      fail("unknown coordinate '" + *name + "'",
           "one of " + (known.empty() ? "none" : join(known, ", ")), json::described(*name));
    }
    return id;
  }

  // Runs `build` and adds the place to its errors, in the names of the data.
  template <class Build>
  auto guarded(const Build& build) const -> decltype(build()) {
    try {
      return build();
    } catch (const UserError& error) {
      const std::string message =
          graph_ ? with_own_names(error.what(), *graph_, names_) : error.what();
      throw UserError(message + "\n  in " + where_);
    }
  }

  void place(std::size_t number, Primitive primitive) {
    where_ = "step " + std::to_string(number + 1) + " (" +
             std::string(primitive_info(primitive).name) + ") of the operator's JSON";
  }

  [[noreturn]] void fail(const std::string& message) const {
    throw Complaint(message).where(where_).error();
  }
  [[noreturn]] void fail(const std::string& message, std::string_view expected,
                         const std::string& found) const {
    throw Complaint(message).where(where_).expected(std::string(expected), found).error();
  }

  const json::Value& data_;
  std::string where_ = "the operator's JSON";
  std::vector<std::string> variables_;
  CoordinateNames names_;
  std::optional<Graph> graph_;
};

}  // namespace

std::string operator_json(const Operator& op) {
  const Variables& variables = *op.variables();
  std::vector<std::string> steps;
  for (const Step& step : op.graph().steps()) steps.push_back(step_json(op.graph(), step));
  std::vector<std::string> match;
  for (const CoordinateId id : op.match()) match.push_back(json::quoted(op.graph().name(id)));
  return "{\"out\": " + shape_json(op.output(), variables) +
         ", \"in\": " + shape_json(op.input(), variables) + ", \"steps\": " + list_of(steps) +
         ", \"match\": " + list_of(match) + "}";
}

Operator parse_operator_json(std::string_view text) {
  return read_operator_json(json::read(text, "the operator"));
}

Operator read_operator_json(const json::Value& data) {
  return FormReader(data).read();
}

}  // namespace syno
