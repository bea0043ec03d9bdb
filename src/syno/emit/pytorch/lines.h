// The lines of torch that each stage of a plan becomes.
#pragma once

#include <string>
#include <vector>

#include "syno/plan/plan.h"

namespace syno {

/// A method call behind a value, such as ".unflatten(1, (2, 5))".
struct TensorCall {
  std::string name;
  std::string arguments;
  /// unflatten and flatten: the place and the number of dimensions that come from one, or become one.
  std::size_t place = 0;
  std::size_t count = 0;

  std::string text() const { return "." + name + "(" + arguments + ")"; }
};

/// target = value.call().call()  # comment
struct Assignment {
  std::string target;
  std::string value;
  std::vector<TensorCall> calls;
  std::string comment;

  std::string expression() const;
};

class PytorchLines {
 public:
  explicit PytorchLines(const Plan& plan);

  /// The whole computation from x to x. An unflatten that the next line takes back is left out.
  std::vector<Assignment> assignments() const;

 private:
  void add_stage(const Stage& stage, std::vector<Assignment>& lines) const;
  void add_convolution(const Stage& stage, std::vector<Assignment>& lines) const;
  void add_shear(const Stage& stage, std::vector<Assignment>& lines) const;
  std::string einsum(const Stage& stage) const;
  std::vector<Assignment> sizes() const;
  bool made_by_convolution(int tensor) const;
  /// The expression and the variable of a tensor: "self.w0" until a stage has viewed the weight, then "w0".
  const std::string& value(int tensor) const { return values_[static_cast<std::size_t>(tensor)]; }
  std::string size_of(int dim) const;

  const Plan& plan_;
  std::vector<std::string> values_;
};

}  // namespace syno
