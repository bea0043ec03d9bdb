#!/usr/bin/env bash
# Builds and runs the C++ benchmarks; arguments go to Google Benchmark. The numbers go to build/bench.json, too, with
# machine, versions and commit.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
use_venv
tools/system_packages.sh --all
cmake --preset release -DSYNO_BUILD_BENCH=ON >build/configure-bench.log 2>&1 \
  || { cat build/configure-bench.log >&2; die "CMake could not configure the benchmarks"; }
cmake --build build/release --parallel "$JOBS" --target syno_bench
commit="$(git rev-parse HEAD 2>/dev/null || echo unknown)"
[ -z "$(git status --porcelain 2>/dev/null)" ] || commit="$commit-dirty"
processor="$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo 2>/dev/null | head -1 | tr ',=' '  ')"
build/release/syno_bench --benchmark_out=build/bench.json --benchmark_out_format=json \
  "--benchmark_context=commit=$commit,processor=${processor:-unknown},system=$(uname -sm)" "$@"
say "machine and numbers are in build/bench.json"
