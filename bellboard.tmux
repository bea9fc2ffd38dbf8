#!/bin/sh
# For tpm, the plugin manager of tmux, which runs this at each start:
#   set -g @plugin 'OWNER/bellboard.nvim'
#   set -g @bellboard-apply '--status --pick S'
# It runs `bellboard tmux --apply` with these arguments, and builds the program if it is missing.
cd "$(dirname "$0")" || exit 0

say() {
  tmux display-message "bellboard: $(printf '%s' "$1" | tr '\n#' ' .')"
}

own=.venv/bin/python
log=$PWD/.build.log

# It exists and is new enough.
fits() {
  "$1" -E -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null
}

# A link on PATH may lead to the .venv that is to be built.
runs() {
  "$program" --version >/dev/null 2>&1
}

# As lua/bellboard/builder.lua does it, which says why.
build() {
  clear=
  [ ! -e .venv ] || clear=--clear # not what another tmux server is making, without flock
  UV_PROJECT_ENVIRONMENT=$PWD/.venv uv sync --no-dev --frozen --inexact && return
  if fits "$own"; then
    "$own" -I -c 'try: import pip
except ImportError: import ensurepip; ensurepip.bootstrap()' || return
  else
    python=
    for p in python3 python3.14 python3.13 python3.12 python3.11 python3.10; do
      fits "$p" && { python=$p; break; }
    done
    [ -n "$python" ] || { echo 'Python 3.10 or newer is missing'; return 1; }
    [ ! -h .venv ] || rm -f .venv || return # --clear would empty the folder that it leads to
    "$python" -E -m venv $clear .venv || return
  fi
  set -- -E -m pip install --no-user --disable-pip-version-check
  "$own" "$@" --require-hashes --requirement requirements.txt || return
  "$own" "$@" --no-deps --no-index --no-build-isolation --editable . || return
  "$own" -E -c 'import msgspec, pynvim' || {
    echo "what pip installed is not in .venv: see \"$PWD/$own -m pip config list\""
    return 1
  }
}

{
  exec 9<. && flock 9 2>/dev/null # a Neovim may be building here
  program=$PWD/.venv/bin/bellboard
  runs || { program=$(command -v bellboard) && runs; } || {
    program=
    if [ ! -w . ]; then
      say "cannot write to $PWD; put a working \`bellboard\` on your PATH"
    else
      say 'installing its Python packages, once'
      if build >"$log" 2>&1; then
        rm -f "$log"
        program=$PWD/.venv/bin/bellboard
      else
        say "could not be installed: see $log"
      fi
    fi
  }
  exec 9<&-
  # shellcheck disable=SC2046 # several words
  [ ! -x "$program" ] ||
    problems=$("$program" tmux --apply --quiet $(tmux show-option -gqv @bellboard-apply) 2>&1) ||
    say "$problems"
} &
