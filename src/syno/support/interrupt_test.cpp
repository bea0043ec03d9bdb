#include "syno/support/interrupt.h"

#include <chrono>
#include <gtest/gtest.h>
#include <stdexcept>
#include <thread>

namespace syno {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

TEST(Interrupt, EndsALoopWithWhatTheCheckThrows) {
  const auto start = Clock::now();
  const InterruptScope scope([&] {
    if (seconds_since(start) > 0.2) throw std::runtime_error("interrupted");
  });
  InterruptPoll poll;
  const auto loop = [&] {
    for (;;) poll();
  };
  EXPECT_THROW(loop(), std::runtime_error);
}

TEST(Interrupt, IsAskedAgainAndAgainButNotWithinFiftyMilliseconds) {
  int asked = 0;
  const InterruptScope scope([&] { ++asked; });
  const auto start = Clock::now();
  while (asked < 4) check_interrupt();
  EXPECT_GE(seconds_since(start), 3 * 0.05);
}

TEST(Interrupt, OnlyTheInnermostScopeOfTheThreadIsAsked) {
  int outer = 0;
  int inner = 0;
  const auto wait = [] {
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    check_interrupt();
  };
  const InterruptScope one([&] { ++outer; });
  {
    const InterruptScope two([&] { ++inner; });
    wait();
    EXPECT_EQ(inner, 1);
    EXPECT_EQ(outer, 0);
    two.check_outer();
    EXPECT_EQ(outer, 1);
    std::thread([&] { wait(); }).join();
    EXPECT_EQ(inner, 1);
  }
  wait();
  EXPECT_EQ(outer, 2);
}

TEST(Interrupt, WithoutAScopeNothingIsAsked) {
  InterruptPoll poll(1);
  for (int i = 0; i < 1000; ++i) poll();
}

}  // namespace
}  // namespace syno
