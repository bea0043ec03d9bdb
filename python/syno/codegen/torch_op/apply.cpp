// The PyTorch operators syno::apply and syno::apply.out: all compiled kernels, by key and epilogue; pooling; and programs
// that call kernels.
//
// It uses PyTorch's stable ABI alone, so that one build serves every version from 2.10 on, and PyTorch's own threads:
// kernels are compiled without OpenMP and called phase by phase.
#include <dlfcn.h>
#include <fstream>
#include <sstream>

#include "pool.h"
#include "program.h"

namespace {

/// What an epilogue reads; null pointers where it names none.
MaybeTensor optional_argument(const MaybeTensor& given, bool named, const char* name,
                              const char* epilogue) {
  if (given.has_value() == named) return given;
  refuse(std::string("syno::apply: ") + name +
         (named ? " is missing, which the epilogue '" : " is given, which the epilogue '") +
         epilogue + (named ? "' names" : "' does not name"));
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

void boxed_add_program(StableIValue* stack, std::uint64_t, std::uint64_t) {
  using torch::stable::detail::to;
  const auto numbers = to<std::vector<std::int64_t>>(stack[0]);
  const auto kernels_of = to<std::vector<std::int64_t>>(stack[1]);
  auto program = std::make_shared<Program>(checked_program(
      numbers, kernels_of, to<std::vector<Tensor>>(stack[2]), to<std::vector<Tensor>>(stack[3])));
  const std::unique_lock lock(programs_mutex);
  programs.emplace(++last_program, std::move(program));
  stack[0] = torch::stable::detail::from(last_program);
}

void boxed_run_program(StableIValue* stack, std::uint64_t, std::uint64_t) {
  using torch::stable::detail::to;
  const auto inputs = to<std::vector<Tensor>>(stack[0]), out = to<std::vector<Tensor>>(stack[1]);
  const auto program = program_of(to<std::int64_t>(stack[2]));
  const auto batch = to<std::int64_t>(stack[3]);
  stack[0] =
      torch::stable::detail::from(run_program(*program, inputs, out, batch, to<bool>(stack[4])));
}

void boxed_drop_program(StableIValue* stack, std::uint64_t, std::uint64_t) {
  const auto number = torch::stable::detail::to<std::int64_t>(stack[0]);
  std::shared_ptr<const Program> last;  // its tensors are released behind the lock
  const std::unique_lock lock(programs_mutex);
  const auto found = programs.find(number);
  if (found == programs.end()) return;
  last = std::move(found->second);
  programs.erase(found);
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
  // The address of a kernel. Programs: see program.h; the numbers are those of `checked_program`. None of them is traced.
  check(aoti_torch_library_def(library, "_kernel_at(str key, str epilogue) -> int"));
  check(aoti_torch_library_def(library,
                               "_add_program(int[] numbers, int[] kernels, Tensor[] packed, "
                               "Tensor[] constants) -> int"));
  check(aoti_torch_library_def(library,
                               "_run_program(Tensor[] inputs, Tensor(a!)[] out, int program, int "
                               "batch, bool timed) -> int"));
  check(aoti_torch_library_def(library, "_drop_program(int program) -> ()"));
  check(aoti_torch_library_init_impl("syno", "CPU", __FILE__, __LINE__, &library));
  check(torch_library_impl(library, "apply", &boxed<false>, TORCH_ABI_VERSION));
  check(torch_library_impl(library, "apply.out", &boxed<true>, TORCH_ABI_VERSION));
  check(torch_library_impl(library, "pool", &boxed_pool<false>, TORCH_ABI_VERSION));
  check(torch_library_impl(library, "pool.out", &boxed_pool<true>, TORCH_ABI_VERSION));
  check(torch_library_impl(library, "_run_program", &boxed_run_program, TORCH_ABI_VERSION));
  check(aoti_torch_library_init_impl("syno", "CompositeExplicitAutograd", __FILE__, __LINE__,
                                     &library));
  check(torch_library_impl(library, "_kernel_at", &boxed_kernel_at, TORCH_ABI_VERSION));
  check(torch_library_impl(library, "_add_program", &boxed_add_program, TORCH_ABI_VERSION));
  check(torch_library_impl(library, "_drop_program", &boxed_drop_program, TORCH_ABI_VERSION));
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
