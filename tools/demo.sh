#!/usr/bin/env bash
# Everything from nothing to the demonstration's report in build/demo.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
tools/venv.sh
tools/build.sh release _core
say "running the demonstration: about 4 minutes on 2 cores; the report goes to build/demo"
exec "$VENV/bin/syno" demo --out build/demo "$@"
