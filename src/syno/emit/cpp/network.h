// A network as one C++ source with a C interface: its kernels, the steps that compute one image, and the functions that
// read its file of weights and run it on several threads. The header that it comes with says how it is called.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace syno {

/// A tensor that a step reads or writes: an expression of C++ for its first element, "nullptr" for none, and how many
/// floats it has for one image. Expressions name `x` and `y` of the image, `arena` and `constants`.
struct NetworkOperand {
  std::string at = "nullptr";
  std::int64_t floats = 0;
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

struct NetworkLayer {
  /// Its kernel, and the elements of each of its weights.
  int kernel = 0;
  std::vector<std::int64_t> weights;
};

struct NetworkProgram {
  /// What the names of its functions begin with.
  std::string name = "syno_network";
  /// The names of source and library in the comment on how to compile it, as a shell takes them.
  std::string file, library;
  /// The text of each kernel by emit_cpp, without the runtime; the name of kernel i is NAME_k<i>.
  std::vector<std::string> kernels;
  std::vector<NetworkLayer> layers;
  std::vector<NetworkStep> steps;
  /// Without the batch.
  std::vector<std::int64_t> input, output;
  /// Elements of the input are token ids below it; 0: they are floats.
  std::int64_t tokens = 0;
  /// Floats of the arena of one image, of the constants in the file of weights, and of all of that file.
  std::int64_t arena = 0;
  std::int64_t constants = 0;
  std::int64_t floats = 0;
  /// What the file of weights names.
  std::uint64_t fingerprint = 0;
};

struct NetworkSource {
  std::string code, header;
  /// Pieces that can be compiled side by side, beside the network itself: SYNO_PART chooses one, 0 is the network.
  std::size_t parts = 0;
};

NetworkSource emit_network(const NetworkProgram& program);

}  // namespace syno
