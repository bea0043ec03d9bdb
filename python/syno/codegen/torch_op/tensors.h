// Tensors as kernels take them: checked, in the wanted order of memory, and scratch memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <utility>

namespace {

using torch::stable::Tensor;
using MaybeTensor = std::optional<Tensor>;

constexpr std::int64_t kMostDims = 16;
// Below it, waking other threads takes longer than what they save: about two microseconds of one core.
constexpr std::int64_t kLeastParallelMacs = 100'000;

[[noreturn]] void refuse(const std::string& message) {
  throw std::runtime_error(message);
}

std::string text(const std::int64_t* shape, std::int64_t rank, bool any_first = false) {
  std::string result = "[";
  for (std::int64_t d = 0; d < rank; ++d) {
    if (d > 0) result += ", ";
    result += d == 0 && any_first ? "n" : std::to_string(shape[d]);
  }
  return result + "]";
}

void check_kind(const Tensor& tensor, const char* name) {
  std::int32_t dtype = 0, device = 0;
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(tensor.get(), &dtype));
  static const std::int32_t float32 = aoti_torch_dtype_float32();
  static const std::int32_t cpu = aoti_torch_device_type_cpu();
  if (dtype != float32)
    refuse(std::string("syno::apply: ") + name +
           " of the wrong dtype\n  expected: float32\n  what to do: use " + name + ".float()");
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(tensor.get(), &device));
  if (device != cpu)
    refuse(std::string("syno::apply: ") + name +
           " on the wrong device\n  expected: cpu\n  what to do: use " + name + ".cpu()");
}

/// The operator has no gradient: a result that looks like a constant would train nothing, silently.
void check_grad(const Tensor& tensor, const char* name) {
  // The stable ABI does not say whether a tensor requires a gradient; a view of one that does is no leaf.
  std::array<StableIValue, 1> stack{torch::stable::detail::from(tensor)};
  STABLE_TORCH_ERROR_CODE_CHECK(
      torch_call_dispatcher("aten::alias", "", stack.data(), TORCH_ABI_VERSION));
  STABLE_TORCH_ERROR_CODE_CHECK(
      torch_call_dispatcher("aten::is_leaf", "", stack.data(), TORCH_ABI_VERSION));
  if (!torch::stable::detail::to<bool>(stack[0]))
    refuse(std::string("syno::apply: ") + name +
           " requires a gradient, and compiled kernels have none: they are for inference\n"
           "  what to do: call it under torch.inference_mode() or torch.no_grad()");
}

using Dims = std::array<std::int64_t, kMostDims>;

struct Layout {
  std::int64_t rank = 0;
  Dims shape{};
  Dims strides{};
};

/// The shape with that batch size, and the strides of the kernel's order.
Layout layout(const std::int64_t* shape, const std::int64_t* order, std::int64_t rank, bool batched,
              std::int64_t batch) {
  Layout result;
  result.rank = rank;
  std::copy(shape, shape + rank, result.shape.begin());
  if (batched) result.shape[0] = batch;
  std::int64_t stride = 1;
  for (std::int64_t d = rank; d-- > 0;) {
    result.strides[order[d]] = stride;
    stride *= std::max<std::int64_t>(result.shape[order[d]], 1);
  }
  return result;
}

bool has_shape(const Tensor& tensor, const Layout& wanted) {
  const auto shape = tensor.sizes();
  return static_cast<std::int64_t>(shape.size()) == wanted.rank &&
         std::equal(shape.begin(), shape.end(), wanted.shape.begin());
}

/// Strides of dimensions with one element do not matter.
bool has_strides(const Tensor& tensor, const Layout& wanted) {
  const auto strides = tensor.strides();
  for (std::int64_t d = 0; d < wanted.rank; ++d)
    if (wanted.shape[d] != 1 && strides[d] != wanted.strides[d]) return false;
  return true;
}

Tensor empty(const Layout& wanted) {
  AtenTensorHandle made = nullptr;
  STABLE_TORCH_ERROR_CODE_CHECK(
      aoti_torch_empty_strided(wanted.rank, wanted.shape.data(), wanted.strides.data(),
                               aoti_torch_dtype_float32(), aoti_torch_device_type_cpu(), 0, &made));
  return Tensor(made);
}

void copy(const Tensor& to, const Tensor& from) {
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_copy_(to.get(), from.get(), 0));
}

/// The tensor itself where its memory is as wanted, else a copy.
Tensor in_order(const Tensor& tensor, const Layout& wanted) {
  if (has_strides(tensor, wanted)) return tensor;
  Tensor result = empty(wanted);
  copy(result, tensor);
  return result;
}

void check_shape(const Tensor& tensor, const char* name, const Layout& wanted, bool batched) {
  if (has_shape(tensor, wanted)) return;
  refuse(std::string("syno::apply: ") + name +
         " of the wrong shape\n  expected: " + text(wanted.shape.data(), wanted.rank, batched) +
         "      got: " + text(tensor.sizes().data(), tensor.dim()));
}

/// Floats in a vector: `size` of them, one after the other.
Tensor vector_of(const Tensor& tensor, const char* name, std::int64_t size) {
  check_kind(tensor, name);
  if (tensor.dim() != 1 || tensor.sizes()[0] != size)
    refuse(std::string("syno::apply: ") + name + " of the wrong size\n  expected: [" +
           std::to_string(size) + "]      got: " + text(tensor.sizes().data(), tensor.dim()));
  Layout wanted;
  wanted.rank = 1;
  wanted.shape[0] = size;
  wanted.strides[0] = 1;
  return in_order(tensor, wanted);
}

/// Scratch memory of a thread, which stays for its next call.
class Workspace {
 public:
  Workspace() = default;
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  ~Workspace() { std::free(memory_); }

  float* floats(std::int64_t count) {
    if (count > size_) {
      std::free(std::exchange(memory_, nullptr));
      size_ = 0;
      const std::size_t bytes = (static_cast<std::size_t>(count) * sizeof(float) + 63) / 64 * 64;
      memory_ = static_cast<float*>(std::aligned_alloc(64, bytes));
      if (memory_ == nullptr) throw std::bad_alloc();
      size_ = count;
    }
    return memory_;
  }

 private:
  float* memory_ = nullptr;
  std::int64_t size_ = 0;
};

std::int64_t floats_of(const Layout& tensor, bool batched) {
  std::int64_t result = 1;
  for (std::int64_t d = batched ? 1 : 0; d < tensor.rank; ++d) result *= tensor.shape[d];
  return result;
}

bool overlap(const float* a, std::int64_t a_floats, const float* b, std::int64_t b_floats) {
  return a < b + b_floats && b < a + a_floats;
}

}  // namespace
