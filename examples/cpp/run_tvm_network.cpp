// Runs a network that `syno export --network ... --format tvm-network -o net.so` wrote, without
// Python, and compares its output with a file. Headers and libraries are those of the Python
// packages apache-tvm and apache-tvm-ffi, here in the folders $tvm and $ffi, which
// `python -c "import tvm, tvm_ffi; print(tvm.__path__, tvm_ffi.__path__)"` prints:
//
//     g++ -std=c++17 -O2 -I$ffi/include run_tvm_network.cpp -o run_tvm_network
//         -L$ffi/lib -L$tvm/lib -Wl,-rpath,$ffi/lib:$tvm/lib
//         -Wl,--no-as-needed -ltvm_ffi -ltvm_runtime
//     ./run_tvm_network ./net.so x.bin y.bin 1 3 32 32
//
// x.bin and y.bin are float32 numbers in row-major order: the input, whose shape the last
// arguments give, and the output that is expected. TVM_NUM_THREADS is the number of threads.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>
#include <vector>

namespace ffi = tvm::ffi;

// The kind of memory in which a virtual machine allocates: blocks that it uses again.
static const int kPooled = 2;
static const float kTolerance = 1e-4f;

struct Memory {
  void AllocData(DLTensor* tensor) {
    const size_t bytes = (ffi::GetDataSize(*tensor) + 127) / 64 * 64;
    tensor->data = std::aligned_alloc(64, bytes);
    if (!tensor->data) throw std::bad_alloc();
  }
  void FreeData(DLTensor* tensor) { std::free(tensor->data); }
};

static std::vector<float> numbers(const char* path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) throw std::runtime_error(std::string("cannot read ") + path);
  std::vector<float> found(static_cast<size_t>(file.tellg()) / sizeof(float));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(found.data()),
            static_cast<std::streamsize>(found.size() * sizeof(float)));
  return found;
}

static ffi::Function function(ffi::Module module, const char* name) {
  auto found = module->GetFunction(name);
  if (!found.has_value())
    throw std::runtime_error(std::string("the library has no function ") + name);
  return found.value();
}

static int run(int argc, char** argv) {
  const DLDevice cpu{kDLCPU, 0};
  const ffi::Module library = ffi::Module::LoadFromFile(argv[1]);
  const ffi::Module machine = function(library, "vm_load_executable")().cast<ffi::Module>();
  function(machine, "vm_initialization")(static_cast<int>(cpu.device_type), cpu.device_id, kPooled);

  const std::vector<float> given = numbers(argv[2]), expected = numbers(argv[3]);
  std::vector<int64_t> shape;
  for (int each = 4; each < argc; ++each) shape.push_back(std::atol(argv[each]));
  ffi::Tensor x = ffi::Tensor::FromNDAlloc(Memory(), ffi::ShapeView(shape.data(), shape.size()),
                                           DLDataType{kDLFloat, 32, 1}, cpu);
  if (static_cast<size_t>(x.numel()) != given.size())
    throw std::runtime_error("the input has another size");
  std::copy(given.begin(), given.end(), static_cast<float*>(x.data_ptr()));

  // The outputs of a network are a tuple.
  const ffi::Any result = function(machine, "main")(x);
  const auto outputs = result.try_cast<ffi::Array<ffi::Tensor>>();
  const ffi::Tensor y = outputs.has_value() ? (*outputs)[0] : result.cast<ffi::Tensor>();
  if (static_cast<size_t>(y.numel()) != expected.size())
    throw std::runtime_error("the output has another size");
  const float* found = static_cast<const float*>(y.data_ptr());
  float largest = 0, error = 0;
  for (float each : expected) largest = std::max(largest, std::fabs(each));
  bool right = true;
  for (size_t i = 0; i < expected.size(); ++i) {
    const float off = std::fabs(found[i] - expected[i]);
    right = right && off <= kTolerance * largest;  // false for NaN, too
    error = std::max(error, off);
  }
  std::printf("%s: %zu outputs, largest error %.1e of the largest\n", right ? "right" : "wrong",
              expected.size(), error / largest);
  return right ? 0 : 1;
}

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(stderr, "usage: run_tvm_network LIBRARY INPUT EXPECTED SIZE...\n");
    return 2;
  }
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
