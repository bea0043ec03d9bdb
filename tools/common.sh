# Sourced by the scripts beside it: where things are, and how they speak.
set -euo pipefail
ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
VENV="$ROOT/.venv"
JOBS="${JOBS:-$(nproc)}"
cd "$ROOT"
# Where it is set, each of hundreds of processes compiles what it imports.
unset PYTHONDONTWRITEBYTECODE

say() { printf '== %s\n' "$*"; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

# The C++ tools of the environment come first: cmake, ninja, clang-format, clang-tidy.
use_venv() {
  [ -x "$VENV/bin/python" ] || die "there is no environment in .venv
  what to do: run \`make venv\`"
  export PATH="$VENV/bin:$PATH"
}

# Tests in Python: a process for each core and two at least, so that it shows what tests share by mistake; the tests of a
# file stay together, for what they share on purpose. One thread in each.
python_tests() {
  local processes=$((JOBS > 2 ? JOBS : 2))
  OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}" python -m pytest --numprocesses "$processes" --dist loadfile \
    --no-loadscope-reorder "$@"
}
