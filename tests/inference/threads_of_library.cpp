// Calls a network library as a program may: with any number of threads, also with fewer than it asked for, inside of a
// team of its own, and from several threads at once. It prints "right", or what is wrong, and y as text on standard error.
// ELEMENT: the type of x; LAYERS: whether the network has layers.
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <omp.h>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "net.h"

namespace {

constexpr long kBatch = 5;

[[noreturn]] void fail(const std::string& what) {
  std::printf("%s\n", what.c_str());
  std::exit(1);
}

long elements(const long* shape, int rank) {
  long count = 1;
  for (int d = 0; d < rank; ++d) count *= shape[d];
  return count;
}

syno_net_network* network;
long inputs, outputs;
std::vector<ELEMENT> x;
std::vector<float> expected;

/// In memory of this size alone, so that the sanitizer sees what is written behind it.
void check(long batch, int threads, double* seconds, const char* how) {
  const std::vector<ELEMENT> given(x.begin(), x.begin() + batch * inputs);
  std::vector<float> y(batch * outputs, -1.0f);
  const std::string where =
      std::string(how) + ": batch " + std::to_string(batch) + ", " + std::to_string(threads);
  if (syno_net_run_timed(network, given.data(), y.data(), batch, threads, seconds) != 0)
    fail(where + ": " + syno_net_error());
  if (batch > 0 && std::memcmp(y.data(), expected.data(), y.size() * sizeof(float)) != 0)
    fail(where + ": another result");
}

void check_all(const char* how) {
  for (long batch = 0; batch <= kBatch; ++batch)
    for (const int threads : {1, 2, 3, 8}) check(batch, threads, nullptr, how);
}

void check_refused(int threads) {
  std::vector<float> y(outputs, -1.0f);
  if (syno_net_run(network, x.data(), y.data(), 1, threads) != -1)
    fail("it takes threads out of range");
  if (std::string(syno_net_error()).find("must be from 1 to 512") == std::string::npos)
    fail(syno_net_error());
}

/// The time of a call is no longer than the call.
void check_seconds() {
  using Clock = std::chrono::steady_clock;
  const int steps = syno_net_steps();
  if (syno_net_step_name(steps) || syno_net_step_name(-1) || syno_net_step_is_layer(steps) != -1)
    fail("it names a step that it does not have");
  for (int call = 0; call < 20; ++call) {
    std::vector<double> seconds(steps, -1);
    const Clock::time_point begin = Clock::now();
    check(2, 1, seconds.data(), "timed");
    const double whole = std::chrono::duration<double>(Clock::now() - begin).count();
    double sum = 0, layers = 0;
    for (int step = 0; step < steps; ++step) {
      if (seconds[step] < 0 || !syno_net_step_name(step)) fail("a step has no time, or no name");
      sum += seconds[step];
      if (syno_net_step_is_layer(step)) layers += seconds[step];
    }
    if (sum > whole || (LAYERS && layers == 0))
      fail("the times of steps are those of another call");
  }
}

}  // namespace

int main(int, char** words) {
  network = syno_net_create(words[1]);
  if (!network) fail(syno_net_error());
  inputs = elements(syno_net_input_shape(0), syno_net_input_rank(0));
  outputs = elements(syno_net_output_shape(0), syno_net_output_rank(0));
  for (long i = 0; i < kBatch * inputs; ++i) {
    const bool ids = std::is_integral_v<ELEMENT>;
    x.push_back(static_cast<ELEMENT>(ids ? static_cast<float>(i % 17)
                                         : static_cast<float>(i % 17) * 0.25f - 2.0f));
  }
  expected.resize(kBatch * outputs);
  for (long n = 0; n < kBatch; ++n)
    if (syno_net_run(network, x.data() + n * inputs, expected.data() + n * outputs, 1, 1) != 0)
      fail(syno_net_error());
  for (const float value : expected) std::fprintf(stderr, "%.9g\n", value);
  check_all("alone");
  for (const int threads : {0, -1, 513, 100'000, INT_MAX, INT_MIN}) check_refused(threads);
#pragma omp parallel num_threads(3)
  check_all("in a team");
  omp_set_max_active_levels(3);
#pragma omp parallel num_threads(2)
  for (const int threads : {1, 3}) check(4, threads, nullptr, "in a team that may have teams");
  omp_set_dynamic(1);
  check_all("dynamic");
  std::vector<std::thread> team;
  for (int i = 0; i < 4; ++i)
    team.emplace_back([] {
      for (const int threads : {1, 2, 4}) check(3, threads, nullptr, "at once");
      check_seconds();
    });
  for (std::thread& thread : team) thread.join();
  syno_net_destroy(network);
  std::puts("right");
}
