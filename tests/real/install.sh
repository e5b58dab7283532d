#!/bin/bash
# install.sh PREFIX [TOOL ...]: installs real agent CLIs at pinned versions under PREFIX, so that PREFIX/bin has them.
# TOOL: claude, codex (default: both). Needs node and npm. A tool that is already there at its version is left alone.
set -euo pipefail
prefix=$(mkdir -p "${1:?usage: install.sh PREFIX [TOOL ...]}" && cd "$1" && pwd); shift
tools=("$@"); [ ${#tools[@]} -gt 0 ] || tools=(claude codex)
mkdir -p "$prefix/bin" "$prefix/pkg"

npm_tool() {  # NAME SPEC COMMAND
  local dir="$prefix/pkg/$1" began=$SECONDS
  if [ "$(cat "$dir/.spec" 2>/dev/null)" != "$2" ]; then
    rm -rf "$dir"; mkdir -p "$dir"
    npm install --prefix "$dir" --no-audit --no-fund --no-package-lock --loglevel=error "$2" >"$dir.log" 2>&1 </dev/null ||
      { cat "$dir.log" >&2; return 1; }
    # Some npm settings run no install script of a package: what it would have done is to put the native program in place.
    local script=$dir/node_modules/${2%@*}/install.cjs
    [ ! -e "$script" ] || node "$script" >>"$dir.log" 2>&1 || { cat "$dir.log" >&2; return 1; }
    echo "$2" >"$dir/.spec"
  fi
  ln -sfn "$dir/node_modules/.bin/$3" "$prefix/bin/$3"
  echo "$2 in $((SECONDS - began)) s"
}

for tool in "${tools[@]}"; do
  case $tool in
    claude) npm_tool claude @anthropic-ai/claude-code@2.1.332 claude ;;
    codex)  npm_tool codex @openai/codex@0.171.0 codex ;;
    *) echo "install.sh: unknown tool: $tool" >&2; exit 2 ;;
  esac
done
