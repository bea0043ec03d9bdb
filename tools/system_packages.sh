#!/usr/bin/env bash
# Finds out which system packages are missing, and installs them with apt-get where that is allowed
# (root, or sudo that asks no password). Otherwise says which they are. Asks nothing.
# What only some features need (drawings, benchmarks, quick rebuilds) never stops the set-up, and is looked
# for only before the first one, or with --all.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
PYTHON="${PYTHON:-python3}"
export DEBIAN_FRONTEND=noninteractive

has_header() { # has_header NAME: the compiler finds <NAME>; true when there is no compiler to ask
  command -v c++ >/dev/null || return 1
  c++ -E -x c++ - >/dev/null 2>&1 <<<"#if !__has_include(<$1>)
#error missing
#endif"
}
allowed() { command -v apt-get >/dev/null && { [ "$(id -u)" -eq 0 ] || sudo -n true 2>/dev/null; }; }
as_root() { if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n --preserve-env=DEBIAN_FRONTEND "$@"; fi; }

required=() optional=()
command -v c++ >/dev/null || required+=(g++)
has_header gtest/gtest.h || required+=(libgtest-dev)
if ! command -v "$PYTHON" >/dev/null; then
  required+=(python3 python3-venv python3-dev)
else
  "$PYTHON" -c 'import venv, ensurepip' 2>/dev/null || required+=(python3-venv)
  "$PYTHON" -c 'import os, sys, sysconfig
sys.exit(not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")))' \
    || required+=(python3-dev)
fi
if [ ! -x "$VENV/bin/syno" ] || [ "${1:-}" = --all ]; then
  command -v dot >/dev/null || optional+=(graphviz)  # drawings of operators
  command -v ccache >/dev/null || optional+=(ccache) # quick rebuilds
  has_header benchmark/benchmark.h || optional+=(libbenchmark-dev)
fi
missing=("${required[@]}" "${optional[@]}")
[ ${#missing[@]} -gt 0 ] || exit 0

if ! allowed; then
  if [ ${#required[@]} -gt 0 ]; then
    die "these system packages are missing, and this account may not install them: ${required[*]}
  what to do: as root, run   apt-get install ${missing[*]}
  then run the same command again"
  fi
  say "not installed, and only some features need them: ${optional[*]}"
  exit 0
fi

say "installing Debian packages: ${missing[*]} (about a minute)"
log="$(mktemp)"
trap 'rm -f "$log"' EXIT
install() { as_root apt-get install -y --no-install-recommends "$@" >"$log" 2>&1; }
as_root apt-get update >"$log" 2>&1 || say "apt-get update failed; trying with the package lists at hand"
if [ ${#required[@]} -gt 0 ] && ! install "${required[@]}"; then
  tail -n 20 "$log" >&2
  die "apt-get could not install ${required[*]} (its last lines stand above)"
fi
if [ ${#optional[@]} -gt 0 ] && ! install "${optional[@]}"; then
  say "going on without ${optional[*]}: $(tail -n 1 "$log")"
fi
