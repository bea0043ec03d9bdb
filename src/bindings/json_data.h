// Python's data as the values of a JSON document.
#pragma once

#include "syno/support/json.h"

#include "bindings.h"

namespace syno::bindings {

/// `data` as the JSON document `what`: a str or bytes are read as one, other data are taken as its content.
json::Value json_value(nb::handle data, const std::string& what);

}  // namespace syno::bindings
