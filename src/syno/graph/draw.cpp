#include "syno/graph/draw.h"

#include <algorithm>

#include "syno/support/text.h"

namespace syno {
namespace {

constexpr std::string_view kPreamble =
    "digraph operator {\n"
    "  rankdir=BT;\n"
    "  node [fontname=\"Helvetica\", fontsize=11, style=filled, fillcolor=\"#ffffff\", "
    "color=\"#4a5568\"];\n"
    "  edge [fontname=\"Helvetica\", fontsize=9, color=\"#4a5568\", arrowsize=0.6];\n";

// Escapes what DOT treats specially inside double quotes.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

std::string step_label(const Step& step, const Variables& variables) {
  const PrimitiveInfo& info = step.info();
  std::string name(info.name);
  name.front() = static_cast<char>(name.front() - 'a' + 'A');
  if (takes_size(info.argument)) return name + " " + step.size.text(variables);
  if (info.argument == Argument::kAmount)
    return name + " " + (step.amount > 0 ? "+" : "") + std::to_string(step.amount);
  return step.causal ? name + " causal" : name;
}

std::string draw(const Graph& graph, const Shape* input, const std::vector<CoordinateId>* match) {
  const Variables& variables = *graph.variables();
  std::string dot(kPreamble);
  const auto node = [&](const std::string& id, const std::string& label, const char* shape,
                        const char* fill) {
    dot += "  " + id + " [label=" + quoted(label) + ", shape=" + shape + ", fillcolor=\"" + fill +
           "\"];\n";
  };
  const auto edge = [&](const std::string& from, const std::string& to, const std::string& label,
                        bool dashed = false) {
    dot += "  " + from + " -> " + to + " [label=" + quoted(" " + label) +
           (dashed ? ", style=dashed" : "") + "];\n";
  };
  const auto label = [&](CoordinateId id) {
    return graph.name(id) + ": " + graph.extent(id).text(variables);
  };

  for (std::size_t d = 0; d < graph.output().size(); ++d) {
    node("out" + std::to_string(d), "y[" + std::to_string(d) + "]", "box", "#d6e4f0");
  }
  // Where each coordinate can be taken from now: the node that last touched it.
  std::vector<std::string> source(graph.coordinates().size());
  for (std::size_t d = 0; d < graph.output().size(); ++d) source[d] = "out" + std::to_string(d);
  for (std::size_t s = 0; s < graph.steps().size(); ++s) {
    const Step& step = graph.steps()[s];
    const std::string id = "s" + std::to_string(s);
    if (step.is_contraction()) {
      const auto weight =
          std::find_if(graph.weights().begin(), graph.weights().end(),
                       [&](const Weight& w) { return w.step == static_cast<std::int16_t>(s); });
      node(id, "weight " + std::to_string(weight - graph.weights().begin()), "ellipse", "#fbe8c8");
      for (const WeightDim& dim : step.dims) {
        const auto at = static_cast<std::size_t>(dim.coordinate);
        edge(source[at], id,
             label(dim.coordinate) + (dim.role == WeightRole::kKeep
                                          ? ""
                                          : " (" + std::string(role_name(dim.role)) + ")"),
             dim.role != WeightRole::kKeep);
        if (dim.role == WeightRole::kKeep) source[at] = id;
      }
      continue;
    }
    node(id, step_label(step, variables), step.is_reduction() ? "box" : "ellipse",
         step.is_reduction() ? "#e7e0f3" : "#e3f1e5");
    const PrimitiveInfo& info = step.info();
    for (int j = 0; j < info.consumes; ++j) {
      const CoordinateId in = step.in[static_cast<std::size_t>(j)];
      edge(source[static_cast<std::size_t>(in)], id, label(in));
    }
    for (int i = 0; i < info.produces; ++i)
      source[static_cast<std::size_t>(step.out[static_cast<std::size_t>(i)])] = id;
  }
  if (input == nullptr) {
    for (const CoordinateId id : graph.frontier()) {
      node("f" + std::to_string(id), graph.name(id), "plaintext", "#ffffff");
      edge(source[static_cast<std::size_t>(id)], "f" + std::to_string(id), label(id));
    }
  } else {
    for (std::size_t d = 0; d < input->size(); ++d) {
      node("in" + std::to_string(d), "x[" + std::to_string(d) + "]", "box", "#d6e4f0");
      edge(source[static_cast<std::size_t>((*match)[d])], "in" + std::to_string(d),
           label((*match)[d]));
    }
  }
  return dot + "}\n";
}

}  // namespace

std::string to_dot(const Operator& op) {
  return draw(op.graph(), &op.input(), &op.match());
}
std::string to_dot(const Graph& graph) {
  return draw(graph, nullptr, nullptr);
}

}  // namespace syno
