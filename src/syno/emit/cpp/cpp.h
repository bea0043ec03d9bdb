// Plans as C++: one self-contained translation unit with a plain C interface.
//
//   long   NAME_packed_size(void)               floats that NAME_pack writes
//   void   NAME_pack(weights, packed)           once a model: weights in the order that the kernels read them in
//   long   NAME_workspace_size(int threads)     floats of scratch memory
//   void   NAME_run(x, packed, y, workspace, batch, threads)
//   void   NAME_run(x, packed, channel, residual, y, workspace, batch, threads)      with an epilogue
//
// The same of one image, for callers with threads of their own, which finish all parts of a phase before the next one:
//
//   int    NAME_phase_count(void)
//   void   NAME_phase(phase, x, packed, channel, residual, y, workspace, part, parts)
//
// With another precision than float32, contractions multiply bfloat16 or 8-bit numbers and add them in float32 or int32
// (formats.h); everything else stays float32. x, and y with residual, may be stored in these formats. In int8, x has
// unsigned codes, the weights are integers from -128 to 127, `run` has the arguments of an epilogue, and behind the values
// of channels `channel` has five floats: the zero of x, the zero and the scale of residual, the zero of y and 1 / its scale.
//
// It needs a C++17 compiler of the GCC or Clang family and nothing else; with OpenMP it runs on several threads. The
// instruction set is the compiler's choice (-march=native).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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
  /// What happens to results before they are stored (epilogue.h): "scale+bias+residual+relu", any part may be missing.
  std::string epilogue;
  /// The dimension of y that `scale` and `bias` have values for.
  int channel = 1;
  /// Dimensions of x, and of y and residual, in the order in which they lie in memory, the outermost first. Empty:
  /// row-major.
  std::vector<int> input_order;
  std::vector<int> output_order;
  /// What contractions multiply: "float32", "bfloat16" or "int8".
  std::string precision = "float32";
  /// How x, and y and residual, are stored: "float32"; with bfloat16 also "bfloat16". In int8 x is "uint8", and y any of
  /// "float32" and "uint8".
  std::string input_format = "float32";
  std::string output_format = "float32";
  /// How what a contraction gives to others is stored: "float32"; in int8 also "uint8", which the contractions behind it
  /// multiply as codes.
  std::string value_format = "float32";
  /// Choices instead of those of the rules (tuning.h), such as "0: over=rows width=8"; empty for none.
  std::string tuning;
};

Source emit_cpp(const Plan& plan, const CppOptions& options = {});

/// The C header of what `emit_cpp` defines.
std::string cpp_header(const CppOptions& options = {});

/// What stands before the first operator where `with_runtime` is off.
std::string cpp_runtime();

}  // namespace syno
