#!/usr/bin/env bash
# The quick checks. Runs them all, says how long each took, and fails at the end when one failed.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
use_venv
failed=()
types="$(mktemp)"
trap 'rm -f "$types"' EXIT

check() { # check NAME COMMAND...: quiet when it passes
  local name="$1" start output
  shift
  start=$(date +%s%N)
  if output="$("$@" 2>&1)"; then
    printf '   ok %5.1f s  %s\n' "$((($(date +%s%N) - start) / 100000000))e-1" "$name"
  else
    printf 'FAILED        %s\n%s\n' "$name" "$output"
    failed+=("$name")
  fi
}
cpp_format() { python tools/project_files.py '*.h' '*.cpp' | xargs -r clang-format --dry-run --Werror; }

# Without a cache, the types take as long as all others together: they are checked beside them.
check "Python types (mypy)" mypy >"$types" &
check "C++ format (clang-format)" cpp_format
check "Python format (ruff)" ruff format --check .
check "Python lint (ruff)" ruff check .
check "layers (layers.toml)" python tools/check_layers.py
check "words" python tools/check_words.py
check "length of files" python tools/check_length.py
check "sources of results" python tools/check_results.py
check "generated parts of pages" tools/pages.sh --check
check "messages of commits" python tools/check_commits.py
wait
cat "$types"
! grep -q ^FAILED "$types" || failed+=("Python types (mypy)")
[ ${#failed[@]} -eq 0 ] || die "failed: $(printf '%s; ' "${failed[@]}")\`make format\` mends formatting"
