#include "syno/spec/variable_fingerprints.h"

#include <array>
#include <bit>
#include <map>

namespace syno {
namespace {

// Specifications that one thread asks about in turns.
constexpr std::size_t kTables = 4;

// A sum of hashes, which no order changes.
void add_to(Hash128& sum, const Hash128& part) {
  sum.high += part.high;
  sum.low += part.low;
}

std::vector<Hash128> make(const Specification& spec) {
  const std::size_t count = spec.variables()->count();
  std::vector<Hash128> fingerprints;
  for (std::size_t v = 0; v < count; ++v) {
    const VariableInfo& info = spec.variable(v);
    Hasher hasher("variable");
    hasher.add(info.primary).add(info.budget);
    for (const Shape* shape : {&spec.input(), &spec.output()}) {
      for (const Dimension& dim : *shape) hasher.add(dim.size.power(v));
    }
    fingerprints.push_back(hasher.finish());
  }
  // A binding is known by the values of its variables, and a variable by its value in each binding.
  std::vector<Hash128> seen(count);
  for (std::size_t b = 0; b < spec.bindings().size(); ++b) {
    const Values& values = spec.bindings()[b];
    Hash128 binding{};
    for (std::size_t v = 0; v < count; ++v)
      add_to(binding, Hasher("value").add(fingerprints[v]).add(values[v]).finish());
    Hasher hasher("binding");
    hasher.add(binding).add(spec.multiplicities()[b]);
    if (!spec.source().layer_macs.empty())
      hasher.add(std::bit_cast<std::uint64_t>(spec.source().layer_macs[b]));
    const Hash128 whole = hasher.finish();
    for (std::size_t v = 0; v < count; ++v)
      add_to(seen[v], Hasher("value").add(whole).add(values[v]).finish());
  }
  std::map<Hash128, int> met;
  for (std::size_t v = 0; v < count; ++v) {
    const Hash128 fingerprint = Hasher("variable").add(fingerprints[v]).add(seen[v]).finish();
    fingerprints[v] = Hasher("variable").add(fingerprint).add(met[fingerprint]++).finish();
  }
  return fingerprints;
}

}  // namespace

const std::vector<Hash128>& variable_fingerprints(const Specification& spec) {
  struct Table {
    std::uint64_t identity = 0;
    std::vector<Hash128> fingerprints;
  };
  thread_local std::array<Table, kTables> tables;
  thread_local std::size_t oldest = 0;
  for (const Table& table : tables) {
    if (table.identity == spec.identity()) return table.fingerprints;
  }
  Table& table = tables[oldest];
  oldest = (oldest + 1) % kTables;
  table.fingerprints = make(spec);
  table.identity = spec.identity();
  return table.fingerprints;
}

Hash128 size_fingerprint(const Specification& spec, const Size& size) {
  const std::vector<Hash128>& fingerprints = variable_fingerprints(spec);
  Hash128 sum{1, 1};
  for (std::size_t v = 0; v < fingerprints.size(); ++v) {
    const int power = size.power(v);
    if (power != 0) add_to(sum, Hasher("power").add(fingerprints[v]).add(power).finish());
  }
  return Hasher("size").add(sum).finish();
}

}  // namespace syno
