// The lines of torch that each stage of a plan becomes.
#pragma once

#include <string>
#include <vector>

#include "syno/plan/plan.h"

namespace syno {

class PytorchLines {
 public:
  explicit PytorchLines(const Plan& plan);

  /// Lines before the first stage: sizes known at run time only that some later line needs.
  std::vector<std::string> sizes() const;
  /// The lines of one stage; the last one assigns its result.
  std::vector<std::string> stage(const Stage& stage) const;

 private:
  std::vector<std::string> convolution(const Stage& stage) const;
  std::vector<std::string> shear(const Stage& stage) const;
  std::string einsum(const Stage& stage) const;
  std::string padded(const std::string& value, const std::vector<int>& dims,
                     const std::vector<int>& places, const std::vector<std::int64_t>& before,
                     const std::vector<std::int64_t>& after) const;
  /// The expression and the variable of a tensor: "self.w0" until a stage has viewed the weight, then "w0".
  const std::string& value(int tensor) const { return values_[static_cast<std::size_t>(tensor)]; }
  std::string size_of(int dim) const;

  const Plan& plan_;
  std::vector<std::string> values_;
};

}  // namespace syno
