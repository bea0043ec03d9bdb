#!/usr/bin/env bash
# Builds and runs the C++ benchmarks; arguments go to Google Benchmark. The numbers go to build/bench.json, too.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
use_venv
tools/system_packages.sh --all
cmake --preset release -DSYNO_BUILD_BENCH=ON >build/configure-bench.log 2>&1 \
  || { cat build/configure-bench.log >&2; die "CMake could not configure the benchmarks"; }
cmake --build build/release --parallel "$JOBS" --target syno_bench
build/release/syno_bench --benchmark_out=build/bench.json --benchmark_out_format=json "$@"
say "machine and numbers are in build/bench.json"
