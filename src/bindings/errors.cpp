// support/error.h: the two exceptions, with their text.
#include "syno/support/error.h"

#include "bindings.h"

namespace syno::bindings {

void bind_errors(nb::module_& m) {
  auto user = nb::exception<UserError>(m, "UserError");
  user.doc() =
      "A mistake in what was asked for. The text says what, where, what was expected and found.";
  auto internal = nb::exception<InternalError>(m, "InternalError");
  internal.doc() = "A bug in Syno: an invariant that does not hold.";
}

}  // namespace syno::bindings
