// Plans as C++: one self-contained translation unit with a plain C interface, float32.
//
//   long   NAME_packed_size(void)               floats that NAME_pack writes
//   void   NAME_pack(weights, packed)           once a model: weights in the order that the kernels read them in
//   long   NAME_workspace_size(int threads)     floats of scratch memory
//   void   NAME_run(x, packed, y, workspace, batch, threads)
//
// It needs a C++17 compiler of the GCC or Clang family and nothing else; with OpenMP it runs on several threads. The
// instruction set is the compiler's choice (-march=native).
#pragma once

#include <cstdint>
#include <string>

#include "syno/emit/source.h"
#include "syno/plan/plan.h"

namespace syno {

struct CppOptions {
  std::string name = "syno_operator";
  /// Goes into the comment at the head, line by line; may be empty.
  std::string formula;
  /// Without the part that is the same in all files, which must then stand before it.
  bool with_runtime = true;
  /// Floats that a core keeps close by. Larger tensors are worked on in blocks, or never stored at all.
  std::int64_t cache_floats = std::int64_t{64} * 1024;
};

Source emit_cpp(const Plan& plan, const CppOptions& options = {});

/// The C header of what `emit_cpp` defines.
std::string cpp_header(const CppOptions& options = {});

/// What stands before the first operator where `with_runtime` is off.
std::string cpp_runtime();

}  // namespace syno
