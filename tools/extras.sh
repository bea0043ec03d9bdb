#!/usr/bin/env bash
# Installs the packages of locks/extras.txt into .venv: tvm, triton, openvino, optuna and ray. Does nothing when they are there.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
use_venv
stamp="$VENV/.syno-extras"
content="$(sha256sum locks/extras.txt | cut -d' ' -f1)"
if [ "$(cat "$stamp" 2>/dev/null)" = "$content" ]; then exit 0; fi
say "installing the extras tvm, triton, rivals, optuna and ray (1.7 GB the first time; under a minute)"
python -m pip --disable-pip-version-check install -qq --no-compile --require-hashes --no-deps -r locks/extras.txt
echo "$content" >"$stamp"
