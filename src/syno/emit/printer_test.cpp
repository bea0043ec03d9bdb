#include "syno/emit/printer.h"

#include <gtest/gtest.h>

#include "syno/support/error.h"

namespace syno {
namespace {

TEST(Printer, IndentsAllButEmptyLines) {
  Printer out("//");
  out.line("for (;;) {").indent().line("f();").line().dedent().line("}");
  EXPECT_EQ(out.text(), "for (;;) {\n    f();\n\n}\n");
}

TEST(Printer, PutsACommentAboveALineThatItWouldMakeTooLong) {
  Printer out("#");
  out.indent().line("x = 1", "short").line(std::string(80, 'y'), "a comment of some length");
  EXPECT_EQ(out.text(), "    x = 1  # short\n    # a comment of some length\n    " +
                            std::string(80, 'y') + "\n");
}

TEST(Printer, RefusesToLeaveTheOutermostBlock) {
  Printer out("#");
  EXPECT_THROW(out.dedent(), InternalError);
}

}  // namespace
}  // namespace syno
