#!/usr/bin/env bash
# Builds the fuzzers with Clang and runs each for SECONDS_EACH (20), from the seeds in fuzz/corpus.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
use_venv
command -v clang++ >/dev/null || die "the fuzzers need Clang
  what to do: apt-get install clang libclang-rt-14-dev"
mkdir -p build
cmake -S . -B build/fuzz -G Ninja -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_BUILD_TYPE=RelWithDebInfo \
  -DSYNO_BUILD_FUZZ=ON -DSYNO_BUILD_TESTS=OFF -DSYNO_SANITIZE=address,undefined >build/configure-fuzz.log
for source in fuzz/*.cpp; do
  name="$(basename "$source" .cpp)"
  cmake --build build/fuzz --parallel "$JOBS" --target "fuzz_$name"
  found="build/fuzz/found/$name"
  mkdir -p "$found"
  say "fuzzing $name for ${SECONDS_EACH:-20} seconds"
  if ! "build/fuzz/fuzz_$name" -max_total_time="${SECONDS_EACH:-20}" -timeout=10 -rss_limit_mb=2048 \
       -artifact_prefix="$found/" "$found" "fuzz/corpus/$name" >"build/fuzz/$name.log" 2>&1; then
    tail -n 40 "build/fuzz/$name.log" >&2
    die "fuzz_$name found something; the input is in $found"
  fi
  tail -n 1 "build/fuzz/$name.log"
done
