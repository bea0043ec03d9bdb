#!/usr/bin/env bash
# Everything: the quick checks, clang-tidy, the sanitizers, thorough random tests, the fuzzers, the slow tests and the
# installed packages.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
use_venv
tools/check.sh
say "building (release)"
tools/build.sh release
say "clang-tidy (some minutes)"
tools/clang_tidy.sh
say "address and undefined-behaviour checks: build and C++ tests (some minutes)"
tools/build.sh asan-ubsan
ctest --preset asan-ubsan --parallel "$JOBS" --progress
say "data races: build and the C++ tests with threads (some minutes)"
tools/build.sh tsan syno_space_tests syno_trials_tests syno_support_tests syno_threads_tests
build/tsan/syno_support_tests --gtest_brief=1 --gtest_filter='Threads.*:Interrupt.*'
build/tsan/syno_threads_tests --gtest_brief=1
build/tsan/syno_space_tests --gtest_brief=1 \
  --gtest_filter='*Thread*:Enumerate.EndsWith*:*ListsRandomSpecificationsAlike*'
build/tsan/syno_trials_tests --gtest_brief=1 --gtest_filter='RandomTrials.*:CanonicalRates.*'
say "searches against their definition on thousands of random specifications (some minutes)"
SYNO_THOROUGH=1 build/release/syno_space_tests --gtest_brief=1 --gtest_filter='*RandomSpecifications*'
if command -v clang++ >/dev/null; then
  tools/fuzz.sh
else
  say "no Clang here: the fuzzers are skipped"
fi
say "emitted code against the interpreter on ten thousand random operators (a minute or two)"
syno verify --random 10000 --seed 0 --emitters pytorch
tools/install_check.sh
tools/extras.sh
say "code for TVM and Triton against the interpreter on random operators (some minutes)"
syno verify --random 1000 --seed 0 --emitters tvm
syno verify --random 500 --seed 0 --emitters triton
say "Python tests, the slow ones too"
export SYNO_SKIPS=strict
exec python -m pytest -m "slow or not slow" "$@"
