#include "syno/support/interrupt.h"

#include <chrono>
#include <utility>

namespace syno {
namespace {

constexpr std::int64_t kInterval = 50'000'000;  // ns

thread_local InterruptScope* innermost = nullptr;

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

InterruptScope::InterruptScope(InterruptCheck check)
    : check_(std::move(check)), next_(now() + kInterval), outer_(innermost) {
  innermost = this;
}

InterruptScope::~InterruptScope() {
  innermost = outer_;
}

void check_interrupt() {
  InterruptScope* scope = innermost;
  if (scope == nullptr) return;
  const std::int64_t time = now();
  if (time < scope->next_) return;
  scope->next_ = time + kInterval;
  scope->check_();
}

}  // namespace syno
