// Threads of a computation: how many there may be, and how they are started, ended and waited for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace syno {

/// The most threads of one computation: cores of the largest machines with two processors. Beyond its cores no machine
/// gets faster, while every thread takes memory.
inline constexpr std::int64_t kMaxThreads = 512;

/// The threads that `requested` asks for: 0 is as many as the machine has cores. Throws UserError unless it is
/// from 0 to kMaxThreads.
std::size_t thread_count(std::int64_t requested);

/// Runs work(0), ..., work(count - 1), each on a thread of its own and work(0) on the calling one, and waits for all. The
/// work has to be shared out while it runs: where the system starts no further thread, the ones that run do all.
/// The first exception of any of them ends the others where they check for interrupts (interrupt.h) and is thrown. So does
/// an interrupt of the calling thread, also while it only waits.
void run_on_threads(std::size_t count, const std::function<void(std::size_t)>& work);

/// Shares 0..count-1 out in chunks among at most `threads` threads: work(thread, from, to) is called for each chunk, on
/// whichever thread is free, with the number of that thread. No more threads are started than there are chunks.
/// go_on(from, to), asked on the calling thread behind each of its chunks, ends everything by saying no: chunks that have
/// begun are finished, and no other begins. Returns whether it never did. Exceptions and interrupts: as above.
bool share_out(std::size_t threads, std::size_t count, std::size_t chunk,
               const std::function<void(std::size_t, std::size_t, std::size_t)>& work,
               const std::function<bool(std::size_t, std::size_t)>& go_on = {});

}  // namespace syno
