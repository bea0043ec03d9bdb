// Plans as PyTorch modules: a few readable lines that need torch alone.
//
// The module has a constructor without arguments, parameters w0, w1, ... with the shapes of Operator::weight_shapes, and
// forward(x) for any size of the dimensions that only pass through. Autograd gives the gradients; the state_dict holds
// all that defines it. A plan that folds weights gives the same module with fold_stages at the head of forward: parameters,
// gradients and state_dict stay those of the operator. With constant weights, a compiler folds these lines away.
#pragma once

#include <string>

#include "syno/emit/source.h"
#include "syno/plan/plan.h"

namespace syno {

struct PytorchOptions {
  std::string class_name = "SynoOperator";
  /// Goes into the docstring, line by line; may be empty.
  std::string formula;
};

Source emit_pytorch(const Plan& plan, const PytorchOptions& options = {});

}  // namespace syno
