#include "syno/emit/cpp/network_text.h"

namespace syno::cpp {

std::string_view network_held() {
  return R"source(
// --- the network ---------------------------------------------------------------------------------

namespace {

struct Kernel {
  long (*workspace_size)(int);
  int (*phase_count)(void);
  void (*phase)(int, const void*, const float*, const float*, const void*, void*, float*, long, long);
};

const Kernel kKernels[] = {@KERNELS@};
constexpr int kKernelOf[] = {@KERNEL_OF@};

// constants, weights: blocks of memory of its own, or in a file that is mapped. packed: where the weights of each layer begin
// in their block.
struct Network {
  float* constants = nullptr;
  float* weights = nullptr;
  void* mapped = nullptr;
  std::size_t mapped_bytes = 0;
  float* packed[@LAYERS@ + 1] = {};
};

[[maybe_unused]] const Kernel& kernel_of(const Network&, long layer) { return kKernels[kKernelOf[layer]]; }

[[maybe_unused]] void run_phase(const Kernel& kernel, int phase, const void* x, const float* packed, const float* channel,
                                const void* residual, void* y, float* workspace, const Team& team) {
  kernel.phase(phase, x, packed, channel, residual, y, workspace, team.thread, team.threads);
}

void wait(const Network&, const Team& team) { wait_for_team(team); }

template <class Body>
void run_threads(const Network&, int threads, const Body& body) {
  run_team(threads, body);
}

}  // namespace
)source";
}

std::string_view network_hosted() {
  return R"source(
// --- the network ---------------------------------------------------------------------------------

namespace {

using Kernel = SynoKernel;
using Network = SynoProgram;

[[maybe_unused]] const Kernel& kernel_of(const Network& net, long layer) { return *net.kernels[layer]; }

[[maybe_unused]] void run_phase(const Kernel& kernel, int phase, const void* x, const float* packed, const float* channel,
                                const void* residual, void* y, float* workspace, const Team& team) {
  kernel.phase(phase, static_cast<const float*>(x), packed, channel, static_cast<const float*>(residual),
               static_cast<float*>(y), workspace, team.thread, team.threads);
}

void wait(const Network& net, const Team& team) {
  if (team.threads > 1) net.host->wait();
}

template <class Body>
void run_threads(const Network& net, int threads, const Body& body) {
  if (threads <= 1) return body(Team{0, 1});
  const auto part = [](const void* data, long thread, long of) { (*static_cast<const Body*>(data))(Team{thread, of}); };
  net.host->run(threads, part, &body);
}

}  // namespace
)source";
}

std::string_view network_image() {
  return R"source(
namespace {

// The inputs and outputs of a batch.
struct Arguments {
@MEMBERS@
  Arguments at([[maybe_unused]] long n) const { return {@AT@}; }
};

// The steps of one image, each of which a team computes together.
struct Image : Arguments {
  const Network& net;
  const Team& team;
  float* const arena;
  float* const workspace;
  @CONSTANTS_TYPE@ const constants = net.constants;

  Image(const Arguments& arguments, const Network& of, const Team& by, float* maps, float* scratch)
      : Arguments(arguments), net(of), team(by), arena(maps), workspace(scratch) {}

  // The phases of a layer for each of its samples, whose operands have these sizes in bytes.
  [[maybe_unused]] void layer(long number, long samples, const void* from, long from_bytes, const float* channel,
                              const void* residual, void* to, long to_bytes) const {
    const Kernel& kernel = kernel_of(net, number);
    const int phases = kernel.phase_count();
    for (long sample = 0; sample < samples; ++sample)
      for (int phase = 0; phase < phases; ++phase) {
        if (sample + phase > 0) wait(net, team);
        run_phase(kernel, phase, static_cast<const char*>(from) + sample * from_bytes, net.packed[number], channel,
                  residual ? static_cast<const char*>(residual) + sample * to_bytes : nullptr,
                  static_cast<char*>(to) + sample * to_bytes, workspace, team);
      }
  }
@STEPS@
};

using Step = void (Image::*)() const;
constexpr long kStepCount = @STEP_COUNT@;
constexpr Step kSteps[] = {@STEP_NAMES@};
constexpr bool kIsLayer[] = {@STEP_LAYERS@};

// Steps from `first` to before `last`. Images are computed one after the other; `together`: each step for all of them,
// because it reads more weights than it does maps.
struct Group {
  long first, last;
  bool together;
};
constexpr Group kGroups[] = {@GROUPS@};

}  // namespace
)source";
}

std::string_view network_driver() {
  return R"source(
// --- batches -------------------------------------------------------------------------------------
#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace {

// Floats of the arena of an image; how many images a team has at the same time.
constexpr long kArena = (@ARENA@ + 15L) / 16 * 16, kTogether = @TOGETHER@;
// Floats that are kept for another call: 256 MiB.
constexpr long kMostKept = 64L << 20;

thread_local std::string last_error;

bool failed(const std::string& message) {
  last_error = message;
  return false;
}

// Pages of 2 MiB for large blocks, where the system has them: there are fewer to fill and to find.
float* floats(long count) {
  const std::size_t bytes = static_cast<std::size_t>(count < 16 ? 16 : (count + 15) / 16 * 16) * sizeof(float);
#if defined(__linux__)
  constexpr std::size_t kPage = std::size_t{2} << 20;
  if (bytes >= kPage) {
    const std::size_t whole = (bytes + kPage - 1) / kPage * kPage;
    void* const block = std::aligned_alloc(kPage, whole);
    if (block) madvise(block, whole, MADV_HUGEPAGE);  // advice, which may be refused
    return static_cast<float*>(block);
  }
#endif
  return static_cast<float*>(std::aligned_alloc(64, bytes));
}

// Memory of one call: reused by the next one.
struct Work {
  float* arena = nullptr;
  float* workspace = nullptr;
  long arena_floats = 0, workspace_floats = 0;
  ~Work() {
    std::free(arena);
    std::free(workspace);
  }
  bool holds(long arenas, long spaces) {
    if (!arena || arena_floats < arenas) {
      std::free(arena);
      arena = floats(arenas);
      arena_floats = arena ? arenas : 0;
    }
    if (!workspace || workspace_floats < spaces) {
      std::free(workspace);
      workspace = floats(spaces);
      workspace_floats = workspace ? spaces : 0;
    }
    return arena && workspace;
  }
};

// Memory that no call has.
struct Works {
  std::mutex turn;
  std::vector<Work*> idle;
  ~Works() {
    for (Work* work : idle) delete work;
  }
  Work* taken() {
    const std::lock_guard<std::mutex> lock(turn);
    if (idle.empty()) return new Work;
    Work* const work = idle.back();
    idle.pop_back();
    return work;
  }
  void give(Work* work) {
    if (work->arena_floats + work->workspace_floats > kMostKept) {
      delete work;
      return;
    }
    const std::lock_guard<std::mutex> lock(turn);
    idle.push_back(work);
  }
};

long workspace_size([[maybe_unused]] const Network& net, [[maybe_unused]] int threads) {
  long size = 16;
  for (long layer = 0; layer < @LAYERS@; ++layer) size = most(size, kernel_of(net, layer).workspace_size(threads));
  return (size + 15) / 16 * 16;
}

// Images from `first` to before `last`, by one team, each step so many `times`. step_seconds: what the least of the times of
// each step is added to, or null.
void compute(const Network& net, const Arguments& all, long first, long last, float* arena, float* workspace,
             const Team& team, int times, double* step_seconds) {
  using Clock = std::chrono::steady_clock;
  const auto run = [&](long step, long n, long place) {
    double least_seconds = 0;
    for (int time = 0; time < times; ++time) {
      const Clock::time_point begin = step_seconds ? Clock::now() : Clock::time_point{};
      (Image{all.at(n), net, team, arena + place * kArena, workspace}.*kSteps[step])();
      wait(net, team);
      if (!step_seconds) continue;
      const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
      if (time == 0 || seconds < least_seconds) least_seconds = seconds;
    }
    if (step_seconds) step_seconds[step] += least_seconds;
  };
  for (; first < last; first += kTogether) {
    const long count = least(kTogether, last - first);
    for (const Group& group : kGroups)
      if (group.together)
        for (long step = group.first; step < group.last; ++step)
          for (long i = 0; i < count; ++i) run(step, first + i, i);
      else
        for (long i = 0; i < count; ++i)
          for (long step = group.first; step < group.last; ++step) run(step, first + i, i);
  }
}

bool run_batch(const Network& net, Works& works, const Arguments& all, long batch, int threads, int times,
               double* step_seconds) {
@CHECK@  Work* work = nullptr;
  try {
    last_error.clear();
    work = works.taken();
    // A thread with images of its own needs the workspace of one thread.
    const long own = workspace_size(net, 1);
    bool enough = false;
    for (long step = 0; step_seconds && step < kStepCount; ++step) step_seconds[step] = 0;
    // Threads take whole images as long as there is one for each; they share the others.
    run_threads(net, threads, [&](const Team& team) {
      double* const seconds = team.thread == 0 ? step_seconds : nullptr;
      const long whole = batch / team.threads * team.threads;
      const long arena = kArena * least(kTogether, most(1, whole / team.threads));
      // Only here it is known how many threads there are.
      if (team.thread == 0)
        enough = work->holds(most(whole > 0 ? arena * team.threads : 0, kArena * least(kTogether, most(1, batch - whole))),
                             most(own * team.threads, workspace_size(net, static_cast<int>(team.threads))));
      wait(net, team);
      if (!enough) return;
      compute(net, all, team.begin(whole), team.end(whole), work->arena + team.thread * arena,
              work->workspace + team.thread * own, Team{0, 1}, times, seconds);
      if (whole > 0 && whole < batch) wait(net, team);
      compute(net, all, whole, batch, work->arena, work->workspace, team, times, seconds);
    });
    if (!enough) throw std::bad_alloc();
    works.give(work);
    return true;
  } catch (const std::bad_alloc&) {
    delete work;
    return failed("there is not enough memory");
  }
}

}  // namespace
)source";
}

std::string_view network_program() {
  return R"source(
// --- for the host --------------------------------------------------------------------------------

namespace {

Works works;

}  // namespace

extern "C" {

const char* syno_program_error(void) { return last_error.c_str(); }

int syno_run_program(const SynoProgram* program, const void* const* inputs, float* const* outputs, long batch, int threads,
                     double* layer_seconds) {
  double seconds[kStepCount + 1];
  if (!run_batch(*program, works, {@FROM_HOST@}, batch, threads, 1, layer_seconds ? seconds : nullptr)) return -1;
  if (layer_seconds) {
    *layer_seconds = 0;
    for (long step = 0; step < kStepCount; ++step)
      if (kIsLayer[step]) *layer_seconds += seconds[step];
  }
  return 0;
}

}  // extern "C"
)source";
}

}  // namespace syno::cpp
