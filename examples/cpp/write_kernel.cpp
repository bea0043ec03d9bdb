// Writes an operator as a C++ file and its header: write_kernel CPP HEADER
#include <fstream>
#include <iostream>

#include "syno/emit/cpp/cpp.h"
#include "syno/plan/plan.h"
#include "syno/support/error.h"

namespace {

// y[n,o,h] = sum(i,a) x[n,i,h+a-k/2] * W[o,i,a]
constexpr const char* kConv1d = R"(syno operator 1
out [N, C_out, H]
in [N, C_in, H]
reduce C_in -> r0
reduce k -> r1
contract o1:drop r0:keep r1:keep
unfold o2 r1 -> c0
match o0 r0 c0
)";

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: write_kernel CPP HEADER\n";
    return 2;
  }
  try {
    const syno::Operator op = syno::Operator::parse(kConv1d);
    const syno::Binding binding = syno::Binding::parse("N=1, C_in=2, C_out=16, H=20, k=3");
    const syno::CppOptions options{"conv1d", "y[n,o,h] = sum(i,a) x[n,i,h+a-k/2] * W[o,i,a]"};
    const syno::Plan plan = syno::plan(op, binding.resolve(*op.variables()));
    std::ofstream(argv[1]) << syno::emit_cpp(plan, options).text;
    std::ofstream(argv[2]) << syno::cpp_header(options);
  } catch (const syno::UserError& error) {
    std::cerr << error.what() << "\n";
    return 2;
  }
}
