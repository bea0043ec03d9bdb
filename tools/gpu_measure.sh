#!/usr/bin/env bash
# Everything that needs a GPU, most important first, in at most 25 minutes on a bare machine with PyTorch and Triton:
# builds the extension, runs the tests of GPUs, measures layers, networks and trainings. Results are written as it goes.
#
# Usage: gpu_measure.sh [PART...]     all parts, or these: see PARTS
#   PYTHON=python3                    the Python with PyTorch, Triton, nanobind, CMake, ninja and pytest
#   OUT=build/gpu                     where results go: gpu_*.json for bench/results, and logs
#   SECONDS_LAYERS=300                after so many, no further layer is begun
#   WHEELS=folder                     wheels of packages that this Python lacks; they are unpacked beside it
#
# A part that fails does not stop the others. Without a GPU it compares small cases in Triton's interpreter, and ends.
# Copy the gpu_*.json to bench/results, with the commit they are of, and run `make pages`.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
PARTS=(machine networks layers training build tests)
PYTHON="${PYTHON:-python3}"
OUT="${OUT:-build/gpu}"
SECONDS_LAYERS="${SECONDS_LAYERS:-300}"
mkdir -p "$OUT"
export PYTHONUNBUFFERED=1
say() { printf '== %s (after %d s)\n' "$*" "$SECONDS"; }

if [ -n "${WHEELS:-}" ]; then
  SITE="$(mktemp -d)"
  for wheel in "$WHEELS"/*.whl; do "$PYTHON" -m zipfile -e "$wheel" "$SITE" || exit 1; done
fi
export PYTHONPATH="$PWD/python${SITE:+:$SITE}${PYTHONPATH:+:$PYTHONPATH}"

machine() {
  nvidia-smi --query-gpu=name,memory.total,driver_version,clocks.sm,clocks.max.sm,power.limit --format=csv
  "$PYTHON" -c "import torch, triton; print(torch.__version__, triton.__version__, torch.backends.cudnn.version())"
}
build() {
  local log="$OUT/build.log"
  cmake -S . -B "build/gpu-release" -G Ninja -DCMAKE_BUILD_TYPE=Release -DSYNO_BUILD_TESTS=OFF -DSYNO_BUILD_PYTHON=ON \
    -DPython_EXECUTABLE="$(command -v "$PYTHON")" >"$log" 2>&1 \
    && cmake --build build/gpu-release --target _core >>"$log" 2>&1 || { tail -n 20 "$log"; return 1; }
}
tests() { timeout 280 "$PYTHON" -m pytest tests/gpu -q -p no:cacheprovider -x --durations=5; }
layers() { timeout "$((SECONDS_LAYERS + 60))" "$PYTHON" bench/gpu/layers.py --out "$OUT/gpu_layers.json" --seconds "$SECONDS_LAYERS"; }
networks() { timeout 400 "$PYTHON" bench/gpu/networks.py --tune --out "$OUT/gpu_networks.json"; }
training() { timeout 200 "$PYTHON" bench/gpu/training.py --out "$OUT/gpu_training.json"; }

if ! "$PYTHON" -c "import torch, triton" 2>/dev/null; then
  echo "error: $PYTHON has no PyTorch, or no Triton
  what to do: name one that has both, such as PYTHON=.venv/bin/python" >&2
  exit 2
fi
if ! "$PYTHON" -c "import sys, torch; sys.exit(not torch.cuda.is_available())"; then
  say "no GPU here: small cases in the interpreter"
  export TRITON_INTERPRET=1
  "$PYTHON" bench/gpu/layers.py && "$PYTHON" bench/gpu/networks.py
  exit
fi
failed=0
for part in "${@:-${PARTS[@]}}"; do
  [[ " ${PARTS[*]} " == *" $part "* ]] || { echo "error: no part is called '$part'; expected: ${PARTS[*]}" >&2; exit 2; }
  say "$part"
  "$part" 2>&1 | tee "$OUT/$part.log" || { failed=1; say "$part FAILED"; }
done
say "done"
exit "$failed"
