#include "syno/support/threads.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "syno/support/error.h"
#include "syno/support/interrupt.h"

namespace syno {
namespace {

// Thrown on a thread when another one has failed; never leaves run_on_threads.
struct Ended {};

class Run {
 public:
  explicit Run(const std::function<void(std::size_t)>& work) : work_(work) {}

  void go(std::size_t count) {
    for (std::size_t t = 1; t < count; ++t) {
      {
        const std::lock_guard lock(mutex_);
        ++running_;
      }
      try {
        helpers_.emplace_back([this, t] { help(t); });
      } catch (const std::system_error&) {
        // No more threads than these: they share all of the work.
        const std::lock_guard lock(mutex_);
        --running_;
        break;
      }
    }
    try {
      const InterruptScope scope([this, &scope] {
        if (failed_.load(std::memory_order_relaxed)) throw Ended{};
        scope.check_outer();
      });
      work_(0);
      wait();
    } catch (...) {
      // Where another thread has failed, its exception stands already.
      fail(std::current_exception());
    }
    for (std::thread& helper : helpers_) helper.join();
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void help(std::size_t index) {
    const InterruptScope scope([this] {
      if (failed_.load(std::memory_order_relaxed)) throw Ended{};
    });
    try {
      work_(index);
    } catch (const Ended&) {  // NOLINT(bugprone-empty-catch): another thread has said why
    } catch (...) {
      fail(std::current_exception());
    }
    const std::lock_guard lock(mutex_);
    --running_;
    done_.notify_all();
  }

  // Until all helpers are done or one has failed; the calling thread stays open to interrupts.
  void wait() {
    std::unique_lock lock(mutex_);
    while (running_ > 0 && !failure_) {
      done_.wait_for(lock, std::chrono::milliseconds(50));
      lock.unlock();
      check_interrupt();
      lock.lock();
    }
  }

  void fail(std::exception_ptr why) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(why);
    failed_ = true;
    done_.notify_all();
  }

  const std::function<void(std::size_t)>& work_;
  std::vector<std::thread> helpers_;
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::condition_variable done_;
  std::size_t running_ = 0;
  std::exception_ptr failure_;
};

}  // namespace

std::size_t thread_count(std::int64_t requested) {
  if (requested < 0 || requested > kMaxThreads) {
    const std::string most = std::to_string(kMaxThreads);
    throw Complaint("'threads' is an integer of " +
                    (requested < 0 ? "at least 0" : "at most " + most) + ", got " +
                    std::to_string(requested))
        .expected("an integer from 0 to " + most, std::to_string(requested))
        .hint("more threads than the machine has cores make nothing faster")
        .error();
  }
  if (requested > 0) return static_cast<std::size_t>(requested);
  return std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1,
                                 static_cast<std::size_t>(kMaxThreads));
}

void run_on_threads(std::size_t count, const std::function<void(std::size_t)>& work) {
  if (count <= 1) {
    work(0);
    return;
  }
  Run(work).go(count);
}

bool share_out(std::size_t threads, std::size_t count, std::size_t chunk,
               const std::function<void(std::size_t, std::size_t, std::size_t)>& work,
               const std::function<bool(std::size_t, std::size_t)>& go_on) {
  const std::size_t chunks = count / chunk + (count % chunk == 0 ? 0 : 1);
  std::atomic<std::size_t> next{0};
  std::atomic<bool> stop{false};
  run_on_threads(std::min(threads, chunks), [&](std::size_t thread) {
    while (!stop.load(std::memory_order_relaxed)) {
      const std::size_t number = next.fetch_add(1, std::memory_order_relaxed);
      if (number >= chunks) return;
      const std::size_t from = number * chunk;
      const std::size_t to = std::min(count, from + chunk);
      work(thread, from, to);
      if (thread == 0 && go_on && !go_on(from, to)) stop = true;
    }
  });
  return !stop;
}

}  // namespace syno
