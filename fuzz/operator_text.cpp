// Any text either is rejected with a UserError, or is an operator whose canonical text reads back as itself.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "syno/graph/operator.h"
#include "syno/support/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const syno::Operator op = syno::Operator::parse(text);
    if (syno::Operator::parse(op.text()).text() != op.text()) std::abort();
  } catch (const syno::UserError&) {
  }
  return 0;
}
