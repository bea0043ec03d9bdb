// A network as C++: the steps that compute one image, and how several threads compute a batch with them. As a library it
// is one source with its kernels, a file of weights and a C interface, whose header says how it is called. As a program it
// is called by a host, which has the kernels, the weights and the threads: syno::_run_program inside of PyTorch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace syno {

/// A tensor that a step reads or writes: an expression of C++ for its first element, "nullptr" for none, and how many
/// bytes it has for one image. Expressions name the inputs and outputs of the image, `arena` and `constants`.
struct NetworkOperand {
  std::string at = "nullptr";
  std::int64_t bytes = 0;
};

/// A call of the kernel of a layer, for each of the samples that an image has.
struct NetworkCall {
  int layer = 0;
  std::int64_t samples = 1;
  NetworkOperand x, channel, residual, y;
};

/// What all threads do before they wait for each other: a call, or code.
struct NetworkStep {
  /// Goes into a comment.
  std::string about;
  std::string code;
  std::optional<NetworkCall> call;
};

/// The text of a kernel by emit_cpp, without the runtime, and how x, and y and residual, are stored: as its options say.
struct NetworkKernel {
  std::string text;
  std::string input_format = "float32", output_format = "float32";
};

struct NetworkLayer {
  /// Its kernel, and the elements of each of its weights.
  int kernel = 0;
  std::vector<std::int64_t> weights;
  /// What the file of weights has: float32, bfloat16, or int8 for integers. Each weight takes whole words of 32 bits.
  std::string stored = "float32";
};

/// An input of a network. Its name in expressions is `x`, or `x0`, `x1` and so on where there are several.
struct NetworkInput {
  /// Without the batch.
  std::vector<std::int64_t> shape;
  /// Elements are token ids below it; 0: they are floats.
  std::int64_t tokens = 0;
  /// The same for all images: the shape has no batch.
  bool shared = false;
};

struct NetworkProgram {
  /// What the names of its functions begin with.
  std::string name = "syno_network";
  /// The names of source and library in the comment on how to compile it, as a shell takes them.
  std::string file, library;
  /// The name of kernel i is NAME_k<i>.
  std::vector<NetworkKernel> kernels;
  std::vector<NetworkLayer> layers;
  std::vector<NetworkStep> steps;
  std::vector<NetworkInput> inputs;
  /// Shapes without the batch; names are `y`, or `y0`, `y1` and so on.
  std::vector<std::vector<std::int64_t>> outputs;
  /// Floats of the arena of one image, and of the constants in the file of weights.
  std::int64_t arena = 0;
  std::int64_t constants = 0;
  /// Of 32 bits, in the file of weights behind its head.
  std::int64_t words = 0;
  /// What the file of weights names.
  std::uint64_t fingerprint = 0;
};

struct NetworkSource {
  std::string code, header;
  /// Pieces that can be compiled side by side, beside the network itself: SYNO_PART chooses one, 0 is the network.
  std::size_t parts = 0;
};

NetworkSource emit_network(const NetworkProgram& program);

/// The source of a program, behind cpp_runtime() and the declarations of the host (kernel.h), with `syno_run_program`.
/// Texts of kernels, file, library and fingerprint are not read; `constants` is an array of pointers.
std::string emit_program(const NetworkProgram& program);

}  // namespace syno
