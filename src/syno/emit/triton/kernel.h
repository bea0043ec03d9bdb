// One nest as a Triton kernel.
#pragma once

#include <string>
#include <vector>

#include "syno/emit/printer.h"
#include "syno/plan/loop_nest.h"

namespace syno {

/// The axes of a nest by the operands they are in, outermost first; the batch of the program is not among them.
struct AxisRoles {
  std::vector<int>
      groups;  ///< of the result, in the last operand, the weight, and in others, the data
  std::vector<int> rows;     ///< of the result, in the weight alone
  std::vector<int> columns;  ///< of the result, the others
  std::vector<int> terms;    ///< summed

  /// All of the result, in their order.
  std::vector<int> positions() const;
};

AxisRoles axis_roles(const LoopNest& nest);

class TritonKernel {
 public:
  /// `least_product`: rows and terms from which on the nest is a matrix product.
  TritonKernel(const LoopProgram& program, const LoopNest& nest, std::int64_t least_product);

  /// The function, and the line that tunes it.
  void print(Printer& out) const;
  /// The lines that make the result and start the kernel.
  void print_call(Printer& out) const;

 private:
  std::string result() const { return program_.buffer(nest_.store.buffer).name(); }
  bool batched() const {
    return program_.batched && !program_.buffer(nest_.store.buffer).from_weights;
  }
  /// One side of a tile of addresses: a flat number, how many there are, and the axes in it. The other side are the
  /// terms, where they take part; `view` turns them there.
  struct Side {
    std::string flat;
    std::string bound;
    std::string view;
    std::vector<int> axes;
    bool with_terms = false;
  };

  std::int64_t extent(const std::vector<int>& axes) const;
  std::vector<std::string> tensors() const;
  std::vector<std::string> parameters() const;
  void print_product(Printer& out) const;
  void print_sum(Printer& out) const;
  void print_store(Printer& out, const std::string& value, Side side) const;
  void print_tiles(Printer& out) const;
  void print_parts(Printer& out, const std::string& flat, const std::vector<int>& axes,
                   bool with_batch) const;
  /// Prints mask and addresses; returns the load.
  std::string load(Printer& out, const Access& access, const Side& side) const;
  std::string address(const Access& access, const Side& side) const;

  const LoopProgram& program_;
  /// What it computes, and the same without the batch and with few axes.
  const LoopNest& given_;
  LoopNest nest_;
  AxisRoles roles_;
  bool product_ = false;
};

}  // namespace syno
