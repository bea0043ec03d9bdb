// The PyTorch operators syno::_add_program, syno::_run_program and syno::_drop_program: parts of networks that syno.compile
// returns, each of which is C++ of its own (emit/cpp/network.h) that calls kernels.
#pragma once

#include <dlfcn.h>
#include <memory>
#include <vector>

#include "kernels.h"

namespace {

/// PyTorch's own team of threads, through the functions that its compiler calls: waiting for each other inside of a team
/// takes a fraction of what beginning another one does. Absent where PyTorch was built without OpenMP.
struct OpenMp {
  void (*parallel)(void (*)(void*), void*, unsigned, unsigned) = nullptr;
  void (*barrier)() = nullptr;
  int (*thread)() = nullptr;
  int (*threads)() = nullptr;

  bool found() const { return parallel && barrier && thread && threads; }

  static const OpenMp& of_torch() {
    static const OpenMp found = [] {
      OpenMp made;
      void* const torch = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
      if (torch == nullptr) return made;
      const auto set = [&](auto& function, const char* name) {
        function =
            reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(torch, name));
      };
      set(made.parallel, "GOMP_parallel");
      set(made.barrier, "GOMP_barrier");
      set(made.thread, "omp_get_thread_num");
      set(made.threads, "omp_get_num_threads");
      return made;
    }();
    return found;
  }
};

using Body = void (*)(const void* data, long thread, long threads);

struct Parallel {
  Body body;
  const void* data;
};

void run_team(int threads, Body body, const void* data) {
  const OpenMp& omp = OpenMp::of_torch();
  if (threads <= 1 || !omp.found()) return body(data, 0, 1);
  Parallel parallel{body, data};
  omp.parallel(
      [](void* given) {
        const auto& all = *static_cast<const Parallel*>(given);
        const OpenMp& of = OpenMp::of_torch();
        all.body(all.data, of.thread(), of.threads());
      },
      &parallel, static_cast<unsigned>(threads), 0);
}

void wait_for_team() {
  OpenMp::of_torch().barrier();
}

constexpr SynoHost kHost{&run_team, &wait_for_team};

/// An argument of a program: the elements of an image, whether they are the same for all images, and whether they are int64.
struct ProgramArgument {
  std::int64_t elements = 0;
  bool shared = false, ids = false;
};

struct Program {
  SynoRunProgram run = nullptr;
  SynoProgramError error = nullptr;
  std::vector<ProgramArgument> inputs, outputs;
  std::int64_t macs = 0;
  std::vector<const SynoKernel*> kernels;
  std::vector<const float*> packed, constants;
  std::vector<Tensor> held;
  SynoProgram said{};
};

std::unordered_map<std::int64_t, std::shared_ptr<const Program>> programs;
std::shared_mutex programs_mutex;
std::int64_t last_program = 0;

void require(bool right, const char* what) {
  if (!right) refuse(std::string("a program of kernels: ") + what);
}

/// The tensor, or a copy whose elements lie in a row; there must be so many.
Tensor in_a_row(const Tensor& tensor, std::int64_t count, bool ids, const char* name) {
  std::int32_t dtype = 0;
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(tensor.get(), &dtype));
  require(dtype == (ids ? aoti_torch_dtype_int64() : aoti_torch_dtype_float32()), "another dtype");
  std::int64_t elements = 1;
  const auto shape = tensor.sizes(), strides = tensor.strides();
  bool contiguous = true;
  for (std::int64_t d = static_cast<std::int64_t>(shape.size()); d-- > 0;) {
    contiguous = contiguous && (shape[d] == 1 || strides[d] == elements);
    elements *= shape[d];
  }
  if (elements != count)
    refuse(std::string("a program of kernels: ") + name +
           " of the wrong size\n  expected: " + std::to_string(count) +
           " elements      got: " + text(shape.data(), static_cast<std::int64_t>(shape.size())));
  return contiguous ? tensor : torch::stable::contiguous(tensor);
}

/// numbers: the addresses of the two functions of a program, the number of its inputs, of each the elements of an image,
/// whether it is shared and whether it holds int64, and of each output the elements of an image. kernels: addresses.
Program checked_program(const std::vector<std::int64_t>& numbers,
                        const std::vector<std::int64_t>& kernels, std::vector<Tensor> packed,
                        std::vector<Tensor> constants) {
  Program program;
  require(numbers.size() >= 3 && numbers[0] != 0 && numbers[1] != 0, "no functions");
  program.run = reinterpret_cast<SynoRunProgram>(numbers[0]);
  program.error = reinterpret_cast<SynoProgramError>(numbers[1]);
  std::size_t place = 3;
  for (std::int64_t input = 0; input < numbers[2]; ++input, place += 3) {
    require(place + 3 <= numbers.size(), "too few numbers");
    program.inputs.push_back({numbers[place], numbers[place + 1] != 0, numbers[place + 2] != 0});
  }
  for (; place < numbers.size(); ++place) program.outputs.push_back({numbers[place]});
  require(!program.outputs.empty(), "no output");
  require(kernels.size() == packed.size(), "weights of other layers");
  for (std::size_t layer = 0; layer < kernels.size(); ++layer) {
    const auto* const kernel = reinterpret_cast<const SynoKernel*>(kernels[layer]);
    require(kernel != nullptr, "no kernel");
    program.held.push_back(checked_packed(*kernel, packed[layer]));
    program.kernels.push_back(kernel);
    program.macs += kernel->macs;
    program.packed.push_back(program.held.back().const_data_ptr<float>() + kSynoHeader);
  }
  for (const Tensor& each : constants) {
    check_kind(each, "a constant");
    program.held.push_back(each);
    program.constants.push_back(each.const_data_ptr<float>());
  }
  program.said = {&kHost, program.kernels.data(), program.packed.data(), program.constants.data()};
  return program;
}

std::shared_ptr<const Program> program_of(std::int64_t number) {
  const std::shared_lock lock(programs_mutex);
  const auto found = programs.find(number);
  if (found == programs.end()) refuse("there is no such program of kernels");
  return found->second;
}

/// Computes `out`; nanoseconds in kernels, if `timed`.
std::int64_t run_program(const Program& program, const std::vector<Tensor>& given,
                         const std::vector<Tensor>& out, std::int64_t batch, bool timed) {
  require(
      given.size() == program.inputs.size() && out.size() == program.outputs.size() && batch > 0,
      "the wrong number of arguments");
  std::vector<Tensor> rows;
  std::vector<const void*> inputs;
  std::vector<float*> outputs;
  rows.reserve(given.size());
  for (std::size_t i = 0; i < given.size(); ++i) {
    const ProgramArgument& wanted = program.inputs[i];
    const std::int64_t count = wanted.elements * (wanted.shared ? 1 : batch);
    rows.push_back(in_a_row(given[i], count, wanted.ids, "an input"));
    inputs.push_back(wanted.ids ? static_cast<const void*>(rows[i].const_data_ptr<std::int64_t>())
                                : rows[i].const_data_ptr<float>());
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    const Tensor row = in_a_row(out[i], program.outputs[i].elements * batch, false, "an output");
    outputs.push_back(row.mutable_data_ptr<float>());
    require(outputs[i] == out[i].const_data_ptr<float>(), "an output whose rows lie apart");
  }
  const bool small = program.macs * batch < kLeastParallelMacs;
  const int threads = small ? 1 : static_cast<int>(torch::stable::get_num_threads());
  double seconds = 0;
  if (program.run(&program.said, inputs.data(), outputs.data(), batch, threads,
                  timed ? &seconds : nullptr) != 0)
    refuse(program.error());
  return static_cast<std::int64_t>(seconds * 1e9);
}

}  // namespace
