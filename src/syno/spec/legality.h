// Whether a specification allows one more step: the only place that decides it. Those who ask keep what a partial graph
// has used up in a form of their own (a Ledger, a State of a search), and bring it as an Account:
//
//   Extent                              how it names a size
//   times(a, b), over(a, b)             the product and the quotient, legal or not
//   legal(e), fit(e), size(e)           Specification::legal, Specification::fit, the size itself
//   value(e, b)                         its value under binding b; 0 where it is no positive integer of 64 bits
//   odd_fit(e), window_fit(e), slide_fit(e, w)
//                                       the bindings where a window may be that even, that large, and slide over e
//   add_step(), add(primitive)          counts the step, and says how many there are now
//   pay(v, charge)                      takes powers, more than 0, from the budget of variable v; false when it is spent
//   fit_left()                          the bindings under which everything so far is legal
//   add_reduction(e), add_repeat(e)     the products of all Reduces and Expands, this one among them
//   input()                             the elements of the input
#pragma once

#include <array>
#include <cstdlib>
#include <span>

#include "syno/spec/ledger.h"

namespace syno {

/// A coordinate that a contraction takes.
template <class Extent>
struct TakenDim {
  Extent extent;
  /// It leaves the frontier: its role is drop or join.
  bool leaves;
  bool reductions_only;
};

/// A step as the specification sees it.
template <class Extent>
struct StepRequest {
  const PrimitiveInfo& info;
  /// Of the coordinates that are consumed.
  std::array<Extent, 2> in{};
  /// The size that the step names, if it does.
  Extent size{};
  int amount = 0;
  bool causal = false;
  /// The first coordinate is made of a causal output dimension.
  bool on_causal = false;
  /// It touches a dimension that is passed through.
  bool on_passed = false;
  /// The views from an iterator or reduction to what it makes; 0 where it is no view.
  int chain = 0;
  std::span<const TakenDim<Extent>> taken{};
  /// Filled by `decide`, as far as it got: the extents of what is made.
  std::array<Extent, 2> made{};
};

/// What a step charges for one variable, from the variable's powers in the extent that the step consumes and in the size
/// that it names. Charge::kWeightDims is charged for each coordinate.
constexpr int charge_of(Charge charge, int extent, int size) {
  const auto absolute = [](int power) { return power < 0 ? -power : power; };
  switch (charge) {
    case Charge::kSize: return absolute(size);
    case Charge::kMadeUp: return (absolute(extent - size) + absolute(size) - absolute(extent)) / 2;
    case Charge::kWeightDims: return absolute(extent);
    case Charge::kNothing: break;
  }
  return 0;
}

// Functions here have one caller for each kind of account, in the inner loop of a search. Inlined there, a request lives
// in registers; compilers leave that to who asks.
namespace detail {

template <class Account>
[[gnu::always_inline]] inline bool pay_for(const Specification& spec, Account& account,
                                           const StepRequest<typename Account::Extent>& request) {
  const std::size_t variables = spec.variables()->count();
  const auto pay = [&](Charge charge, const Size& extent, const Size& size, bool primaries) {
    for (std::size_t v = 0; v < variables; ++v) {
      const int powers = charge_of(charge, extent.power(v), size.power(v));
      if (powers == 0 || (primaries && !spec.variable(v).primary)) continue;
      if (!account.pay(v, powers)) return false;
    }
    return true;
  };
  switch (request.info.charge) {
    case Charge::kNothing: break;
    case Charge::kSize: {
      const Size& size = account.size(request.size);
      return pay(Charge::kSize, size, size, false);
    }
    case Charge::kMadeUp:
      return pay(Charge::kMadeUp, account.size(request.in[0]), account.size(request.size), false);
    case Charge::kWeightDims:
      for (const auto& dim : request.taken) {
        const Size& extent = account.size(dim.extent);
        if (!pay(Charge::kWeightDims, extent, extent, true)) return false;
      }
      break;
  }
  return true;
}

// The bindings under which `holds` does.
template <class Holds>
FitMask where(std::size_t bindings, Holds holds) {
  FitMask fit = 0;
  for (std::size_t b = 0; b < bindings; ++b) fit |= FitMask{holds(b)} << b;
  return fit;
}

template <class Account>
[[gnu::always_inline]] inline bool narrow(const Specification& spec, Account& account,
                                          FitMask fit) {
  FitMask& left = account.fit_left();
  if ((left & ~fit) == 0) return true;
  left &= fit;
  return spec.fit_suffices(left);
}

template <class Account>
[[gnu::always_inline]] inline Reason decide_contraction(
    const Specification& spec, Account& account,
    std::span<const TakenDim<typename Account::Extent>> taken) {
  const Limits& limits = spec.limits();
  const std::size_t bindings = spec.bindings().size();
  std::array<double, Specification::kMaxBindings> params;
  std::array<double, Specification::kMaxBindings> dropped;
  std::array<double, Specification::kMaxBindings> joined;
  for (std::size_t b = 0; b < bindings; ++b) params[b] = dropped[b] = joined[b] = 1;
  bool leaves = false;
  for (const auto& dim : taken) {
    leaves = leaves || dim.leaves;
    for (std::size_t b = 0; b < bindings; ++b) {
      const double value = account.value(dim.extent, b);
      params[b] *= value;
      if (dim.leaves) (dim.reductions_only ? joined : dropped)[b] *= value;
    }
  }
  if (!leaves && !limits.element_wise_weights) return reason::kElementWise;
  // Beyond 64 bits a product is no number of parameters (Size::extent).
  constexpr double kMost = 9.2e18;
  FitMask enough = 0;
  FitMask few_dropped = 0;
  FitMask few_joined = 0;
  for (std::size_t b = 0; b < bindings; ++b) {
    const bool countable = params[b] < kMost;
    enough |= FitMask{countable && params[b] >= static_cast<double>(limits.min_weight_params)} << b;
    few_dropped |= FitMask{dropped[b] <= static_cast<double>(limits.max_dropped)} << b;
    few_joined |= FitMask{joined[b] <= static_cast<double>(limits.max_joined)} << b;
  }
  if (!narrow(spec, account, enough)) return reason::kWeightParams;
  if (!narrow(spec, account, few_dropped)) return reason::kDropped;
  return narrow(spec, account, few_joined) ? reason::kNone : reason::kJoined;
}

}  // namespace detail

/// Why `spec` does not allow the step, or nothing; then the step is entered in the account. Where it is rejected, the
/// account is left in between.
template <class Account>
[[gnu::always_inline]] inline Reason decide(const Specification& spec, Account& account,
                                            StepRequest<typename Account::Extent>& request) {
  using Extent = typename Account::Extent;
  const Limits& limits = spec.limits();
  const PrimitiveInfo& info = request.info;
  const std::size_t bindings = spec.bindings().size();
  if (account.add_step() > limits.max_depth) return reason::kDepth;
  if (account.add(info.primitive) > spec.cap(info.primitive))
    return info.kind == StepKind::kContraction ? reason::kWeights : reason::kCap;
  if (request.on_passed) return reason::kPassedThrough;
  if (request.chain > limits.max_chain_length) return reason::kChain;
  if (!detail::pay_for(spec, account, request)) return reason::kBudget;

  FitMask fits = spec.full_fit();
  for (std::size_t i = 0; i < static_cast<std::size_t>(info.produces); ++i) {
    request.made[i] = extent_made(
        info.makes[i], request.in[0], request.in[1], request.size,
        [&](const Extent& a, const Extent& b) { return account.times(a, b); },
        [&](const Extent& a, const Extent& b) { return account.over(a, b); });
    if (!account.legal(request.made[i])) return reason::kIllegalSize;
    fits &= account.fit(request.made[i]);
  }
  // K times S may be an integer where the factor S is none.
  if (info.argument == Argument::kFactor) fits &= account.fit(request.size);
  if (!detail::narrow(spec, account, fits)) return reason::kFit;

  switch (info.kind) {
    case StepKind::kReduction: {
      const Extent product = account.add_reduction(request.size);
      const Extent input = account.input();
      const FitMask few = detail::where(bindings, [&](std::size_t b) {
        return account.value(product, b) <= limits.max_reduction_ratio * account.value(input, b);
      });
      return detail::narrow(spec, account, few) ? reason::kNone : reason::kReductionRatio;
    }
    case StepKind::kRepetition: {
      const Extent product = account.add_repeat(request.in[0]);
      const FitMask few = detail::where(bindings, [&](std::size_t b) {
        return account.value(product, b) <= static_cast<double>(limits.max_repeat);
      });
      return detail::narrow(spec, account, few) ? reason::kNone : reason::kRepeat;
    }
    case StepKind::kContraction: return detail::decide_contraction(spec, account, request.taken);
    case StepKind::kView: break;
  }
  if (info.argument == Argument::kAmount) {
    const bool allowed = std::abs(request.amount) <= limits.max_shift_amount &&
                         (request.amount >= 0 || limits.negative_shifts);
    return allowed ? reason::kNone : reason::kShiftAmount;
  }
  if (info.argument == Argument::kCausal) {
    if (request.causal != request.on_causal) return reason::kCausal;
    const Extent& window = request.in[1];
    if (!detail::narrow(spec, account, account.odd_fit(window))) return reason::kEvenWindow;
    if (!detail::narrow(spec, account, account.window_fit(window))) return reason::kWindow;
    if (!detail::narrow(spec, account, account.slide_fit(request.in[0], window)))
      return reason::kUnfoldRatio;
  }
  return reason::kNone;
}

}  // namespace syno
