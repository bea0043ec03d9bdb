// Compiled kernels by key and epilogue, and how one computes on PyTorch's threads.
#pragma once

#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <string_view>
#include <unordered_map>

#include "kernel.h"
#include "tensors.h"

namespace {

using Name = std::pair<std::string_view, std::string_view>;

struct Hash {
  std::size_t operator()(const Name& name) const {
    const std::hash<std::string_view> hash;
    return hash(name.first) * 31 + hash(name.second);
  }
};

// Names lie in the kernels' libraries, which stay loaded.
std::unordered_map<Name, const SynoKernel*, Hash> kernels;
std::shared_mutex kernels_mutex;

/// Why the kernels of the package that this library belongs to are not there; empty if they are, or if it has none.
std::string packaged_problem;

/// Loads the kernel, and returns null; or a message, which lives until the thread's next call.
using Loader = const char* (*)(const char* key, const char* epilogue);
std::atomic<Loader> loader = nullptr;

const SynoKernel* loaded(const Name& name) {
  const std::shared_lock lock(kernels_mutex);
  const auto found = kernels.find(name);
  return found == kernels.end() ? nullptr : found->second;
}

const SynoKernel& kernel_of(std::string_view key, std::string_view epilogue) {
  if (const SynoKernel* kernel = loaded({key, epilogue})) return *kernel;
  const std::string a(key), b(epilogue);
  const Loader load = loader;
  std::string why = packaged_problem.empty() ? "no library with it was loaded" : packaged_problem;
  if (load != nullptr) {
    const char* message = load(a.c_str(), b.c_str());
    if (const SynoKernel* kernel = loaded({key, epilogue})) return *kernel;
    if (message != nullptr) why = message;
  }
  refuse("syno::apply has no kernel '" + a + "' with epilogue '" + b + "'\n  " + why);
}

Tensor checked_packed(const SynoKernel& kernel, const Tensor& given) {
  const Tensor packed = vector_of(given, "packed", kSynoHeader + kernel.packed_size());
  const auto* const floats = packed.const_data_ptr<float>();
  if (!std::equal(kernel.tag, kernel.tag + kSynoTag, floats))
    refuse(
        "syno::apply: packed holds weights for another kernel\n"
        "  expected: what pack() of this kernel returned, on this kind of processor and with "
        "this version of Syno\n  what to do: pack the weights again");
  return packed;
}

thread_local Workspace workspace;

struct Call {
  const SynoKernel& kernel;
  const float* x;
  const float* packed;
  const float* channel;
  const float* residual;
  float* y;
  std::int64_t input_floats, output_floats;  // of an image

  void phase(int p, std::int64_t image, float* scratch, long part, long parts) const {
    kernel.phase(p, x + image * input_floats, packed, channel,
                 residual == nullptr ? nullptr : residual + image * output_floats,
                 y + image * output_floats, scratch, part, parts);
  }
  void images(std::int64_t begin, std::int64_t end) const {
    float* const scratch = workspace.floats(kernel.workspace_size(1));
    const int phases = kernel.phase_count();
    for (std::int64_t image = begin; image < end; ++image)
      for (int p = 0; p < phases; ++p) phase(p, image, scratch, 0, 1);
  }
};

/// Each thread takes whole images; all threads share each of the rest.
void compute(const Call& call, std::int64_t batch) {
  std::int64_t threads = torch::stable::get_num_threads();
  if (threads > 1 && call.kernel.macs * batch < kLeastParallelMacs) threads = 1;
  if (threads <= 1) return call.images(0, batch);
  const std::int64_t whole = batch / threads * threads;
  if (whole > 0)
    torch::stable::parallel_for(
        0, whole, whole / threads,
        [&](std::int64_t begin, std::int64_t end) { call.images(begin, end); });
  if (whole == batch) return;
  float* const scratch = workspace.floats(call.kernel.workspace_size(static_cast<int>(threads)));
  const int phases = call.kernel.phase_count();
  for (std::int64_t image = whole; image < batch; ++image)
    for (int p = 0; p < phases; ++p)
      torch::stable::parallel_for(0, threads, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t part = begin; part < end; ++part)
          call.phase(p, image, scratch, part, threads);
      });
}

}  // namespace
