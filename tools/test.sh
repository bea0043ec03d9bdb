#!/usr/bin/env bash
# The product's tests: C++ with ctest, then Python with pytest. Arguments go to pytest. The tests of the laboratory and
# those marked as slow run in check_all.sh.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
tools/venv.sh
tools/build.sh release
use_venv
status=0
say "C++ tests"
ctest --test-dir build/release --parallel "$JOBS" --output-on-failure --no-tests=error --quiet \
  --output-log build/release/ctest.log || status=1
tail -n 60 build/release/ctest.log | sed -n '/tests passed/,$p'
[ "$status" -eq 0 ] || grep -B2 -A40 -E '\*\*\*(Failed|Exception|Timeout)' build/release/ctest.log | head -n 200
say "Python tests"
# Tests wait for compilers and for processes of their own: one more than there are cores uses these.
# The stack of a test that hangs is printed.
python_tests --numprocesses "$((JOBS + 1))" -o faulthandler_timeout=600 --durations 30 --durations-min 5 "$@" || status=1
[ "$status" -eq 0 ] || die "tests failed"
