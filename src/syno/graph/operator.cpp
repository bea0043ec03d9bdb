#include "syno/graph/operator.h"

#include <algorithm>

#include "syno/graph/canonical.h"
#include "syno/graph/text_format.h"
#include "syno/support/error.h"
#include "syno/support/text.h"

namespace syno {
namespace {

VariablesPtr used_variables(const Graph& graph, const Shape& input) {
  const Variables& all = *graph.variables();
  std::vector<std::string> names;
  const auto use = [&](const Size& size) {
    for (std::size_t v = 0; v < all.count(); ++v) {
      if (size.power(v) != 0) names.push_back(all.name(v));
    }
  };
  for (const Dimension& dim : input) use(dim.size);
  for (const Coordinate& coordinate : graph.coordinates()) use(coordinate.extent);
  for (const Step& step : graph.steps()) use(step.size);
  return Variables::make(std::move(names));
}

}  // namespace

Operator::Operator(const Graph& graph, Shape input, std::vector<CoordinateId> match)
    : input_(std::move(input)) {
  const Variables& variables = *graph.variables();
  if (match.size() != input_.size()) {
    throw Complaint("the matching names " + std::to_string(match.size()) + " coordinates for " +
                    std::to_string(input_.size()) + " input dimensions")
        .where("input " + shape_text(input_, variables))
        .error();
  }
  std::vector<CoordinateId> sorted = match;
  std::sort(sorted.begin(), sorted.end());
  if (sorted != graph.frontier()) {
    std::vector<std::string> names;
    for (const CoordinateId id : graph.frontier()) names.push_back("'" + graph.name(id) + "'");
    std::vector<std::string> got;
    for (const CoordinateId id : match)
      got.push_back(id == kNoCoordinate ? "?" : "'" + graph.name(id) + "'");
    throw Complaint("the matching must use each coordinate of the frontier once")
        .expected("each of " + join(names, ", "), join(got, ", "))
        .error();
  }
  for (std::size_t d = 0; d < match.size(); ++d) {
    if (graph.extent(match[d]) == input_[d].size) continue;
    throw Complaint("coordinate '" + graph.name(match[d]) +
                    "' cannot be matched with input dimension " + std::to_string(d))
        .where("input " + shape_text(input_, variables))
        .expected("extent " + input_[d].size.text(variables),
                  graph.extent(match[d]).text(variables))
        .error();
  }
  CanonicalGraph canonical = canonicalize(graph, match);
  const VariablesPtr used = used_variables(graph, input_);
  graph_ = canonical.graph.in_table(used);
  for (const CoordinateId id : match)
    match_.push_back(canonical.renamed[static_cast<std::size_t>(id)]);
  Hasher hasher("operator");
  hasher.add(canonical.hash);
  for (Dimension& dim : input_) {
    hasher.add(dim.size.hash(variables)).add(dim.unordered).add(dim.causal);
    dim.size = dim.size.translate(variables, *used);
  }
  structure_ = hasher.finish();
}

Operator Operator::in_table(const VariablesPtr& variables) const {
  Operator result = *this;
  result.graph_ = graph_.in_table(variables);
  for (Dimension& dim : result.input_)
    dim.size = dim.size.translate(*graph_.variables(), *variables);
  return result;
}

std::string Operator::text() const {
  std::string text = std::string(kOperatorHeader) + "\n" + body_text(graph_, &input_) + "match";
  for (const CoordinateId id : match_) text += " " + graph_.name(id);
  return text + "\n";
}

Operator Operator::parse(std::string_view text) {
  ParsedText parsed = parse_text(text, kOperatorHeader, true);
  try {
    return Operator(parsed.graph, *std::move(parsed.input), parsed.match);
  } catch (const UserError& error) {
    throw UserError(with_own_names(error.what(), parsed.graph, parsed.names) + "\n  in " +
                    parsed.match_line);
  }
}

bool Operator::passes_through(CoordinateId id) const {
  return graph_.is_iterator(id) && graph_.weight_count(id) == 0 &&
         std::find(match_.begin(), match_.end(), id) != match_.end();
}

std::optional<std::string> Operator::batch() const {
  if (match_.empty() || match_[0] != 0 || !passes_through(0)) return std::nullopt;
  const Size& size = output()[0].size;
  const Variables& table = *variables();
  for (std::size_t v = 0; v < table.count(); ++v) {
    if (size != Size::variable(v)) continue;
    const auto has = [v](const auto& holder) { return holder.size.power(v) != 0; };
    const auto in_output = std::count_if(output().begin(), output().end(), has);
    const auto in_input = std::count_if(input_.begin(), input_.end(), has);
    const auto& steps = graph_.steps();
    if (in_output == 1 && in_input == 1 && std::none_of(steps.begin(), steps.end(), has))
      return table.name(v);
  }
  return std::nullopt;
}

std::vector<std::vector<Size>> Operator::weight_shapes() const {
  std::vector<std::vector<Size>> shapes;
  for (const Weight& weight : graph_.weights()) {
    std::vector<Size> shape;
    for (const CoordinateId id : weight.dims) shape.push_back(graph_.extent(id));
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

std::string graph_text(const Graph& graph) {
  return std::string(kGraphHeader) + "\n" + body_text(canonicalize(graph).graph, nullptr);
}

Graph parse_graph(std::string_view text) {
  return canonicalize(parse_text(text, kGraphHeader, false).graph).graph;
}

std::vector<std::vector<CoordinateId>> matchings(const Graph& graph, const Shape& input,
                                                 const std::vector<std::pair<int, int>>& fixed) {
  std::vector<std::vector<CoordinateId>> found;
  if (graph.frontier().size() != input.size()) return found;
  std::vector<CoordinateId> match(input.size(), kNoCoordinate);
  std::vector<CoordinateId> free = graph.frontier();
  for (const auto& [out, in] : fixed) {
    const auto place = std::find(free.begin(), free.end(), static_cast<CoordinateId>(out));
    if (place == free.end()) return found;
    match[static_cast<std::size_t>(in)] = *place;
    free.erase(place);
  }
  std::vector<Hash128> seen;
  const auto visit = [&](auto&& self, std::size_t d) -> void {
    while (d < input.size() && match[d] != kNoCoordinate) ++d;
    if (d == input.size()) {
      const Hash128 hash = structure_hash(graph, match);
      if (std::find(seen.begin(), seen.end(), hash) != seen.end()) return;
      seen.push_back(hash);
      found.push_back(match);
      return;
    }
    for (std::size_t i = 0; i < free.size(); ++i) {
      const CoordinateId id = free[i];
      if (id == kNoCoordinate || graph.extent(id) != input[d].size) continue;
      match[d] = id;
      free[i] = kNoCoordinate;
      self(self, d + 1);
      free[i] = id;
      match[d] = kNoCoordinate;
    }
  };
  visit(visit, 0);
  return found;
}

}  // namespace syno
