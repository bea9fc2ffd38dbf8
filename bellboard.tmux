#!/bin/sh
# For tpm, the plugin manager of tmux, which runs this at each start:
#   set -g @plugin 'OWNER/bellboard.nvim'
#   set -g @bellboard-apply '--status --pick S'
# It runs `bellboard tmux --apply` with these arguments, and builds the program if it is missing.
cd "$(dirname "$0")" || exit 0

say() {
  tmux display-message "bellboard: $(printf '%s' "$1" | tr '\n#' ' .')"
}

# A link on PATH may lead to the .venv that is to be built.
runs() {
  "$program" --version >/dev/null 2>&1
}

{
  program=$PWD/.venv/bin/bellboard
  { [ -e .venv/.ready ] && runs; } || { program=$(command -v bellboard) && runs; } || {
    say 'installing its Python packages, once'
    said=$(./build.sh | tail -n 1)
    program=$PWD/.venv/bin/bellboard
    [ -e .venv/.ready ] || { say "$said" && exit; }
  }
  # shellcheck disable=SC2046 # several words
  problems=$("$program" tmux --apply --quiet $(tmux show-option -gqv @bellboard-apply) 2>&1) ||
    say "$problems"
} &
