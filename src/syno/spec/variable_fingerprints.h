// What tells the variables of a specification apart whatever they are called and however they are declared: a search that
// orders sizes by it does the same under other names.
#pragma once

#include <vector>

#include "syno/spec/specification.h"
#include "syno/support/hash.h"

namespace syno {

/// One a variable, from kind, budget, values under the bindings and powers in the shapes. Variables that agree in all of
/// them are told apart by the order of the table. The calling thread's copy, good until it asks about several others.
const std::vector<Hash128>& variable_fingerprints(const Specification& spec);

/// The same for a size.
Hash128 size_fingerprint(const Specification& spec, const Size& size);

}  // namespace syno
