#!/bin/sh
# lock.sh: writes locks/run.txt and locks/dev.txt anew out of pyproject.toml: every version with its hashes, for every
# Python and platform at once. What builds the package in place is in both, so that setup.sh needs nothing else.
set -eu
cd "$(dirname "$0")/.."
tool=$(mktemp -d)
trap 'rm -rf "$tool"' EXIT
python3 -m venv "$tool"
"$tool/bin/python" -m pip install -q --disable-pip-version-check uv
lock() {
  file=$1; shift
  printf 'hatchling\neditables\n' | "$tool/bin/uv" pip compile -q --universal --python-version 3.11 --generate-hashes \
    --no-header --no-annotate --no-emit-index-url --upgrade "$@" pyproject.toml - -o "$file"
}
lock locks/run.txt
lock locks/dev.txt --extra dev
