// Any bytes either are rejected with a UserError, or are a space that is written as the same bytes. The check sum is put
// right first, or the fuzzer would never come behind it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>

#include "syno/space/enumerate.h"
#include "syno/space/space.h"
#include "syno/support/error.h"
#include "syno/support/hash.h"

namespace {

const syno::Specification& specification() {
  static const syno::Specification spec([] {
    syno::SpecificationSource source;
    source.input = "[I]";
    source.output = "[O]";
    source.primary = {"I: 1", "O: 1"};
    source.coefficient = {"s=2: 1"};
    source.bindings = {syno::Binding::parse("I=4, O=6")};
    source.limits.max_depth = 3;
    return source;
  }());
  return spec;
}

const std::string& rules() {
  static const std::string version = syno::RuleSet().version();
  return version;
}

// As Space::save ends.
std::string with_check_sum(const std::string& content) {
  syno::Hasher hasher("space file");
  for (const char c : content)
    hasher.add(static_cast<std::uint64_t>(static_cast<unsigned char>(c)));
  const syno::Hash128 sum = hasher.finish();
  std::string file = content;
  for (const std::uint64_t lane : {sum.high, sum.low}) {
    for (int i = 0; i < 8; ++i) file += static_cast<char>(lane >> (8 * i) & 0xFF);
  }
  return file;
}

std::string saved(const syno::Space& space) {
  std::ostringstream out;
  space.save(out);
  return out.str();
}

// Every file must carry what it was made for: written once, in front of what the fuzzer makes.
const std::string& head() {
  static const std::string text = [] {
    const std::string file = saved(syno::Space(specification()));
    syno::Space empty(specification());
    empty.rules = rules();
    const std::string whole = saved(empty);
    // Up to the depth limits, which follow the version of the rules.
    return whole.substr(0, whole.find(rules()) + rules().size());
  }();
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  for (const std::string& file : {bytes, with_check_sum(head() + bytes)}) {
    try {
      std::istringstream in(file);
      const syno::Space space = syno::Space::load(in, specification(), rules());
      // Numbers may have been written with more bytes than they need.
      const std::string again = saved(space);
      std::istringstream written(again);
      if (saved(syno::Space::load(written, specification(), rules())) != again) std::abort();
      space.operators_by_depth();
      space.operators_by_primitives();
      space.operators_below();
    } catch (const syno::UserError&) {
    }
  }
  return 0;
}
