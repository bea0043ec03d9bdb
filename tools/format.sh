#!/usr/bin/env bash
# Formats C++ and Python in place.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
use_venv
python tools/project_files.py '*.h' '*.cpp' | xargs -r clang-format -i
ruff check --fix-only --quiet .
ruff format .
