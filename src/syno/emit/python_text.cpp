#include "syno/emit/python_text.h"

#include "syno/support/text.h"

namespace syno {
namespace {

// A docstring may hold neither its own end nor escape sequences.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\' || c == '"') result += '\\';
    result += c;
  }
  return result;
}

}  // namespace

void print_docstring(Printer& out, const Plan& plan, const std::string& formula,
                     const std::vector<std::string>& notes) {
  out.line("\"\"\"A linear operator on x " + plan.tensor_text(plan.input) + ".");
  out.line();
  out.line("Returns " + plan.tensor_text(plan.output) + ". " + with_thousands(plan.cost.macs) +
           " MACs, " + with_thousands(plan.params) + " parameters.");
  if (!plan.fold_stages.empty()) {
    out.line();
    out.line("Weights are combined first, in every call, so that gradients reach each of them:");
    out.line(with_thousands(plan.fold_macs) + " MACs that do not depend on x.");
  }
  if (!formula.empty()) {
    out.line();
    for (const std::string_view line : split_lines(formula)) out.line(escaped(line));
  }
  if (!notes.empty()) out.line();
  for (const std::string& note : notes) out.line(note);
  out.line("\"\"\"");
}

std::string tuple_text(const std::vector<std::string>& parts) {
  return "(" + join(parts, ", ") + (parts.size() == 1 ? ",)" : ")");
}

std::vector<std::string> numbers_text(const std::vector<std::int64_t>& numbers) {
  std::vector<std::string> parts;
  for (const std::int64_t number : numbers) parts.push_back(std::to_string(number));
  return parts;
}

std::vector<std::string> axis_names(const LoopNest& nest) {
  std::vector<std::string> names = nest.names();
  for (std::string& name : names) {
    if (name == "x" || name == "y") name += '_';
  }
  return names;
}

}  // namespace syno
