// The text format of graphs and operators (described in operator.h): printing and reading its lines.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "syno/graph/graph.h"

namespace syno {

inline constexpr std::string_view kOperatorHeader = "syno operator 1";
inline constexpr std::string_view kGraphHeader = "syno graph 1";

/// One step as a line, with the names that its coordinates have in `graph`; its results only where `step.out` names them.
std::string step_text(const Graph& graph, const Step& step);

/// The lines `out`, `in` (when there is an input) and one line a step, in the order of the graph.
std::string body_text(const Graph& graph, const Shape* input);

/// What a text of strangers calls its coordinates, in the order in which they were made.
using CoordinateNames = std::vector<std::pair<std::string, CoordinateId>>;

/// `message` with those names where it quotes the names that `graph` has for the coordinates.
std::string with_own_names(const std::string& message, const Graph& graph,
                           const CoordinateNames& names);

struct ParsedText {
  Graph graph;
  std::optional<Shape> input;
  std::vector<CoordinateId> match;
  CoordinateNames names;
  /// The line `match`, as "line 8: ...".
  std::string match_line;
};

/// Reads a text whose first line is `header`; a complete one has the lines `in` and `match`. Throws UserError that names
/// the line.
ParsedText parse_text(std::string_view text, std::string_view header, bool complete);

}  // namespace syno
