#!/usr/bin/env bash
# Writes the generated tables and sentences of README.md and docs/ anew, from bench/results and the code.
# With --check: fails when a page differs from that, and shows how. What the snippets call stands in tools/pages.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
use_venv
export PYTHONPATH="$ROOT/python" OMP_NUM_THREADS=1
write=(-r --verbosity=1)
if [ "${1:-}" = --check ]; then
  write=(--check --diff --verbosity=0 --check-fail-msg='what to do: make pages')
fi
cog -P -U -I tools -p 'from pages import *' "${write[@]}" README.md docs/*.md
