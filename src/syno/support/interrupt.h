// Ends long computations from outside, for example with Ctrl-C: a callback that a thread's computations call now and then.
//
// The library knows no signals and no Python. Whoever starts a computation installs a check for the time that it takes
// (InterruptScope); loops that may run for long poll it (InterruptPoll); the check ends them with what it throws.
// Threads that a computation starts (threads.h) are ended with it.
#pragma once

#include <cstdint>
#include <functional>

namespace syno {

/// Throws when the computation must end.
using InterruptCheck = std::function<void()>;

/// While it lives, the computations of this thread call `check` at most every 50 ms. Scopes nest: the innermost is asked.
class InterruptScope {
 public:
  explicit InterruptScope(InterruptCheck check);
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  /// Calls the check of the scope around this one, for a check that adds to it.
  void check_outer() const {
    if (outer_ != nullptr) outer_->check_();
  }

 private:
  friend void check_interrupt();
  InterruptCheck check_;
  /// The clock's time of the next call, in nanoseconds.
  std::int64_t next_ = 0;
  InterruptScope* outer_;
};

/// Calls the check of the innermost scope of this thread when it is time; one reads a clock for it.
void check_interrupt();

/// A counter in front of check_interrupt for inner loops: `poll()` costs a decrement, and every `every` calls the check.
class InterruptPoll {
 public:
  explicit InterruptPoll(std::uint32_t every = 1024) : every_(every), left_(every) {}
  void operator()() {
    if (--left_ != 0) return;
    left_ = every_;
    check_interrupt();
  }

 private:
  std::uint32_t every_;
  std::uint32_t left_;
};

}  // namespace syno
