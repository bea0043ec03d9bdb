// Any text either is refused with a UserError, or is the JSON form of an operator that is written and read back as itself.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "syno/graph/json_form.h"
#include "syno/support/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const syno::Operator op = syno::parse_operator_json(text);
    const std::string written = syno::operator_json(op);
    const syno::Operator again = syno::parse_operator_json(written);
    if (!(again == op) || syno::operator_json(again) != written) std::abort();
  } catch (const syno::UserError&) {
  }
  return 0;
}
