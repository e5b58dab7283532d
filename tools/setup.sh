#!/bin/sh
# setup.sh run|dev [FOLDER]: makes a virtual environment (.venv), and installs git relay into it in place, with what it
# needs to run or to be developed, at the versions and with the hashes of locks/.
#
# Nothing is printed but one line a step; what pip says is kept in FOLDER/setup.log and shown when it failed.
set -eu
kind=$1 venv=${2:-.venv}
cd "$(dirname "$0")/.."

say() { printf '==> %s\n' "$*"; }
stop() { printf 'setup: %s\n' "$1" >&2; [ $# -lt 2 ] || printf 'try:   %s\n' "$2" >&2; exit 1; }
new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

python=
for candidate in "${PYTHON:-python3}" python3.14 python3.13 python3.12 python3.11; do
  if new_enough "$candidate"; then python=$candidate; break; fi
done
if [ -z "$python" ]; then
  found=$("${PYTHON:-python3}" --version 2>&1) || found="no ${PYTHON:-python3}"
  stop "git relay needs Python 3.11 or newer, and this machine has $found." "make PYTHON=/path/to/python3.11 ..."
fi
"$python" -c 'import ensurepip, venv' 2>/dev/null ||
  stop "this Python cannot make virtual environments: its venv module is missing." "apt-get install python3-venv"

if ! { [ -x "$venv/bin/python" ] && new_enough "$venv/bin/python" && "$venv/bin/python" -m pip --version; } >/dev/null 2>&1
then
  say "making $venv with $("$python" --version)"
  rm -rf "$venv"
  "$python" -m venv "$venv" || stop "cannot make $venv."
fi

pip() {
  PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore PIP_NO_INPUT=1 \
    "$venv/bin/python" -m pip "$@" >"$venv/setup.log" 2>&1 || {
    cat "$venv/setup.log" >&2
    stop "pip could not install what git relay needs (above is what it said)." "the same command again, with the network up"
  }
}
say "installing git relay and what it needs ($kind)"
pip install --require-hashes -r "locks/$kind.txt"
pip install --no-deps --no-build-isolation --no-index --editable .
