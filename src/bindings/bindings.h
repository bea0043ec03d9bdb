// The private extension syno._core: a thin, typed view of the C++ library, one file a folder of it. The public Python
// package wraps it; nothing here is an interface for users.
#pragma once

#include <cstdint>
#include <map>
#include <nanobind/nanobind.h>
#include <string>

#include "syno/graph/operator.h"
#include "syno/sizes/variables.h"
#include "syno/support/interrupt.h"

namespace syno::bindings {

namespace nb = nanobind;

/// A binding as Python sees it: a dict of ints by variable.
using Bound = std::map<std::string, std::int64_t>;

/// Around a call of the library that may take long: other threads of Python run meanwhile, and an interrupt from the
/// keyboard ends the call. Python handles signals on its main thread only; elsewhere the check does nothing.
class LongCall {
 public:
  LongCall() : scope_(&let_interrupts_through) {}

 private:
  static void let_interrupts_through() {
    const nb::gil_scoped_acquire acquire;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }

  nb::gil_scoped_release release_;
  InterruptScope scope_;
};

/// A copy, for a call during which another thread may change the original.
template <class T>
T copied(const T& value) {
  return value;
}

/// The values of the operator's variables. Throws UserError that lists what is missing.
inline Values resolve(const Operator& op, const Bound& binding) {
  return Binding(binding).resolve(*op.variables());
}

void bind_errors(nb::module_& m);
void bind_seals(nb::module_& m);
void bind_sizes(nb::module_& m);
void bind_graph(nb::module_& m);
void bind_spec(nb::module_& m);
void bind_interp(nb::module_& m);
void bind_features(nb::module_& m);
void bind_rules(nb::module_& m);
void bind_plan(nb::module_& m);
void bind_space(nb::module_& m);
void bind_listing(nb::module_& m);
void bind_walks(nb::module_& m);
void bind_explain(nb::module_& m);
void bind_trials(nb::module_& m);
void bind_search(nb::module_& m);
void bind_notation(nb::module_& m);
void bind_emit(nb::module_& m);

}  // namespace syno::bindings
