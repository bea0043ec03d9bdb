// search/: how an operator is built, and what keeps it out of a specification.
#include "bindings.h"

namespace syno::bindings {

void bind_explain(nb::module_&) {}

}  // namespace syno::bindings
