// Index notation, damaged in any way: an operator or a UserError. What is read prints as a formula that is read again
// as an operator of the same shapes.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "syno/notation/formula.h"
#include "syno/notation/parse.h"
#include "syno/support/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // The first two lines are the shapes, where they begin with '['.
  syno::FormulaShapes shapes;
  std::string_view rest = text;
  for (std::string* shape : {&shapes.input, &shapes.output}) {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos || !rest.starts_with('[')) continue;
    *shape = rest.substr(0, end);
    rest.remove_prefix(end + 1);
  }
  shapes.values = {{"s", 2}, {"k", 3}};
  try {
    const syno::Operator op = syno::parse_formula(rest, shapes).op;
    shapes.input = syno::shape_text(op.input(), *op.variables());
    shapes.output = syno::shape_text(op.output(), *op.variables());
    try {
      const syno::Operator again = syno::parse_formula(syno::formula(op), shapes).op;
      if (again.input() != op.input() && again.variables()->names() == op.variables()->names())
        std::abort();
    } catch (const syno::UserError&) {
      // A formula may have more readings than are gone through.
    }
  } catch (const syno::UserError&) {
  }
  return 0;
}
