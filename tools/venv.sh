#!/usr/bin/env bash
# Makes .venv: the packages of constraints.txt, and Syno itself pointing at python/ (so that a change in a
# .py file needs nothing, and a change in C++ only tools/build.sh). Does nothing when it is up to date.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
PYTHON="${PYTHON:-python3}"
stamp="$VENV/.syno-stamp"
content="$(cat constraints.txt pyproject.toml tools/venv.sh tools/requirements.py | sha256sum | cut -d' ' -f1)"

tools/system_packages.sh
if [ -x "$VENV/bin/syno" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$content" ]; then exit 0; fi

"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
  || die "$("$PYTHON" --version) is too old: Syno needs Python 3.11 or newer
  what to do: PYTHON=/path/to/python3.11 make venv"

if [ ! -x "$VENV/bin/python" ]; then
  say "creating the virtual environment .venv"
  "$PYTHON" -m venv "$VENV"
fi
pip() { "$VENV/bin/python" -m pip --disable-pip-version-check "$@"; }

torch="$(grep '^torch==' constraints.txt)"
say "installing $torch into .venv (a download of 200 MB or more the first time; 1 to 5 minutes)"
pip install -qq -c constraints.txt "$torch"
say "installing the other packages of constraints.txt (about a minute)"
"$VENV/bin/python" tools/requirements.py dev \
  | pip install -qq -c constraints.txt -r /dev/stdin
say "linking Syno into .venv"
pip install -qq --no-build-isolation --no-deps --editable . \
  --config-settings=wheel.cmake=false --config-settings=editable.mode=inplace
echo "$content" >"$stamp"
