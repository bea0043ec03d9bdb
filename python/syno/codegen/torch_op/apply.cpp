// The PyTorch operators syno::apply and syno::apply.out: all compiled kernels, by key and epilogue; pooling; and chains
// of both.
//
// It uses PyTorch's stable ABI alone, so that one build serves every version from 2.10 on, and PyTorch's own threads:
// kernels are compiled without OpenMP and called phase by phase.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <memory>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kernel.h"

namespace {

using torch::stable::Tensor;
using MaybeTensor = std::optional<Tensor>;

constexpr std::int64_t kMostDims = 16;
// Below it, waking other threads takes longer than what they save: about two microseconds of one core.
constexpr std::int64_t kLeastParallelMacs = 100'000;

[[noreturn]] void refuse(const std::string& message) {
  throw std::runtime_error(message);
}

// --- kernels by key --------------------------------------------------------------------------------------------------

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

// --- arguments -------------------------------------------------------------------------------------------------------

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

/// What an epilogue reads; null pointers where it names none.
MaybeTensor optional_argument(const MaybeTensor& given, bool named, const char* name,
                              const char* epilogue) {
  if (given.has_value() == named) return given;
  refuse(std::string("syno::apply: ") + name +
         (named ? " is missing, which the epilogue '" : " is given, which the epilogue '") +
         epilogue + (named ? "' names" : "' does not name"));
}

// --- computing -------------------------------------------------------------------------------------------------------

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

std::int64_t floats_of(const Layout& tensor, bool batched) {
  std::int64_t result = 1;
  for (std::int64_t d = batched ? 1 : 0; d < tensor.rank; ++d) result *= tensor.shape[d];
  return result;
}

bool overlap(const float* a, std::int64_t a_floats, const float* b, std::int64_t b_floats) {
  return a < b + b_floats && b < a + a_floats;
}

/// y, in the memory of `out` where there is one.
Tensor apply(const Tensor& x, const Tensor& packed, const MaybeTensor& channel,
             const MaybeTensor& residual, std::string_view key, std::string_view epilogue,
             const MaybeTensor& out) {
  const SynoKernel& kernel = kernel_of(key, epilogue);
  check_kind(x, "x");
  if (aoti_torch_grad_mode_is_enabled()) {
    check_grad(x, "x");
    check_grad(packed, "packed");
    if (channel) check_grad(*channel, "channel");
    if (residual) check_grad(*residual, "residual");
  }
  const bool batched = kernel.batched != 0;
  const std::int64_t batch = batched && x.dim() > 0 ? x.sizes()[0] : 1;
  const Layout of_x =
      layout(kernel.input_shape, kernel.input_order, kernel.input_rank, batched, batch);
  const Layout of_y =
      layout(kernel.output_shape, kernel.output_order, kernel.output_rank, batched, batch);
  check_shape(x, "x", of_x, batched);
  const Tensor weights = checked_packed(kernel, packed);
  MaybeTensor floats =
      optional_argument(channel, kernel.channel_floats > 0, "channel", kernel.epilogue);
  if (floats) floats = vector_of(*floats, "channel", kernel.channel_floats);
  MaybeTensor added =
      optional_argument(residual, kernel.has_residual != 0, "residual", kernel.epilogue);
  if (added) {
    check_kind(*added, "residual");
    check_shape(*added, "residual", of_y, false);
    added = in_order(*added, of_y);
  }
  const Tensor data = in_order(x, of_x);
  const std::int64_t input_floats = floats_of(of_x, batched);
  const std::int64_t output_floats = floats_of(of_y, batched);
  const float* const from = data.const_data_ptr<float>();
  const float* const plus = added ? added->const_data_ptr<float>() : nullptr;

  bool direct = true;
  if (out) {
    check_kind(*out, "out");
    check_shape(*out, "out", of_y, false);
    // The kernel writes parts of y before it has read all of x; residual may be y itself.
    float* const to = out->mutable_data_ptr<float>();
    const std::int64_t size = batch * output_floats;
    direct = has_strides(*out, of_y) && !overlap(to, size, from, batch * input_floats) &&
             (plus == nullptr || plus == to || !overlap(to, size, plus, size));
  }
  Tensor y = out && direct ? *out : empty(of_y);
  const Call call{kernel,
                  from,
                  weights.const_data_ptr<float>() + kSynoHeader,
                  floats ? floats->const_data_ptr<float>() : nullptr,
                  plus,
                  y.mutable_data_ptr<float>(),
                  input_floats,
                  output_floats};
  compute(call, batch);
  if (!out || direct) return y;
  copy(*out, y);
  return *out;
}

#include "chain.h"

// --- the operators ---------------------------------------------------------------------------------------------------

/// A string argument, read where it is: PyTorch's own conversion copies it, and in 2.13 it loses the copy.
class Text {
 public:
  explicit Text(StableIValue value) : handle_(torch::stable::detail::to<StringHandle>(value)) {}
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;
  ~Text() { torch_delete_string(handle_); }

  std::string_view view() const {
    std::size_t length = 0;
    const char* data = nullptr;
    STABLE_TORCH_ERROR_CODE_CHECK(torch_string_length(handle_, &length));
    STABLE_TORCH_ERROR_CODE_CHECK(torch_string_c_str(handle_, &data));
    return {data, length};
  }

 private:
  StringHandle handle_;
};

template <bool kOut>
void boxed(StableIValue* stack, std::uint64_t, std::uint64_t) {
  using torch::stable::detail::to;
  const auto x = to<Tensor>(stack[0]);
  const auto packed = to<Tensor>(stack[1]);
  const auto channel = to<MaybeTensor>(stack[2]);
  const auto residual = to<MaybeTensor>(stack[3]);
  const Text key(stack[4]), epilogue(stack[5]);
  MaybeTensor out;
  if constexpr (kOut) out = to<Tensor>(stack[6]);
  Tensor y = apply(x, packed, channel, residual, key.view(), epilogue.view(), out);
  if constexpr (!kOut) stack[0] = torch::stable::detail::from(y);
}

template <bool kOut>
void boxed_pool(StableIValue* stack, std::uint64_t, std::uint64_t) {
  using torch::stable::detail::to;
  const auto x = to<Tensor>(stack[0]);
  std::array<std::int64_t, 6> sizes{};
  for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i] = to<std::int64_t>(stack[1 + i]);
  MaybeTensor out;
  if constexpr (kOut) out = to<Tensor>(stack[8]);
  Tensor y = pool(x, sizes, to<bool>(stack[7]), out);
  if constexpr (!kOut) stack[0] = torch::stable::detail::from(y);
}

void boxed_kernel_at(StableIValue* stack, std::uint64_t, std::uint64_t) {
  const Text key(stack[0]), epilogue(stack[1]);
  const SynoKernel* const kernel = &kernel_of(key.view(), epilogue.view());
  stack[0] = torch::stable::detail::from(reinterpret_cast<std::int64_t>(kernel));
}

void boxed_add_chain(StableIValue* stack, std::uint64_t, std::uint64_t) {
  using torch::stable::detail::to;
  const auto numbers = to<std::vector<std::int64_t>>(stack[0]);
  auto chain = std::make_shared<Chain>(checked_chain(numbers, to<std::vector<Tensor>>(stack[1])));
  const std::unique_lock lock(chains_mutex);
  chains.emplace(++last_chain, std::move(chain));
  stack[0] = torch::stable::detail::from(last_chain);
}

void boxed_run_chain(StableIValue* stack, std::uint64_t, std::uint64_t) {
  using torch::stable::detail::to;
  const auto inputs = to<std::vector<Tensor>>(stack[0]);
  const auto memory = to<Tensor>(stack[1]), out = to<Tensor>(stack[2]);
  const auto chain = chain_of(to<std::int64_t>(stack[3]));
  const auto batch = to<std::int64_t>(stack[4]);
  stack[0] = torch::stable::detail::from(
      run_chain(*chain, inputs, memory, out, batch, to<bool>(stack[5])));
}

void boxed_drop_chain(StableIValue* stack, std::uint64_t, std::uint64_t) {
  const auto number = torch::stable::detail::to<std::int64_t>(stack[0]);
  std::shared_ptr<const Chain> last;  // its tensors are released behind the lock
  const std::unique_lock lock(chains_mutex);
  const auto found = chains.find(number);
  if (found == chains.end()) return;
  last = std::move(found->second);
  chains.erase(found);
}

bool add(const SynoKernel* kernel) {
  if (kernel->version != kSynoKernelVersion || kernel->input_rank > kMostDims ||
      kernel->output_rank > kMostDims)
    return false;
  const std::unique_lock lock(kernels_mutex);
  kernels.emplace(Name{kernel->key, kernel->epilogue}, kernel);
  return true;
}

void boxed_add_kernel(StableIValue* stack, std::uint64_t, std::uint64_t) {
  const auto address = torch::stable::detail::to<std::int64_t>(stack[0]);
  stack[0] = torch::stable::detail::from(add(reinterpret_cast<const SynoKernel*>(address)));
}

void boxed_set_loader(StableIValue* stack, std::uint64_t, std::uint64_t) {
  loader = reinterpret_cast<Loader>(torch::stable::detail::to<std::int64_t>(stack[0]));
}

#define SYNO_ARGUMENTS \
  "(Tensor x, Tensor packed, Tensor? channel, Tensor? residual, str key, str epilogue"

// Height and width of windows, of their distance and of what is around the maps.
#define SYNO_WINDOWS "(Tensor x, int kh, int kw, int sh, int sw, int ph, int pw, bool average"

/// Registers the operators; false where another copy of this library did, which then has all kernels.
///
/// apply.out returns nothing and has no tag: PyTorch 2.13 traces no operator that returns what it was given unless it is
/// tagged as an out variant, and its Inductor then takes no symbolic batch size (FixedLayout asserts integers).
bool define() {
  // Never deleted: the operators stay until the process ends.
  TorchLibraryHandle library = nullptr;
  const auto check = [](AOTITorchError code) { STABLE_TORCH_ERROR_CODE_CHECK(code); };
  check(aoti_torch_library_init_fragment("syno", __FILE__, __LINE__, &library));
  if (aoti_torch_library_def(library, "apply" SYNO_ARGUMENTS ") -> Tensor") != AOTI_TORCH_SUCCESS)
    return false;
  check(aoti_torch_library_def(library, "apply.out" SYNO_ARGUMENTS ", *, Tensor(a!) out) -> ()"));
  check(aoti_torch_library_def(library, "pool" SYNO_WINDOWS ") -> Tensor"));
  check(aoti_torch_library_def(library, "pool.out" SYNO_WINDOWS ", *, Tensor(a!) out) -> ()"));
  // A SynoKernel, whether it was compiled for this version; a function of the type Loader. Both by address.
  check(aoti_torch_library_def(library, "_add_kernel(int address) -> bool"));
  check(aoti_torch_library_def(library, "_set_loader(int address) -> ()"));
  // The address of a kernel. Chains: see chain.h; the numbers are those of `checked_chain`. None of them is traced.
  check(aoti_torch_library_def(library, "_kernel_at(str key, str epilogue) -> int"));
  check(aoti_torch_library_def(library, "_add_chain(int[] numbers, Tensor[] held) -> int"));
  check(aoti_torch_library_def(library,
                               "_run_chain(Tensor[] inputs, Tensor(a!) memory, Tensor(b!) out, int "
                               "chain, int batch, bool timed) -> int"));
  check(aoti_torch_library_def(library, "_drop_chain(int chain) -> ()"));
  check(aoti_torch_library_init_impl("syno", "CPU", __FILE__, __LINE__, &library));
  check(torch_library_impl(library, "apply", &boxed<false>, TORCH_ABI_VERSION));
  check(torch_library_impl(library, "apply.out", &boxed<true>, TORCH_ABI_VERSION));
  check(torch_library_impl(library, "pool", &boxed_pool<false>, TORCH_ABI_VERSION));
  check(torch_library_impl(library, "pool.out", &boxed_pool<true>, TORCH_ABI_VERSION));
  check(torch_library_impl(library, "_run_chain", &boxed_run_chain, TORCH_ABI_VERSION));
  check(aoti_torch_library_init_impl("syno", "CompositeExplicitAutograd", __FILE__, __LINE__,
                                     &library));
  check(torch_library_impl(library, "_kernel_at", &boxed_kernel_at, TORCH_ABI_VERSION));
  check(torch_library_impl(library, "_add_chain", &boxed_add_chain, TORCH_ABI_VERSION));
  check(torch_library_impl(library, "_drop_chain", &boxed_drop_chain, TORCH_ABI_VERSION));
  check(torch_library_impl(library, "_add_kernel", &boxed_add_kernel, TORCH_ABI_VERSION));
  check(torch_library_impl(library, "_set_loader", &boxed_set_loader, TORCH_ABI_VERSION));
  return true;
}

const bool defined = define();

// --- packages --------------------------------------------------------------------------------------------------------

/// What the compiler's -march=native depends on, as Python's syno.codegen.native.processor says it.
std::string processor() {
  static const std::array<std::string_view, 6> wanted = {"vendor_id", "cpu family", "model",
                                                         "flags",     "Features",   "CPU part"};
  std::ifstream file("/proc/cpuinfo");
  std::string result, line;
  while (std::getline(file, line) && !line.empty()) {
    std::string_view name = std::string_view(line).substr(0, line.find('\t'));
    while (!name.empty() && (name.back() == ' ' || name.back() == ':')) name.remove_suffix(1);
    if (std::find(wanted.begin(), wanted.end(), name) == wanted.end()) continue;
    if (!result.empty()) result += '\n';
    result += line;
  }
  return result;
}

/// Adds it to the table of the copy of this library that has the operators.
bool hand_over(const SynoKernel* kernel) {
  if (defined) return add(kernel);
  std::array<StableIValue, 1> stack{
      torch::stable::detail::from(reinterpret_cast<std::int64_t>(kernel))};
  STABLE_TORCH_ERROR_CODE_CHECK(
      torch_call_dispatcher("syno::_add_kernel", "", stack.data(), TORCH_ABI_VERSION));
  return torch::stable::detail::to<bool>(stack[0]);
}

/// Loads the kernels that lie beside this library; what went wrong, or nothing.
std::string load_package() {
  Dl_info self;
  if (dladdr(&packaged_problem, &self) == 0) return "";
  const std::string path = self.dli_fname;
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  std::ifstream list(folder + "kernels.txt");
  if (!list) return "";
  std::stringstream made_for;
  made_for << std::ifstream(folder + "processor.txt").rdbuf();
  if (made_for.str() != processor())
    return "the kernels in '" + folder + "' were compiled for another processor\n" +
           "  what to do: load them with syno.codegen.torch_op.load_package, which compiles them";
  for (std::string name; std::getline(list, name);) {
    void* const library = dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return dlerror();
    const auto* kernel = static_cast<const SynoKernel* const*>(dlsym(library, "syno_kernels"));
    if (kernel == nullptr) return "'" + name + "' holds no kernels";
    for (; *kernel != nullptr; ++kernel)
      if (!hand_over(*kernel)) return "'" + name + "' was compiled for another version of Syno";
  }
  return "";
}

const bool package_loaded = (packaged_problem = load_package()).empty();

}  // namespace
