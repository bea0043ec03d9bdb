// Any strings either are rejected with a UserError, or make a specification whose texts read back as themselves.
//
// A line a string: input, output, then variables ("primary H: 2", "coefficient s=2: 2"), bindings ("binding H=4, W=6"),
// and limits ("limit max_depth 3").
#include "syno/spec/specification.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "syno/support/error.h"
#include "syno/support/text.h"

namespace {

bool take(std::string_view& line, std::string_view word) {
  if (!line.starts_with(word)) return false;
  line.remove_prefix(word.size());
  return true;
}

syno::SpecificationSource read(std::string_view text) {
  syno::SpecificationSource source;
  std::size_t number = 0;
  for (std::string_view line : syno::split_lines(text)) {
    if (number == 0) {
      source.input = line;
    } else if (number == 1) {
      source.output = line;
    } else if (take(line, "primary ")) {
      source.primary.emplace_back(line);
    } else if (take(line, "coefficient ")) {
      source.coefficient.emplace_back(line);
    } else if (take(line, "binding ")) {
      source.bindings.push_back(syno::Binding::parse(line));
    } else if (take(line, "limit ")) {
      const std::size_t space = line.find(' ');
      if (space == std::string_view::npos) continue;
      const std::string value(line.substr(space + 1));
      char* end = nullptr;
      const double number_of_limit = std::strtod(value.c_str(), &end);
      if (end == value.c_str()) continue;
      syno::set_limit(source.limits, line.substr(0, space), number_of_limit);
    } else if (take(line, "pass ")) {
      if (line.size() >= 3 && line[1] == ':')
        source.passed_through.emplace_back(line[0] - '0', line[2] - '0');
    }
    ++number;
  }
  return source;
}

// What was read is written and read again.
void check(const syno::Specification& spec) {
  const syno::Variables& variables = *spec.variables();
  syno::SpecificationSource again = spec.source();
  again.input = syno::shape_text(spec.input(), variables);
  again.output = syno::shape_text(spec.output(), variables);
  again.primary.clear();
  again.coefficient.clear();
  for (std::size_t v = 0; v < variables.count(); ++v) {
    const syno::VariableInfo& info = spec.variable(v);
    (info.primary ? again.primary : again.coefficient).push_back(syno::variable_text(info));
  }
  const syno::Specification same(again);
  if (same.key() != spec.key() || same.text() != spec.text()) std::abort();
  for (const syno::Shape* shape : {&spec.input(), &spec.output()}) {
    for (const syno::Dimension& dim : *shape) {
      const std::string text = dim.size.text(variables);
      if (syno::Size::parse(text, variables) != dim.size) std::abort();
      if (spec.legal(dim.size) != spec.why_illegal(dim.size).empty()) std::abort();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const syno::Specification spec(read(text));
    check(spec);
  } catch (const syno::UserError&) {
  }
  return 0;
}
