#!/bin/sh
# For tpm, the plugin manager of tmux, which runs this at each start:
#   set -g @plugin 'OWNER/bellboard.nvim'
#   set -g @bellboard-apply '--status --pick S'
# It runs `bellboard tmux --apply` with these arguments, and builds the program if it is missing.
cd "$(dirname "$0")" || exit 0

say() {
  tmux display-message "bellboard: $(printf '%s' "$1" | tr '\n#' ' .')"
}

{
  exec 9<. && flock 9 2>/dev/null # a Neovim may be building here
  program=$PWD/.venv/bin/bellboard
  [ -x "$program" ] || program=$(command -v bellboard) || {
    program=$PWD/.venv/bin/bellboard
    say 'installing its Python packages, once'
    log=$(mktemp)
    {
      UV_PROJECT_ENVIRONMENT=$PWD/.venv uv sync --no-dev --frozen --inexact ||
        { python3 -m venv .venv && .venv/bin/pip install --editable .; }
    } >"$log" 2>&1 || say "could not be installed: see $log"
  }
  exec 9<&-
  # shellcheck disable=SC2046 # several words
  [ ! -x "$program" ] ||
    problems=$("$program" tmux --apply --quiet $(tmux show-option -gqv @bellboard-apply) 2>&1) ||
    say "$problems"
} &
