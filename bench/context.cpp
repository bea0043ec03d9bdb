// What the numbers were measured with; tools/bench.sh adds commit and machine.
#include <benchmark/benchmark.h>

#include "syno/rules/catalogue.h"

namespace {

const bool kNoted = [] {
  benchmark::AddCustomContext("compiler", __VERSION__);
  benchmark::AddCustomContext("rules", syno::RuleSet().version());
#ifdef NDEBUG
  benchmark::AddCustomContext("assertions", "off");
#else
  benchmark::AddCustomContext("assertions", "on");
#endif
  return true;
}();

}  // namespace
