#!/usr/bin/env bash
# Everything: the quick checks, clang-tidy, the sanitizers, thorough random tests, the fuzzers, the installed packages, and
# all Python tests, the slow ones and those of the laboratory too. Each part runs, whatever became of those before; a
# table at the end says how each ended. Arguments go to pytest.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
use_venv
rows=()
failed=0

part() { # part NAME COMMAND...: a row of the table
  local name="$1" begin=$SECONDS ended=passed
  shift
  say "$name"
  "$@" || ended=FAILED
  [ "$ended" = passed ] || failed=1
  rows+=("$(printf '%-7s %6d s  %s' "$ended" $((SECONDS - begin)) "$name")")
}

# What a part runs; && because a function does not stop at the first failure here.
sanitized() { tools/build.sh asan-ubsan && ctest --preset asan-ubsan --parallel "$JOBS" --progress; }
threads() {
  tools/build.sh tsan syno_space_tests syno_trials_tests syno_support_tests syno_threads_tests \
    && build/tsan/syno_support_tests --gtest_brief=1 --gtest_filter='Threads.*:Interrupt.*' \
    && build/tsan/syno_threads_tests --gtest_brief=1 \
    && build/tsan/syno_space_tests --gtest_brief=1 \
      --gtest_filter='*Thread*:Enumerate.EndsWith*:*ListsRandomSpecificationsAlike*' \
    && build/tsan/syno_trials_tests --gtest_brief=1 --gtest_filter='RandomTrials.*:CanonicalRates.*'
}
thorough() { SYNO_THOROUGH=1 build/release/syno_space_tests --gtest_brief=1 --gtest_filter='*RandomSpecifications*'; }
verified() { syno verify --random "$2" --seed 0 --emitters "$1"; }
python_tests_all() { SYNO_SKIPS=strict python -m pytest -m "slow or not slow" -o "norecursedirs=.*" "$@"; }

part "quick checks" tools/check.sh
part "build (release)" tools/build.sh release
part "clang-tidy" tools/clang_tidy.sh
part "C++ tests with checks of addresses and undefined behaviour" sanitized
part "C++ tests with checks for data races" threads
part "searches against their definition on thousands of random specifications" thorough
if command -v clang++ >/dev/null; then
  part "fuzzers" tools/fuzz.sh
else
  rows+=("skipped        -  fuzzers: no Clang here")
fi
part "code for PyTorch against the interpreter on 10,000 random operators" verified pytorch 10000
part "installed packages" tools/install_check.sh
part "extras" tools/extras.sh
part "code for TVM against the interpreter on 1,000 random operators" verified tvm 1000
part "code for Triton against the interpreter on 500 random operators" verified triton 500
part "Python tests, all of them" python_tests_all "$@"

say "the parts"
printf '   %s\n' "${rows[@]}"
exit "$failed"
