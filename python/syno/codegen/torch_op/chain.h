// The PyTorch operators syno::_add_chain, syno::_run_chain and syno::_drop_chain: kernels and poolings one after the
// other in a call, for networks that syno.compile returns.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "kernels.h"
#include "pool.h"

namespace {

/// Where a tensor of a chain lies: in an argument, in memory at an offset of floats, or in the result. All offsets and
/// sizes are floats for each element of the batch.
struct ChainValue {
  enum Room : std::int64_t { kInput, kMemory, kOutput };
  std::int64_t room, place, floats;
};

/// A kernel, or a pooling where there is none. Tensors and values are given by their numbers, -1 for none.
struct ChainStep {
  const SynoKernel* kernel;
  std::int64_t packed, channel;
  std::int64_t x, residual, y;
  std::int64_t images;  // for each element of the batch; of a pooling its maps
  bool average;
  Windows windows;
};

struct Chain {
  std::int64_t inputs = 0, memory = 0;
  std::vector<ChainValue> values;
  std::vector<ChainStep> steps;
  std::vector<Tensor> held;
};

std::unordered_map<std::int64_t, std::shared_ptr<const Chain>> chains;
std::shared_mutex chains_mutex;
std::int64_t last_chain = 0;

/// Numbers one after the other.
class Numbers {
 public:
  explicit Numbers(const std::vector<std::int64_t>& numbers) : numbers_(numbers) {}
  std::int64_t next() {
    if (place_ == numbers_.size()) refuse("a chain of kernels: too few numbers");
    return numbers_[place_++];
  }
  bool end() const { return place_ == numbers_.size(); }

 private:
  const std::vector<std::int64_t>& numbers_;
  std::size_t place_ = 0;
};

void require(bool right, const char* what) {
  if (!right) refuse(std::string("a chain of kernels: ") + what);
}

bool row_major(const std::int64_t* order, std::int64_t rank) {
  for (std::int64_t d = 0; d < rank; ++d)
    if (order[d] != d) return false;
  return true;
}

std::int64_t image_floats(const std::int64_t* shape, std::int64_t rank, bool batched) {
  std::int64_t result = 1;
  for (std::int64_t d = batched ? 1 : 0; d < rank; ++d) result *= shape[d];
  return result;
}

/// A contiguous tensor of so many floats.
Tensor floats_of_size(const Tensor& tensor, const char* name, std::int64_t size,
                      bool copied = false, bool more = false) {
  check_kind(tensor, name);
  const auto shape = tensor.sizes();
  std::int64_t count = 1;
  Layout wanted;
  wanted.rank = static_cast<std::int64_t>(shape.size());
  require(wanted.rank <= kMostDims, "a tensor of too many dimensions");
  for (std::int64_t d = wanted.rank; d-- > 0;) {
    wanted.shape[d] = shape[d];
    wanted.strides[d] = count;
    count *= shape[d];
  }
  const bool contiguous = has_strides(tensor, wanted);
  if (!(count == size || (more && count > size)) || !(contiguous || copied))
    refuse(std::string("a chain of kernels: ") + name + " of the wrong size\n  expected: " +
           std::to_string(size) + " floats      got: " + text(shape.data(), wanted.rank));
  return contiguous ? tensor : in_order(tensor, wanted);
}

/// What a chain reads and writes lies inside of its arguments, whatever the numbers are.
Chain checked_chain(const std::vector<std::int64_t>& given, std::vector<Tensor> held) {
  Numbers numbers(given);
  Chain chain;
  chain.inputs = numbers.next();
  chain.memory = numbers.next();
  std::int64_t outputs = 0;
  for (std::int64_t left = numbers.next(); left > 0; --left) {
    const ChainValue value{numbers.next(), numbers.next(), numbers.next()};
    require(value.place >= 0 && value.floats > 0, "a value of the wrong size");
    require(value.room != ChainValue::kInput || value.place < chain.inputs, "no such input");
    require(value.room != ChainValue::kMemory || value.place + value.floats <= chain.memory,
            "a value outside of the memory");
    outputs += value.room == ChainValue::kOutput;
    chain.values.push_back(value);
  }
  require(outputs == 1, "a chain has one result");
  const auto value = [&](std::int64_t number) -> const ChainValue& {
    require(number >= 0 && number < static_cast<std::int64_t>(chain.values.size()),
            "no such value");
    return chain.values[number];
  };
  // In a row: a chain reads them where they are.
  const auto floats_held = [&](std::int64_t number, std::int64_t floats) -> const Tensor& {
    require(number >= 0 && number < static_cast<std::int64_t>(held.size()), "no such tensor");
    floats_of_size(held[number], "a weight", floats);
    return held[number];
  };
  while (!numbers.end()) {
    ChainStep step{};
    step.kernel = reinterpret_cast<const SynoKernel*>(numbers.next());
    for (std::int64_t* each : {&step.packed, &step.channel, &step.x, &step.residual, &step.y})
      *each = numbers.next();
    for (std::int64_t* pair :
         {step.windows.kernel, step.windows.stride, step.windows.padding, step.windows.size})
      for (int d = 0; d < 2; ++d) pair[d] = numbers.next();
    step.average = numbers.next() != 0;
    require(value(step.y).room != ChainValue::kInput, "a step that writes into an input");
    std::int64_t reads = 0, writes = 0;
    bool one = false;  // image
    if (step.kernel != nullptr) {
      const SynoKernel& kernel = *step.kernel;
      const bool batched = kernel.batched != 0;
      require(row_major(kernel.input_order, kernel.input_rank) &&
                  row_major(kernel.output_order, kernel.output_rank),
              "a kernel that is not row-major");
      one = !batched;
      reads = image_floats(kernel.input_shape, kernel.input_rank, batched);
      writes = image_floats(kernel.output_shape, kernel.output_rank, batched);
      require((kernel.channel_floats > 0) == (step.channel >= 0), "channel");
      require((kernel.has_residual != 0) == (step.residual >= 0), "residual");
      checked_packed(kernel, floats_held(step.packed, kSynoHeader + kernel.packed_size()));
      if (step.channel >= 0) floats_held(step.channel, kernel.channel_floats);
    } else {
      require(complete(step.windows, step.average), "windows that do not fit");
      reads = step.windows.size[0] * step.windows.size[1];
      writes = step.windows.out[0] * step.windows.out[1];
    }
    step.images = value(step.x).floats / reads;
    require(step.images > 0 && step.images * reads == value(step.x).floats &&
                step.images * writes == value(step.y).floats && (!one || step.images == 1),
            "a step that reads or writes a value of another size");
    require(step.residual < 0 || value(step.residual).floats == value(step.y).floats,
            "residual of the wrong size");
    chain.steps.push_back(step);
  }
  chain.held = std::move(held);
  return chain;
}

std::shared_ptr<const Chain> chain_of(std::int64_t number) {
  const std::shared_lock lock(chains_mutex);
  const auto found = chains.find(number);
  if (found == chains.end()) refuse("there is no such chain of kernels");
  return found->second;
}

/// Computes `out`; nanoseconds in kernels, if `timed`.
std::int64_t run_chain(const Chain& chain, const std::vector<Tensor>& given, const Tensor& memory,
                       const Tensor& out, std::int64_t batch, bool timed) {
  if (static_cast<std::int64_t>(given.size()) != chain.inputs || batch < 1)
    refuse("a chain of kernels: the wrong number of inputs");
  std::vector<Tensor> inputs;
  inputs.reserve(given.size());
  float* const scratch = chain.memory == 0
                             ? nullptr
                             : floats_of_size(memory, "memory", batch * chain.memory, false, true)
                                   .mutable_data_ptr<float>();
  std::vector<float*> at;
  at.reserve(chain.values.size());
  for (const Tensor& each : given) inputs.push_back(each);
  for (const ChainValue& value : chain.values) {
    if (value.room == ChainValue::kInput) {
      Tensor& input = inputs[value.place];
      input = floats_of_size(input, "x", batch * value.floats, true);
      at.push_back(const_cast<float*>(input.const_data_ptr<float>()));
    } else if (value.room == ChainValue::kMemory) {
      at.push_back(scratch + batch * value.place);
    } else {
      at.push_back(floats_of_size(out, "out", batch * value.floats).mutable_data_ptr<float>());
    }
  }
  std::int64_t nanoseconds = 0;
  for (const ChainStep& step : chain.steps) {
    if (step.kernel == nullptr) {
      pool_maps(step.windows, at[step.x], at[step.y], batch * step.images, step.average);
      continue;
    }
    const SynoKernel& kernel = *step.kernel;
    const bool batched = kernel.batched != 0;
    const Call call{kernel,
                    at[step.x],
                    chain.held[step.packed].const_data_ptr<float>() + kSynoHeader,
                    step.channel < 0 ? nullptr : chain.held[step.channel].const_data_ptr<float>(),
                    step.residual < 0 ? nullptr : at[step.residual],
                    at[step.y],
                    image_floats(kernel.input_shape, kernel.input_rank, batched),
                    image_floats(kernel.output_shape, kernel.output_rank, batched)};
    if (!timed) {
      compute(call, batch * step.images);
      continue;
    }
    const auto began = std::chrono::steady_clock::now();
    compute(call, batch * step.images);
    nanoseconds += std::chrono::nanoseconds(std::chrono::steady_clock::now() - began).count();
  }
  return nanoseconds;
}

}  // namespace
