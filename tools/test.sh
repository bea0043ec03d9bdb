#!/usr/bin/env bash
# The whole test suite: C++ with ctest, then Python with pytest. Arguments go to pytest.
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
say "Python tests, in $JOBS processes"
# A process for each core, and one thread in each; the tests of a file stay together, for what they share.
OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}" python -m pytest --numprocesses "$JOBS" --dist loadfile \
  --durations 30 --durations-min 5 "$@" || status=1
[ "$status" -eq 0 ] || die "tests failed"
