#include "syno/graph/shape.h"

#include "syno/support/text.h"

namespace syno {
namespace {

// Calls size(cursor) to read each size; returns the shape that the callbacks made.
template <class ReadSize>
Shape read_shape(std::string_view text, ReadSize read_size) {
  Cursor cursor(text, "shape");
  Shape shape;
  cursor.expect('[', "at the start of a shape");
  if (!cursor.accept(']')) {
    do {
      Dimension dimension;
      const std::size_t size_column = cursor.column();
      dimension.size = read_size(cursor);
      if (dimension.size.is_one())
        cursor.fail_at("a dimension of size 1 is not used: leave it out", size_column);
      while (cursor.accept(':')) {
        const std::size_t column = cursor.column();
        const std::string flag = cursor.name("of a flag: 'unordered' or 'causal'");
        bool* target = flag == "unordered" ? &dimension.unordered
                       : flag == "causal"  ? &dimension.causal
                                           : nullptr;
        if (target == nullptr)
          cursor.fail_at("unknown flag '" + flag + "'; known flags: unordered, causal", column);
        if (*target) cursor.fail_at("flag '" + flag + "' is given twice", column);
        *target = true;
      }
      if (dimension.unordered && dimension.causal) {
        cursor.fail_at("a dimension cannot be unordered and causal at once", size_column);
      }
      shape.push_back(dimension);
    } while (cursor.accept(','));
    cursor.expect(']', "at the end of a shape");
  }
  cursor.expect_end();
  return shape;
}

}  // namespace

std::string shape_text(const Shape& shape, const Variables& variables) {
  std::vector<std::string> parts;
  for (const Dimension& dimension : shape) {
    parts.push_back(dimension.size.text(variables) + (dimension.unordered ? ": unordered" : "") +
                    (dimension.causal ? ": causal" : ""));
  }
  return "[" + join(parts, ", ") + "]";
}

Shape parse_shape(std::string_view text, const Variables& variables) {
  return read_shape(text, [&](Cursor& cursor) { return Size::parse(cursor, variables); });
}

std::vector<std::string> variables_in_shape(std::string_view text) {
  std::vector<std::string> names;
  // A first look at the names only; parse_shape reports what is malformed.
  std::string flat(text);
  bool in_flag = false;
  for (std::size_t i = 0; i < flat.size();) {
    const char c = flat[i];
    if (Cursor::is_name_start(c)) {
      std::size_t end = i;
      while (end < flat.size() && Cursor::is_name_rest(flat[end])) ++end;
      if (!in_flag) names.push_back(flat.substr(i, end - i));
      i = end;
      continue;
    }
    if (c == ':') in_flag = true;
    if (c == ',' || c == ']') in_flag = false;
    ++i;
  }
  return names;
}

}  // namespace syno
