#!/usr/bin/env bash
# Everything: the quick checks, clang-tidy, the sanitizers, thorough random tests, the fuzzers, the installed packages, and
# all Python tests, the slow ones and those of the laboratory too. Each part runs, whatever became of those before; a
# table at the end says how each ended.
#
# A part that passed is remembered in build/check-all/ for the content of the files that it depends on, and is not run
# again for the same content. So a run that was interrupted goes on, and a change in Python repeats nothing of C++.
# PARTS="tidy fuzz" runs these parts alone; AGAIN=1 runs what passed, too; PYTEST="..." goes to pytest.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
use_venv
REMEMBERED=build/check-all
mkdir -p "$REMEMBERED"
CPP=(src cmake CMakeLists.txt CMakePresets.json tests/golden)
EMITTED=("${CPP[@]}" python/syno pyproject.toml)
BLOCKS=(1 2 3 4 5 6 7 8) # of random networks
NAMES=(check build tidy sanitizers races thorough fuzz pytorch install extras tvm triton audit e2e "${BLOCKS[@]/#/networks}"
  inference lab tests)
rows=()
failed=0
for name in ${PARTS:-}; do
  [[ " ${NAMES[*]} " == *" $name "* ]] || die "no part is called '$name'
  expected: some of ${NAMES[*]}"
done

is_asked() { [[ -z "${PARTS:-}" || " $PARTS " == *" $1 "* ]]; }

# content PATH...: a number of what git holds of these files; nothing while they have changes, or without git.
content() {
  local changes
  changes="$(git status --porcelain -- "$@" 2>/dev/null)" || return 0
  [ -n "$changes" ] || git ls-files --stage -- "$@" | git hash-object --stdin
}

row() { rows+=("$(printf '%-7s %8s  %-12s %s' "$@")"); } # row ENDED SECONDS NAME ABOUT

part() { # part NAME ABOUT PATHS COMMAND...: a row of the table. PATHS: the name of an array
  local name="$1" about="$2" begin=$SECONDS ended=passed before
  local -n paths="$3"
  shift 3
  is_asked "$name" || return 0
  before="$(content "${paths[@]}")"
  local file="$REMEMBERED/$name"
  if [ -z "${AGAIN:-}" ] && [ -n "$before" ] && [ "$before" = "$(head -n 1 "$file" 2>/dev/null)" ]; then
    row passed "$(sed -n 2p "$file")" "$name" "$about (at $(sed -n 3p "$file"))"
    return 0
  fi
  say "$name: $about"
  "$@" || ended=FAILED
  [ "$ended" = passed ] || failed=1
  row "$ended" "$((SECONDS - begin)) s" "$name" "$about"
  if [ "$ended" = passed ] && [ -n "$before" ] && [ "$before" = "$(content "${paths[@]}")" ]; then
    printf '%s\n' "$before" "$((SECONDS - begin)) s" "$(git rev-parse --short HEAD)" >"$file"
  fi
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
thorough() {
  tools/build.sh release syno_space_tests \
    && SYNO_THOROUGH=1 build/release/syno_space_tests --gtest_brief=1 --gtest_filter='*RandomSpecifications*'
}
verified() { syno verify --random "$2" --seed 0 --emitters "$1"; }
tests() { # tests PATH...: the slow ones, too
  # shellcheck disable=SC2086  # several arguments
  SYNO_SKIPS=strict python_tests -m "slow or not slow" -o "norecursedirs=.*" "$@" ${PYTEST:-}
}
NETWORKS="tests/inference/test_random_networks.py::test_many_random_networks_are_right_or_refused"
networks() { # networks BLOCK: 25 of the 200 tests, each of 25 networks
  local bundles=()
  for bundle in $(seq $((25 * $1 - 25)) $((25 * $1 - 1))); do bundles+=("$NETWORKS[$bundle]"); done
  tests "${bundles[@]}" --dist load # all of one file
}
ALL=(.)
SEPARATE=(audit e2e lab)
others=()
for folder in tests/*/; do
  name="$(basename "$folder")"
  [[ " ${SEPARATE[*]} inference golden __pycache__ " == *" $name "* ]] || others+=("$folder")
done

tools/build.sh release _core
part check "the quick checks" ALL tools/check.sh
part build "the library and its C++ tests" CPP tools/build.sh release
part tidy "clang-tidy" CPP tools/clang_tidy.sh
part sanitizers "C++ tests with checks of addresses and undefined behaviour" CPP sanitized
part races "C++ tests with checks for data races" CPP threads
part thorough "searches against their definition on thousands of random specifications" CPP thorough
FUZZED=("${CPP[@]}" fuzz)
if command -v clang++ >/dev/null; then
  part fuzz "the fuzzers" FUZZED tools/fuzz.sh
elif is_asked fuzz; then
  row skipped - fuzz "the fuzzers: no Clang here"
fi
part pytorch "code for PyTorch against the interpreter on 10,000 random operators" EMITTED verified pytorch 10000
part install "the installed packages" ALL tools/install_check.sh
part extras "the extras" ALL tools/extras.sh
part tvm "code for TVM against the interpreter on 1,000 random operators" EMITTED verified tvm 1000
part triton "code for Triton against the interpreter on 500 random operators" EMITTED verified triton 500
COMPILED=("${EMITTED[@]}" tests/inference)
for block in "${BLOCKS[@]}"; do
  part "networks$block" "625 of 5,000 random networks against PyTorch" COMPILED networks "$block"
done
part inference "the other Python tests of tests/inference" ALL tests tests/inference --deselect "$NETWORKS"
for folder in "${SEPARATE[@]}"; do
  part "$folder" "the Python tests of tests/$folder" ALL tests "tests/$folder"
done
part tests "the other Python tests" ALL tests "${others[@]}"

say "the parts"
printf '   %s\n' "${rows[@]}"
exit "$failed"
