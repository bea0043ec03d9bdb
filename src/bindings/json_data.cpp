#include "json_data.h"

#include <cmath>
#include <nanobind/stl/string.h>
#include <string_view>

#include "syno/support/error.h"

namespace syno::bindings {
namespace {

// Deeper than any form that is read; below, only how many entries there are is told.
constexpr int kDeepest = 8;
// Python writes no integer of more than 4300 digits in decimals.
constexpr long kMostBits = 10'000;

std::string_view utf8(nb::handle text) {
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (data == nullptr) {
    PyErr_Clear();
    throw UserError(
        "a text holds a character that is none: half of a surrogate pair\n"
        "  expected: Unicode text      got: " +
        nb::cast<std::string>(nb::steal(PyObject_ASCII(text.ptr()))));
  }
  return {data, static_cast<std::size_t>(size)};
}

json::Number number(nb::handle value) {
  int overflow = 0;
  const long long whole = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  if (overflow == 0) return {std::to_string(whole), whole};
  const long bits = nb::cast<long>(value.attr("bit_length")());
  if (bits <= kMostBits) return {nb::cast<std::string>(nb::str(value)), std::nullopt};
  const auto digits =
      static_cast<std::int64_t>(std::ceil(static_cast<double>(bits) * std::log10(2.0)));
  return {"an integer of about " + std::to_string(digits) + " digits", std::nullopt};
}

bool is_a(nb::handle value, const char* abstract) {
  return nb::isinstance(value, nb::module_::import_("collections.abc").attr(abstract));
}

json::Value content(nb::handle value, int depth);

json::Object fields(nb::handle mapping, int depth) {
  json::Object result;
  if (depth == kDeepest) return result;
  for (const nb::handle key : nb::iter(mapping))
    result.emplace_back(utf8(nb::str(key)), content(mapping[key], depth + 1));
  return result;
}

json::List items(nb::handle sequence, int depth) {
  if (depth == kDeepest) return json::List(nb::len(sequence));
  json::List result;
  for (const nb::handle item : nb::iter(sequence)) result.push_back(content(item, depth + 1));
  return result;
}

json::Value content(nb::handle value, int depth) {
  if (value.is_none()) return {};
  if (PyBool_Check(value.ptr())) return {value.ptr() == Py_True};
  if (PyLong_Check(value.ptr())) return {number(value)};
  if (PyFloat_Check(value.ptr()))
    return {json::Number{nb::cast<std::string>(nb::repr(value)), std::nullopt}};
  if (PyUnicode_Check(value.ptr())) return {std::string(utf8(value))};
  const bool is_bytes = PyBytes_Check(value.ptr());
  if (PyDict_Check(value.ptr()) || is_a(value, "Mapping")) return {fields(value, depth)};
  if (PyList_Check(value.ptr()) || (!is_bytes && is_a(value, "Sequence")))
    return {items(value, depth)};
  return {json::Foreign{"a Python " + nb::cast<std::string>(value.type().attr("__name__"))}};
}

}  // namespace

json::Value json_value(nb::handle data, const std::string& what) {
  if (PyUnicode_Check(data.ptr())) return json::read(utf8(data), what);
  if (PyBytes_Check(data.ptr()))
    return json::read(
        {PyBytes_AS_STRING(data.ptr()), static_cast<std::size_t>(Py_SIZE(data.ptr()))}, what);
  return content(data, 0);
}

}  // namespace syno::bindings
