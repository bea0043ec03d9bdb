#include "syno/emit/printer.h"

#include "syno/support/error.h"

namespace syno {
namespace {

constexpr int kIndent = 4;
constexpr std::size_t kColumns = 100;

}  // namespace

Printer& Printer::line(std::string_view text) {
  if (!text.empty()) {
    text_.append(static_cast<std::size_t>(depth_ * kIndent), ' ');
    text_.append(text);
  }
  text_ += '\n';
  return *this;
}

Printer& Printer::line(std::string_view text, std::string_view comment) {
  if (comment.empty()) return line(text);
  const std::string marked = comment_mark_ + " " + std::string(comment);
  const std::size_t columns =
      static_cast<std::size_t>(depth_ * kIndent) + text.size() + 2 + marked.size();
  if (columns > kColumns) return line(marked).line(text);
  return line(std::string(text) + "  " + marked);
}

Printer& Printer::dedent() {
  ensure(depth_ > 0, "Printer: more dedents than indents");
  --depth_;
  return *this;
}

}  // namespace syno
