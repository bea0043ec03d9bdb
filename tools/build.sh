#!/usr/bin/env bash
# Builds a preset of CMakePresets.json in build/<preset>.   Usage: build.sh PRESET [TARGET...]
# The release build makes the Python extension, too. Ninja rebuilds only what changed.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
use_venv
preset="${1:?usage: build.sh PRESET [TARGET...]}"
shift
folder="build/$preset"
options=()
if [ "$preset" = release ]; then
  options+=(-DSYNO_BUILD_PYTHON=ON "-DPython_EXECUTABLE=$VENV/bin/python")
fi

if [ ! -f "$folder/build.ninja" ]; then
  say "building the C++ part in $folder with $JOBS jobs (some minutes the first time)"
fi
mkdir -p build
log="build/configure-$preset.log"
if ! cmake --preset "$preset" "${options[@]}" >"$log" 2>&1; then
  cat "$log" >&2
  die "CMake could not configure $folder (its output stands above and in $log)"
fi
cmake --build "$folder" --parallel "$JOBS" ${1:+--target "$@"}
