#!/usr/bin/env bash
# clang-tidy over the library and the bindings (.clang-tidy says which checks), JOBS files at a time.
# Needs a configured release build for its compile_commands.json.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
use_venv
python tools/project_files.py 'src/*.cpp' | grep -v '_test\.cpp$' \
  | xargs -r -n 1 -P "$JOBS" clang-tidy -p build/release --quiet --warnings-as-errors='*' 2>&1 \
  | { grep -v "warnings\? generated" || true; }
