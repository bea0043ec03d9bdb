// Writes indented source text line by line. Every emitter prints through it.
#pragma once

#include <string>
#include <string_view>

namespace syno {

class Printer {
 public:
  /// A line at the current depth; an empty one gets no spaces.
  Printer& line(std::string_view text = "");
  /// A line with a comment behind it, or above it where the two do not fit into 100 columns.
  Printer& line(std::string_view text, std::string_view comment);
  Printer& indent() {
    ++depth_;
    return *this;
  }
  Printer& dedent();

  const std::string& text() const { return text_; }

  /// `comment_mark` starts a comment: "#" or "//".
  explicit Printer(std::string comment_mark) : comment_mark_(std::move(comment_mark)) {}

 private:
  std::string comment_mark_;
  std::string text_;
  int depth_ = 0;
};

}  // namespace syno
