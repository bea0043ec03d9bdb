// support/: seals of rows, whose values are Python's.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <string_view>

#include "syno/support/seal.h"

#include "bindings.h"

namespace syno::bindings {
namespace {

using namespace nb::literals;

void add_text(Seal& seal, PyObject* text) {
  const auto length = static_cast<std::size_t>(PyUnicode_GET_LENGTH(text));
  if (PyUnicode_IS_ASCII(text)) {
    seal.add(std::string_view(static_cast<const char*>(PyUnicode_DATA(text)), length));
    return;
  }
  std::u32string points(length, U'\0');
  for (std::size_t i = 0; i < length; ++i)
    points[i] = PyUnicode_READ_CHAR(text, static_cast<Py_ssize_t>(i));
  seal.add(points);
}

void add_integer(Seal& seal, PyObject* integer) {
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(integer, &overflow);
  if (overflow == 0) {
    seal.add(static_cast<std::int64_t>(value));
    return;
  }
  const auto digits = nb::steal<nb::object>(PyLong_Type.tp_repr(integer));
  if (!digits.is_valid()) throw nb::python_error();
  seal.add_integer(nb::cast<std::string>(digits));
}

void add_value(Seal& seal, nb::handle value) {
  PyObject* object = value.ptr();
  if (value.is_none()) {
    seal.add_null();
  } else if (PyUnicode_Check(object)) {
    add_text(seal, object);
  } else if (PyLong_Check(object)) {  // truth values are 1 and 0
    add_integer(seal, object);
  } else if (PyFloat_Check(object)) {
    seal.add(PyFloat_AS_DOUBLE(object));
  } else if (PyObject_CheckBuffer(object)) {
    const auto bytes = nb::steal<nb::bytes>(PyBytes_FromObject(object));
    if (!bytes.is_valid()) throw nb::python_error();
    seal.add_bytes({bytes.c_str(), bytes.size()});
  } else {
    throw nb::type_error("a database has no value of this type");
  }
}

std::string seal_of(const nb::list& values) {
  Seal seal;
  for (const nb::handle value : values) add_value(seal, value);
  return seal.finish();
}

// Of dicts that may lack a name.
std::vector<std::string> seals_of(const nb::str& first, const nb::list& names,
                                  const nb::list& rows) {
  std::vector<std::string> seals;
  seals.reserve(rows.size());
  Seal seal;
  for (const nb::handle row : rows) {
    add_text(seal, first.ptr());
    for (const nb::handle name : names) {
      PyObject* value = PyDict_GetItemWithError(row.ptr(), name.ptr());
      if (value == nullptr && PyErr_Occurred() != nullptr) throw nb::python_error();
      add_value(seal, value == nullptr ? Py_None : value);
    }
    seals.push_back(seal.finish());
  }
  return seals;
}

}  // namespace

void bind_seals(nb::module_& m) {
  m.def("seal", &seal_of, "values"_a, "The seal of values of a database, see seal.h.");
  m.def("seals", &seals_of, "first"_a, "names"_a, "rows"_a,
        "The seal of each row: `first`, and the values of these names, None where there is none.");
}

}  // namespace syno::bindings
