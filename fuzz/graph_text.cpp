// Any text either is rejected with a UserError, or is a partial graph whose canonical text reads back as itself.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "syno/graph/canonical.h"
#include "syno/graph/operator.h"
#include "syno/support/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const syno::Graph graph = syno::parse_graph(text);
    const std::string canonical = syno::graph_text(graph);
    const syno::Graph again = syno::parse_graph(canonical);
    if (syno::graph_text(again) != canonical) std::abort();
    if (syno::structure_hash(again) != syno::structure_hash(graph)) std::abort();
  } catch (const syno::UserError&) {
  }
  return 0;
}
