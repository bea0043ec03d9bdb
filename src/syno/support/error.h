// Errors: a user's mistake and a bug are different types, and every message says what was asked, where, what was
// expected, what was found, and what to do.
#pragma once

#include <stdexcept>
#include <string>

namespace syno {

/// A mistake in what the user asked for. The command line prints it without a traceback and exits with 2.
class UserError : public std::runtime_error {
 public:
  explicit UserError(const std::string& message) : std::runtime_error(message) {}
};

/// A bug in Syno: an invariant that does not hold. Never thrown for bad input.
class InternalError : public std::logic_error {
 public:
  explicit InternalError(const std::string& message) : std::logic_error(message) {}
};

/// Builds the text of a UserError line by line.
///     throw Complaint("cannot merge dimension 'H' ...").where("step 4 of 6 (merge)").expected("...", "...").error();
class Complaint {
 public:
  explicit Complaint(std::string what) : text_(std::move(what)) {}
  Complaint& where(const std::string& place) { return line("  in " + place); }
  Complaint& expected(const std::string& wanted, const std::string& found) {
    return line("  expected: " + wanted + "      got: " + found);
  }
  Complaint& hint(const std::string& advice) { return line("  hint: " + advice); }
  UserError error() const { return UserError(text_); }

 private:
  Complaint& line(const std::string& more) {
    text_ += "\n" + more;
    return *this;
  }
  std::string text_;
};

/// Throws InternalError with `message` unless `condition` holds. For invariants, never for input.
inline void ensure(bool condition, const char* message) {
  if (!condition) throw InternalError(message);
}

}  // namespace syno
