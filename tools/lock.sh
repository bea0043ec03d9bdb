#!/usr/bin/env bash
# Writes locks/*.txt anew: the pins of constraints.txt with the digests of all files of these versions, for every
# platform, as the registry gives them. For a change of a pin; nothing is installed but the tool that asks.
# With --check: fails when that gives something else than what is there.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
PYTHON="${PYTHON:-python3}"
UV=0.13.9
work="$ROOT/build/lock"
mkdir -p "$work" locks

if [ "$("$work/venv/bin/uv" --version 2>/dev/null | cut -d' ' -f2)" != "$UV" ]; then
  say "installing uv $UV into build/lock"
  "$PYTHON" -m venv "$work/venv"
  "$work/venv/bin/python" -m pip --disable-pip-version-check install -qq "uv==$UV"
fi

# A section ends with an empty line; that on the extras makes the second lock. torch is in neither.
pins() { # pins dev|extras
  awk -v wanted="$1" \
    '/^# the extras/ { part = "extras" } /^$/ { part = "" }
     /^[A-Za-z]/ && !/^torch==/ && (part == "" ? "dev" : part) == wanted' constraints.txt
}
for set in dev extras; do
  pins "$set" >"$work/$set.in"
  {
    echo "# Written by tools/lock.sh from constraints.txt; not to be edited."
    "$work/venv/bin/uv" pip compile --quiet --no-config --no-deps --no-header --no-annotate --universal \
      --python-version 3.11 --generate-hashes "$work/$set.in"
  } >"$work/$set.txt"
  if [ "${1:-}" = --check ]; then
    cmp "$work/$set.txt" "locks/$set.txt" || die "locks/$set.txt is out of date
  what to do: tools/lock.sh"
  else
    cp "$work/$set.txt" "locks/$set.txt"
  fi
  say "locks/$set.txt: $(grep -c '==' "locks/$set.txt") packages, $(grep -c sha256 "locks/$set.txt") files"
done
