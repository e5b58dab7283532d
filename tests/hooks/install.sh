#!/bin/bash
# install.sh PREFIX: installs the real hook managers at pinned versions under PREFIX, so that PREFIX/bin has husky, husky8,
# lefthook, pre-commit, and the node they run on. Needs node, npm and Python's venv. What is there already is left alone.
set -euo pipefail
prefix=$(mkdir -p "${1:?usage: install.sh PREFIX}" && cd "$1" && pwd)
npm_specs=(husky@9.1.7 husky8@npm:husky@8.0.3 lefthook@2.2.2)
pip_specs=(pre-commit==4.7.0)
mkdir -p "$prefix/bin"

quietly() {  # COMMAND...
  "$@" >"$prefix/log" 2>&1 </dev/null || { cat "$prefix/log" >&2; return 1; }
}

if [ "$(cat "$prefix/npm/.specs" 2>/dev/null)" != "${npm_specs[*]}" ]; then
  rm -rf "$prefix/npm"; mkdir "$prefix/npm"
  # Without scripts: lefthook's would put hooks into whatever repository this is called in.
  (cd "$prefix/npm" && quietly npm install --prefix . --ignore-scripts --no-audit --no-fund --no-package-lock \
    --loglevel=error "${npm_specs[@]}")
  echo "${npm_specs[*]}" >"$prefix/npm/.specs"
fi
if [ "$(cat "$prefix/py/.specs" 2>/dev/null)" != "${pip_specs[*]}" ]; then
  rm -rf "$prefix/py"
  quietly python3 -m venv "$prefix/py"
  quietly "$prefix/py/bin/pip" install -q "${pip_specs[@]}"
  echo "${pip_specs[*]}" >"$prefix/py/.specs"
fi

packages=$prefix/npm/node_modules
ln -sfn "$(command -v node)" "$prefix/bin/node"
ln -sfn "$packages/husky/bin.js" "$prefix/bin/husky"
ln -sfn "$packages/husky8/lib/bin.js" "$prefix/bin/husky8"
ln -sfn "$(echo "$packages"/lefthook-*/bin/lefthook)" "$prefix/bin/lefthook"
# What `npm install` runs in a project that has lefthook.
printf '#!/bin/sh\nexec node "%s"\n' "$packages/lefthook/postinstall.js" >"$prefix/bin/lefthook-postinstall"
chmod +x "$prefix/bin/lefthook-postinstall" "$packages/husky8/lib/bin.js"
ln -sfn "$prefix/py/bin/pre-commit" "$prefix/bin/pre-commit"
