// What a processor can do at most: multiply-adds of float32 a second, and bytes read a second from a working set.
#include <cstring>
#include <omp.h>

#if defined(__AVX512F__)
constexpr int kLanes = 16, kChains = 24;
#elif defined(__AVX__)
constexpr int kLanes = 8, kChains = 12;
#else
constexpr int kLanes = 4, kChains = 12;
#endif
typedef float Vector __attribute__((vector_size(sizeof(float) * kLanes)));

namespace {

inline Vector load(const float* from) {
  Vector v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

// Independent chains: more than latency times throughput of the multiply-add units.
float multiply_add(long rounds) {
  Vector sum[kChains];
  for (int i = 0; i < kChains; ++i) sum[i] = Vector{} + static_cast<float>(i);
  Vector factor = Vector{} + 0.999f, term = Vector{} + 1e-3f;
  __asm__("" : "+m"(factor), "+m"(term));
  for (long k = 0; k < rounds; ++k) {
#pragma GCC unroll 24
    for (int i = 0; i < kChains; ++i) sum[i] = sum[i] * factor + term;
  }
  float result = 0;
  for (int i = 0; i < kChains; ++i)
    for (int lane = 0; lane < kLanes; ++lane) result += sum[i][lane];
  return result;
}

float read(const float* from, long floats, long passes) {
  Vector sum[8] = {};
  for (long pass = 0; pass < passes; ++pass) {
    __asm__ volatile("" ::: "memory");
    for (long i = 0; i + 8 * kLanes <= floats; i += 8 * kLanes) {
#pragma GCC unroll 8
      for (int j = 0; j < 8; ++j) sum[j] += load(from + i + j * kLanes);
    }
  }
  float result = 0;
  for (int j = 0; j < 8; ++j)
    for (int lane = 0; lane < kLanes; ++lane) result += sum[j][lane];
  return result;
}

}  // namespace

extern "C" {

// Best of `repeats`: FLOP a second (a multiply-add is two) of at most so many threads together, as OpenMP gives.
double syno_peak_flops(int threads, long rounds, int repeats) {
  double best = 0;
  volatile float sink = 0;
  for (int r = 0; r < repeats; ++r) {
    int given = 0;
    const double began = omp_get_wtime();
#pragma omp parallel num_threads(threads)
    {
      const float result = multiply_add(rounds);
#pragma omp critical
      {
        sink = result;
        ++given;
      }
    }
    const double seconds = omp_get_wtime() - began;
    const double flops = 2.0 * kLanes * kChains * static_cast<double>(rounds) * given;
    if (flops / seconds > best) best = flops / seconds;
  }
  return best;
}

// Best of `repeats`: bytes a second that all threads together read, each `floats` of its own `passes` times. There are at
// most `threads`.
double syno_read_bytes(const float* memory, long floats, int threads, long passes, int repeats) {
  double best = 0;
  volatile float sink = 0;
  for (int r = 0; r < repeats; ++r) {
    int given = 0;
    const double began = omp_get_wtime();
#pragma omp parallel num_threads(threads)
    {
      const float result = read(memory + omp_get_thread_num() * floats, floats, passes);
#pragma omp critical
      {
        sink = result;
        ++given;
      }
    }
    const double seconds = omp_get_wtime() - began;
    const double bytes = 4.0 * static_cast<double>(floats) * static_cast<double>(passes) * given;
    if (bytes / seconds > best) best = bytes / seconds;
  }
  return best;
}
}
