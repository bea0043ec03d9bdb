#!/usr/bin/env bash
# Makes .venv: the packages of locks/dev.txt and torch, and Syno itself pointing at python/ (so that a change in a
# .py file needs nothing, and a change in C++ only tools/build.sh). Does nothing when it is up to date.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
PYTHON="${PYTHON:-python3}"
stamp="$VENV/.syno-stamp"
content="$(cat constraints.txt locks/dev.txt pyproject.toml tools/venv.sh | sha256sum | cut -d' ' -f1)"

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

# The lock names every package, so that nothing is looked for beyond it; each file has its digest. Python compiles what
# is imported, a small part of 21,000 files, when it is.
say "installing the packages of locks/dev.txt into .venv (about a minute)"
pip install -qq --no-compile --require-hashes --no-deps -r locks/dev.txt
torch="$(grep '^torch==' constraints.txt)"
say "installing $torch (a download of 200 MB or more the first time; 1 to 5 minutes)"
pip install -qq --no-compile -c constraints.txt "$torch"
say "linking Syno into .venv"
pip install -qq --no-build-isolation --no-deps --editable . \
  --config-settings=wheel.cmake=false --config-settings=editable.mode=inplace
pip check >/dev/null || die "packages of .venv do not go together:
$(pip check || true)
  what to do: complete constraints.txt, then tools/lock.sh"
echo "$content" >"$stamp"
