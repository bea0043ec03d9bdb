#include "syno/support/threads.h"

#include <atomic>
#include <chrono>
#include <fstream>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "syno/support/error.h"
#include "syno/support/interrupt.h"

namespace syno {
namespace {

using Clock = std::chrono::steady_clock;

double elapsed(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string complaint(std::int64_t threads) {
  try {
    thread_count(threads);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Threads, HaveALimitWithAMessage) {
  EXPECT_EQ(thread_count(1), 1U);
  EXPECT_EQ(thread_count(kMaxThreads), static_cast<std::size_t>(kMaxThreads));
  EXPECT_GE(thread_count(0), 1U);
  EXPECT_NE(complaint(100'000).find("'threads' is an integer of at most 512, got 100000"),
            std::string::npos);
  EXPECT_NE(complaint(-1).find("'threads' is an integer of at least 0, got -1"), std::string::npos);
  EXPECT_NE(complaint(std::int64_t{1} << 62).find("got 4611686018427387904"), std::string::npos);
}

TEST(Threads, ShareOutAllOfTheWork) {
  for (const std::size_t threads : {1U, 2U, 16U, 200U}) {
    std::atomic<int> next{0};
    std::vector<int> done(1000, 0);
    run_on_threads(threads, [&](std::size_t) {
      for (int i = next++; i < 1000; i = next++) ++done[static_cast<std::size_t>(i)];
    });
    EXPECT_EQ(done, std::vector<int>(1000, 1)) << threads << " threads";
  }
}

TEST(Threads, ChunksAreSharedOutEachOnce) {
  for (const std::size_t threads : {1U, 3U, 50U}) {
    for (const std::size_t chunk : {1U, 7U, 5000U}) {
      for (const std::size_t count : {0U, 1U, 1000U}) {
        std::vector<int> done(count, 0);
        std::atomic<std::size_t> most{0};
        const bool all =
            share_out(threads, count, chunk, [&](std::size_t t, std::size_t from, std::size_t to) {
              if (t >= threads || to - from > chunk) ++most;
              for (std::size_t i = from; i < to; ++i) ++done[i];
            });
        EXPECT_TRUE(all);
        EXPECT_EQ(most, 0U) << "chunks that are too large, or of a thread that is one too many";
        EXPECT_EQ(done, std::vector<int>(count, 1)) << threads << " threads, chunks of " << chunk;
      }
    }
  }
}

TEST(Threads, TheCallingThreadEndsWhatIsSharedOut) {
  std::atomic<std::size_t> done{0};
  const auto work = [&](std::size_t thread, std::size_t from, std::size_t to) {
    // The others wait for the calling thread, so that they do not take all chunks before it.
    while (thread != 0 && done == 0) check_interrupt();
    done += to - from;
  };
  const auto no = [](std::size_t, std::size_t) { return false; };
  EXPECT_FALSE(share_out(4, 1'000'000'000, 10, work, no));
  EXPECT_LT(done, 1'000'000'000U);
}

TEST(Threads, TheFirstExceptionEndsTheOthersAndIsThrown) {
  // Threads that never end by themselves, the calling one among them.
  for (const std::size_t failing : {0U, 1U, 3U}) {
    const auto run = [&] {
      run_on_threads(4, [&](std::size_t t) {
        if (t == failing) throw std::runtime_error("thread " + std::to_string(t));
        for (;;) check_interrupt();
      });
    };
    try {
      run();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(error.what(), "thread " + std::to_string(failing));
    }
  }
}

TEST(Threads, AnInterruptOfTheCallingThreadEndsThemWhereverItIs) {
  for (const bool waits : {false, true}) {
    const auto start = Clock::now();
    const InterruptScope scope([&] {
      if (elapsed(start) > 0.1) throw std::runtime_error("interrupted");
    });
    const auto run = [&] {
      run_on_threads(3, [&](std::size_t t) {
        if (t == 0 && waits) return;
        for (;;) check_interrupt();
      });
    };
    EXPECT_THROW(run(), std::runtime_error);
  }
}

TEST(Threads, WhereTheSystemStartsNoMoreTheOthersDoAllOfTheWork) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers take address space of their own";
#endif
  std::ifstream statm("/proc/self/statm");
  rlim_t pages = 0;
  if (!(statm >> pages)) GTEST_SKIP() << "there is no /proc here";
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  // Room for the stacks of two or three threads.
  rlimit little = before;
  little.rlim_cur = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (24U << 20);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &little), 0);
  std::atomic<int> next{0};
  std::atomic<int> threads{0};
  std::vector<int> done(1000, 0);
  run_on_threads(64, [&](std::size_t) {
    ++threads;
    for (int i = next++; i < 1000; i = next++) {
      ++done[static_cast<std::size_t>(i)];
      std::this_thread::yield();
    }
  });
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_EQ(done, std::vector<int>(1000, 1));
  EXPECT_LT(threads, 64);
}

}  // namespace
}  // namespace syno
