// support/error.h: the two exceptions, with their text.
#include "syno/support/error.h"

#include "bindings.h"

namespace syno::bindings {

void bind_errors(nb::module_& m) {
  auto user = nb::exception<UserError>(m, "UserError");
  user.doc() =
      "An invalid request. The text says what is wrong, where, what was expected and what was "
      "found.";
  auto internal = nb::exception<InternalError>(m, "InternalError");
  internal.doc() = "A bug in Syno: an invariant is violated.";
}

}  // namespace syno::bindings
