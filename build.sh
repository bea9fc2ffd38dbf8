#!/bin/sh
# Installs the Python packages into .venv in this folder: with uv, else with venv and pip.
# usage: build.sh [dev]                                          dev: also what the tests need
# Run by build.lua, `:ClaudeSessions build`, bellboard.tmux and make. Its last line says what became
# of it and what to do; .build.log has the output of uv and pip, if they failed. `.venv/.ready` is
# there only while .venv is whole: without it, nothing runs what is in there.
cd "$(dirname "$0")" || exit 1
own=.venv/bin/python ready=.venv/.ready log=.build.log dev=${1-} why=
export NO_COLOR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 UV_PROJECT_ENVIRONMENT="$PWD/.venv"
trap '' PIPE # whoever has asked for it may be gone before the end

# Every Python runs with -E: what is on PYTHONPATH does not count as installed.
fits() { "$1" -E -c 'import sys; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1; }
works() { "$own" -E -c 'import msgspec, psutil, pynvim, watchfiles'; }

# The last error of a program, else its last line: after the errors, pip adds lines about itself.
reason() {
  LC_ALL=C awk '/^\$ / { e = "" } /^ *(ERROR|error): / { e = $0 } NF { l = $0 }
    END { print e ? e : l }' "$log" | LC_ALL=C sed 's/^[^A-Za-z"]*//; s/^ERROR: *//; s/^error: *//'
}

# How to get a Python with venv. uv brings a Python of its own; the python3 of dnf may be 3.9.
remedy() {
  for way in 'apt-get:apt install python3-venv' 'dnf:dnf install python3.12' \
    'pacman:pacman -S python' 'apk:apk add python3' 'brew:brew install python'; do
    command -v "${way%%:*}" >/dev/null && printf '%s, or ' "${way#*:}" && break
  done
  echo 'install uv'
}

with_uv() {
  fits "$own" || uv venv .venv || return
  if [ -n "$dev" ]; then uv sync --frozen; else locked uv pip install --python "$own"; fi
}

with_pip() {
  for python in "$own" python3 python3.14 python3.13 python3.12 python3.11 python3.10 ''; do
    fits "$python" && break
  done
  [ -n "$python" ] || { echo "Python 3.10 or newer is missing; $(remedy)" && return 1; }
  [ "$python" = "$own" ] || "$python" -E -m venv .venv ||
    { echo "$python cannot make a venv; $(remedy)" && return 1; }
  # uv makes environments without pip. What ensurepip runs is isolated only by -I.
  "$own" -I -c 'import pip' 2>/dev/null || "$own" -I -m ensurepip || return
  set -- "$own" -E -m pip install --no-user
  if [ -n "$dev" ]; then # the first pip that knows --group
    "$@" --upgrade 'pip>=25.1' && "$@" --group dev --editable . || return
  else
    locked "$@" || return
  fi
  works || { echo "what pip installed is not in .venv: see \"$PWD/$own -m pip config list\"" && return 1; }
}

locked() { # all that is fetched has a hash there: also what builds the package
  "$@" --require-hashes --requirement requirements.txt &&
    "$@" --no-deps --no-index --no-build-isolation --editable .
}

lock() { # macOS has no flock(1)
  if command -v flock >/dev/null; then flock "$@" 9; else
    perl -e 'open F, "<&=9"; exit !flock F, @ARGV ? 6 : 2' -- "$@"
  fi
}

[ -w . ] || { echo "cannot write to $PWD; use a Python of your own: :help bellboard-install" && exit 1; }
exec 9<. # the kernel drops the lock with the last process that has this open
lock -n || [ $? != 1 ] || {
  echo 'another one is installing the Python packages …'
  lock && [ -z "$dev" ] && [ -e "$ready" ] && echo 'Python packages installed' && exit
}
was=$(ls "$ready" 2>/dev/null)
rm -f "$ready" "$log"
fits "$own" || rm -rf .venv # of a link to elsewhere, only the link; else what is in there stays
for way in uv pip; do
  [ "$way" = pip ] || command -v uv >/dev/null || continue
  echo "installing Python packages with $way …"
  echo "\$ $way" >>"$log"
  if { if [ "$way" = uv ]; then with_uv; else with_pip; fi && works; } >>"$log" 2>&1; then
    rm -f "$log" && : >"$ready"
    echo "Python packages installed with $way$([ ! -t 1 ] || echo '; restart the Neovims that run')"
    exit
  fi
  why="$why${why:+; }$way failed: $(reason)"
done
{ [ -z "$was" ] || ! works || : >"$ready"; } 2>/dev/null # the old ones are whole
! grep -Eqi 'network|connect|resol|fetch|timed out|no matching dist' "$log" ||
  why="$why. Is there a network? UV_INDEX_URL and PIP_INDEX_URL name a mirror"
echo "$why. All of it is in $PWD/$log"
exit 1
