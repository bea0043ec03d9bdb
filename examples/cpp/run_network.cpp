// Runs a network that `syno export --network ... --format cpp-network -o net.cpp` wrote:
//
//     g++ -std=c++17 -O3 -march=native -fopenmp net.cpp run_network.cpp -o run_network
//     ./run_network net.bin
#include <cstdio>
#include <vector>

#include "net.h"

static long elements(const long* shape, int rank) {
  long count = 1;
  for (int d = 0; d < rank; ++d) count *= shape[d];
  return count;
}

int main(int argc, char** argv) {
  syno_net_network* const network = argc == 2 ? syno_net_create(argv[1]) : nullptr;
  if (!network) {
    std::fprintf(stderr, "%s\n", argc == 2 ? syno_net_error() : "usage: run_network WEIGHTS");
    return 1;
  }
  const long batch = 2;
  const int threads = 2;
  const long outputs = elements(syno_net_output_shape(0), syno_net_output_rank(0));
  std::vector<float> x(batch * elements(syno_net_input_shape(0), syno_net_input_rank(0)), 0.5f);
  std::vector<float> y(batch * outputs);
  const int failed = syno_net_run(network, x.data(), y.data(), batch, threads);
  if (failed) std::fprintf(stderr, "%s\n", syno_net_error());
  for (long i = 0; i < outputs && !failed; ++i) std::printf("%.6g\n", y[i]);
  syno_net_destroy(network);
  return failed ? 1 : 0;
}
