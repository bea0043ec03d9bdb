// What a library with compiled kernels says of them to apply.cpp. Each side is compiled by itself, so that this is C.
//
// A library has `syno_kernels`: pointers to its kernels, with a null at the end.
#pragma once

#include <cstdint>

extern "C" {

struct SynoKernel {
  /// kSynoKernelVersion of the header that it was compiled with. Stays the first member.
  std::int64_t version;
  const char* key;
  const char* epilogue;
  /// Dimension 0 of x and y is a batch of any size; the functions below compute one image of it.
  std::int64_t batched;
  std::int64_t input_rank, output_rank;
  const std::int64_t* input_shape;
  const std::int64_t* output_shape;
  /// The order in which the dimensions lie in memory, outermost first.
  const std::int64_t* input_order;
  const std::int64_t* output_order;
  /// Floats of `channel`, 0 where the epilogue names none; whether it names a residual.
  std::int64_t channel_floats, has_residual;
  /// MACs of one image: how much work there is for several threads.
  std::int64_t macs;
  /// The first kSynoTag floats of packed weights: weights that other code packed do not have them.
  const float* tag;
  long (*packed_size)(void);
  void (*pack)(const float* const* weights, float* packed);
  long (*workspace_size)(int parts);
  int (*phase_count)(void);
  void (*phase)(int phase, const float* x, const float* packed, const float* channel,
                const float* residual, float* y, float* workspace, long part, long parts);
};

/// The threads of a host. body(data, thread, threads) is called by each of at most so many; `wait` by all of them, if they
/// are several.
struct SynoHost {
  void (*run)(int threads, void (*body)(const void* data, long thread, long threads),
              const void* data);
  void (*wait)(void);
};

/// What a host gives to a program: the kernel and the packed weights of each layer, and the constants.
struct SynoProgram {
  const SynoHost* host;
  const SynoKernel* const* kernels;
  const float* const* packed;
  const float* const* constants;
};

/// The functions of a program. 0, or -1 where it fails; the other one says why to the calling thread.
typedef int (*SynoRunProgram)(const SynoProgram* program, const void* const* inputs,
                              float* const* outputs, long batch, int threads,
                              double* layer_seconds);
typedef const char* (*SynoProgramError)(void);

}  // extern "C"

constexpr std::int64_t kSynoKernelVersion = 1;
/// Floats before the packed weights: a cache line, so that the weights stay aligned.
constexpr std::int64_t kSynoHeader = 16;
constexpr std::int64_t kSynoTag = 5;
