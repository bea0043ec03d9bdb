#include "syno/space/deepen.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "syno/support/error.h"

namespace syno {

std::string_view enumeration_end_name(EnumerationEnd end, const EnumerateOptions& options) {
  switch (end) {
    case EnumerationEnd::kComplete: return "complete";
    case EnumerationEnd::kStopped: return "stopped";
    case EnumerationEnd::kSeconds: return "max_seconds";
    case EnumerationEnd::kBudget:
      return options.max_memory > 0 ? "max_nodes or max_memory" : "max_nodes";
  }
  throw InternalError("enumeration_end_name: not an end");
}

EnumeratedSpace deepen(const Specification& spec, const EnumerateOptions& options,
                       const EnumerateProgress& progress, const LimitListed& on_limit,
                       const Space* before) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  const std::int64_t most = spec.limits().max_depth;
  const std::int64_t limit =
      options.max_depth > 0 ? std::min(options.max_depth, most) : std::max<std::int64_t>(most, 1);
  EnumeratedSpace result;
  if (before != nullptr) result.space = *before;
  std::int64_t complete = before != nullptr ? before->complete_depth : 0;
  std::int64_t visited = 0;
  for (std::int64_t depth = std::max(complete + 1, options.first_depth); depth <= limit; ++depth) {
    bool stopped = false;
    EnumerateOptions once = options;
    once.first_depth = once.max_depth = depth;
    once.max_nodes = std::max<std::int64_t>(1, options.max_nodes - visited);
    if (options.max_seconds > 0) once.max_seconds = std::max(1e-9, options.max_seconds - elapsed());
    const auto watch = [&](EnumerateStatus status) {
      status.nodes += visited;
      stopped = !progress(status);
      return !stopped;
    };
    Space space =
        enumerate_space(spec, once, progress ? EnumerateProgress(watch) : EnumerateProgress());
    visited += space.visited;
    if (space.exhausted) {
      complete = depth;
      space.exhausted = depth == limit;
      result.space = std::move(space);
      if (on_limit) on_limit(result.space);
      continue;
    }
    const bool seconds = options.max_seconds > 0 && elapsed() >= options.max_seconds;
    result.end = stopped   ? EnumerationEnd::kStopped
                 : seconds ? EnumerationEnd::kSeconds
                           : EnumerationEnd::kBudget;
    if (result.space.operators.empty()) result.space = std::move(space);
    break;
  }
  result.space.complete_depth = complete;
  result.space.exhausted = complete >= limit;
  result.space.visited = visited;
  return result;
}

}  // namespace syno
