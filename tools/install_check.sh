#!/usr/bin/env bash
# What users of an installed Syno get: the C++ package with examples/cpp on it, and the wheel.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
use_venv
scratch="$ROOT/build/install-check"
rm -rf "$scratch"
mkdir -p "$scratch"

say "C++: install, then build and run examples/cpp against the installed package"
tools/build.sh release syno
cmake --install build/release --prefix "$scratch/prefix" >"$scratch/install.log"
cmake -S examples/cpp -B "$scratch/example" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_PREFIX_PATH="$scratch/prefix" >"$scratch/configure.log"
cmake --build "$scratch/example"
"$scratch/example/syno_example" | tee "$scratch/example.log"
# y[0, 0, 0, w] of x = 1, 2, ..., 48 in [3, 4, 4]: the sum over three channels and rows 0 and 1.
grep -q 'first row: 114 120 126 132$' "$scratch/example.log" || die "examples/cpp prints a wrong value"
grep -q '^y\[n,o,h,w\] = sum(i:C_in) x\[n,i,h,w\] \* w0\[o,i\]$' "$scratch/example.log" || die "examples/cpp lacks a move"
"$scratch/example/run_kernel" | tee "$scratch/kernel.log"
grep -q '^border 2, inside 3$' "$scratch/kernel.log" || die "the compiled operator prints a wrong value"

say "Python: build the wheel, unpack it beside the environment, and use it"
python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir "$scratch/dist" .
python -m pip install --quiet --no-deps --target "$scratch/wheel" "$scratch"/dist/*.whl
# -S: without site, the environment's own link to python/ does not come before the wheel.
site="$(python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')"
cd "$scratch"
PYTHONPATH="$scratch/wheel:$site" python -S "$ROOT/tools/use_wheel.py" "$scratch/wheel"
