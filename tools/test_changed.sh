#!/usr/bin/env bash
# The tests that a change of Python code or pages concerns, the nearest first, in at most about three minutes.
# Usage: test_changed.sh [COMMIT]    what changed since COMMIT (HEAD), with what is not in git yet
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
use_venv
files="$(python tools/changed_tests.py "$@")"
if [ -z "$files" ]; then
  say "no test is concerned"
  exit 0
fi
# shellcheck disable=SC2086  # the names of tests have no spaces
python_tests $files
