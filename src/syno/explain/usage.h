// What an operator uses of a specification: of each budget, each limit, and which layers it fits. Computed from the
// operator alone, so it is known for operators that the specification rejects, too.
#pragma once

#include <string>
#include <vector>

#include "syno/graph/operator.h"
#include "syno/spec/specification.h"

namespace syno {

struct BudgetUse {
  std::string variable;
  int used = 0;
  int budget = 0;
  bool within() const { return used <= budget; }
};

struct LimitUse {
  /// The limit's name.
  std::string limit;
  /// What the operator uses: a count, an amount, 1 or 0 for a flag; the worst of all layers that its sizes fit.
  double used = 0;
  /// What the specification allows.
  double allowed = 0;
  bool within = true;
};

/// A layer that an operator does not fit, and the first size that is no positive integer there.
struct Misfit {
  std::string binding;
  std::string size;
};

struct Usage {
  std::vector<BudgetUse> budgets;
  /// In the order of the limits.
  std::vector<LimitUse> limits;
  std::vector<Misfit> misfits;
  /// Over all layers that the operator fits, by multiplicity.
  std::int64_t macs = 0;
  std::int64_t params = 0;
  /// The largest product of reductions that no weight sees.
  std::int64_t pooling = 1;
};

/// `op` has the shapes of `spec`; its sizes may be in another table. Throws UserError when `spec` does not know one of
/// its variables.
Usage usage(const Operator& op, const Specification& spec);

}  // namespace syno
