#!/bin/bash
# install.sh PREFIX [TOOL ...]: installs real agent CLIs at pinned versions under PREFIX, so that PREFIX/bin has them.
# TOOL: claude, codex, opencode, gemini, qwen, copilot (default: all). Needs node and npm. A tool that is already there at
# its version is left alone. Qwen Code needs node 22 or newer, and gets one beside it.
set -euo pipefail
prefix=$(mkdir -p "${1:?usage: install.sh PREFIX [TOOL ...]}" && cd "$1" && pwd); shift
tools=("$@"); [ ${#tools[@]} -gt 0 ] || tools=(claude codex opencode gemini qwen copilot)
mkdir -p "$prefix/bin" "$prefix/pkg"

npm_tool() {  # NAME SPEC COMMAND
  local dir="$prefix/pkg/$1" began=$SECONDS
  if [ "$(cat "$dir/.spec" 2>/dev/null)" != "$2" ]; then
    rm -rf "$dir"; mkdir -p "$dir"
    npm install --prefix "$dir" --no-audit --no-fund --no-package-lock --loglevel=error "$2" >"$dir.log" 2>&1 </dev/null ||
      { cat "$dir.log" >&2; return 1; }
    # Some npm settings run no install script of a package: what it would have done is to put the native program in place.
    local script
    for script in install.cjs postinstall.mjs; do
      script=$dir/node_modules/${2%@*}/$script
      [ ! -e "$script" ] || node "$script" >>"$dir.log" 2>&1 || { cat "$dir.log" >&2; return 1; }
    done
    echo "$2" >"$dir/.spec"
  fi
  ln -sfn "$dir/node_modules/.bin/$3" "$prefix/bin/$3"
  echo "$2 in $((SECONDS - began)) s"
}

node22() {  # a node that is new enough for Qwen Code
  local dir=$prefix/pkg/node22/node_modules/node
  npm_tool node22 node@22.23.3 node
  [ -x "$dir/bin/node" ] || (cd "$dir" && node installArchSpecificPackage.js >>"$prefix/pkg/node22.log" 2>&1)
  ln -sfn "$dir/bin/node" "$prefix/bin/node"
}

python_tool() {  # NAME SPEC COMMAND
  local dir="$prefix/pkg/$1" began=$SECONDS
  if [ "$(cat "$dir/.spec" 2>/dev/null)" != "$2" ]; then
    rm -rf "$dir"; python3 -m venv "$dir"
    "$dir/bin/pip" install -q "$2" >"$dir.log" 2>&1 </dev/null || { cat "$dir.log" >&2; return 1; }
    echo "$2" >"$dir/.spec"
  fi
  ln -sfn "$dir/bin/$3" "$prefix/bin/$3"
  echo "$2 in $((SECONDS - began)) s"
}

for tool in "${tools[@]}"; do
  case $tool in
    claude) npm_tool claude @anthropic-ai/claude-code@2.1.332 claude ;;
    codex)  npm_tool codex @openai/codex@0.171.0 codex ;;
    opencode) npm_tool opencode opencode-ai@1.18.33 opencode ;;
    gemini) npm_tool gemini @google/gemini-cli@0.61.0 gemini ;;
    qwen)   node22; npm_tool qwen @qwen-code/qwen-code@0.24.4 qwen ;;
    copilot) npm_tool copilot @github/copilot@1.0.102 copilot ;;
    cline) npm_tool cline cline@3.0.65 cline ;;
    continue) npm_tool continue @continuedev/cli@1.5.47 cn ;;
    aider) python_tool aider aider-chat==0.86.2 aider ;;
    *) echo "install.sh: unknown tool: $tool" >&2; exit 2 ;;
  esac
done
