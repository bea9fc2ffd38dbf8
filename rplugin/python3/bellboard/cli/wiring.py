"""The tmux configuration: print it for a tmux.conf, apply it to a running server, or remove it.

It consists of hooks that report who looks at which pane, four key bindings, and an option that
hosts update, which the status line can show.  Each hook has its own index in the hook's array and
each key must be free, so nothing of the user's is ever changed.  A hook runs `hooks/emit` only if
somebody looks at the pane, and its formats contain no text that a program can choose.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from ..agents.installing import hook_record
from ..core.untrusted import decimal
from ..hosting.tmux_status import OPTION
from ..system.files import program
from ..system.tmux import BACK, Tmux, argument
from .home import Problem

FIRST: Final = 2355  # first index of a hook; spells BELL on a phone keypad
WIDE: Final = 120  # columns with room for our text, the user's own, and a few windows
NARROW: Final = 19  # cells in narrower clients, as tmux draws status-right before the windows
TEXT: Final = f"#{{?#{{e|<:#{{client_width}},{WIDE}}},#{{=/{NARROW}/…:{OPTION}}},#{{{OPTION}}}}}"
SHOWN: Final = f"{TEXT} "  # prepended to status-right, after the command that keeps it true
#: Updates the text while no host does, whenever tmux draws its status line.  Without the empty
#: line, tmux would show the command itself if it took more than a second.
KEEPER: Final = (
    'echo; cd "$0/hosts" && for p in [0-9]*; do case $(ps -o stat= -p "$p" 2>/dev/null) in '
    '(""|T*|Z*) ;; (*) exit ;; esac; done; exec "$@" >/dev/null 2>&1'
)
ROOM: Final = 80  # cells for status-right; tmux's default is 40
BEFORE: Final = "@bellboard-length"  # the option that stores the previous length

#: Hook → its report (`decoding.of_tmux`) and the clients of the report.
HOOKS: Final = {
    "session-window-changed": ("looks", "window_active_clients_list"),
    "window-pane-changed": ("looks", "window_active_clients_list"),
    "client-session-changed": ("looks", "hook_client"),
    "client-focus-in": ("focus", "hook_client"),  # these two from tmux 3.3, with focus-events on
    "client-focus-out": ("away", "hook_client"),
    "client-detached": ("gone", "hook_client"),
}
#: A no-op that marks our shell commands, or the option that only our key reads.
_OURS: Final = re.compile(rf": bellboard;|{BACK}")
_PREFIXED: Final = ("list-keys", "-T", "prefix")


class Wiring:
    """The tmux commands of this installation, for a state folder and a key for each verb."""

    def __init__(self, home: Path, keys: Mapping[str, str], chosen: Sequence[str] = ()) -> None:
        self._chosen = chosen  # arguments that choose these keys
        env = ("env", f"BELLBOARD_HOME={home}")  # the server's environment may be outdated
        self._emit = str(hook_record.script(home))
        keeps = _words("/bin/sh", "-c", KEEPER, str(home), *env, *program(), "status", "--tmux")
        #: Prepended to status-right.
        self.shown = f"#(: bellboard; exec {keeps.replace('%', '%%')}){SHOWN}"
        self._say = _words(*env, "/bin/sh", self._emit)
        self._command = _words(*env, *program())
        self.keys = {
            keys["pick"]: ("pick a session", self._popup("pick", "60%")),
            keys["answer"]: ("answer what is asked", self._popup("answer --popup", "80%")),
            keys["next"]: ("go to the next session that needs you", self._next()),
            keys["back"]: ("go back to where you were before", _return()),
        }

    def hook(self, name: str) -> str:
        """Return the command of a hook."""
        how, clients = HOOKS[name]
        # `test`: otherwise tmux shows an error once the script is gone.  It must run in any shell:
        # newer versions of tmux use the user's own.  Whether the script's mode lets it run does not
        # matter.
        shell = (
            f": bellboard; test -r {_words(self._emit)} && "
            f"exec {self._say} view #{{pid}} tmux {how} #{{pane_id}} #{{q:{clients}}}; exit 0"
        )
        run = f"run-shell -b {quoted(shell)}"
        return f"if-shell -F {quoted(f'#{{{clients}}}')} {quoted(run)}"

    def _popup(self, what: str, height: str) -> list[str]:
        shell = f": bellboard; exec {self._command} {what} --client #{{q:client_name}}"
        return ["run-shell", "-C", f"display-popup -E -w 90% -h {height} {quoted(shell)}"]

    def _next(self) -> list[str]:
        shell = f": bellboard; exec {self._command} goto --next --client #{{q:client_name}}"
        return ["run-shell", "-b", shell]

    def line(self, status: bool = False) -> str:
        """Return the tmux.conf line that applies all this, with the status if wanted."""
        how = _words("--apply", "--quiet", *["--status"] * status, *self._chosen)
        return f"run-shell -b {quoted(f': bellboard; exec {self._command} tmux {how}')}"

    def printed(self) -> str:
        """Return the configuration as lines of a tmux.conf."""
        hooks = [f"set -gq '{name}[{FIRST}]' {quoted(self.hook(name))}" for name in HOOKS]
        keys = [
            f"bind -N {quoted(f'bellboard: {text}')} {quoted(key)} {' '.join(map(quoted, command))}"
            for key, (text, command) in self.keys.items()
        ]
        return f"""\
# For ~/.tmux.conf; `bellboard tmux --apply` does the same in a running server.
{self.line()}

# Show the status in the status line, with enough room:
set -ga status-right {quoted(f" {self.shown.rstrip()}")}
set -g status-right-length {ROOM}

# Lets tmux report when a terminal loses the focus:
set -g focus-events on

# The first line sets these; `bellboard tmux --remove` removes them:
""" + "\n".join(f"#   {line}" for line in [*hooks, *keys])


def _return() -> list[str]:
    """Return the command that takes a client back to the pane before its jumps, once per jump."""
    ours = f"{{s| #{{client_pid}}=[^ ]*||:{BACK}}}"
    forget = f"set-option -gF {BACK} '##{ours}'"
    pane = rf"#{{s|^.* #{{client_pid}}=(%[0-9]+).*$|\\1|:{BACK}}}"
    go = f"{forget} ; switch-client -c '#{{client_name}}' -t '{pane}'"
    no = "display-message 'bellboard: no jump to go back from'"
    return ["if-shell", "-F", f"#{{m:* #{{client_pid}}=*,#{{{BACK}}}}}", f'run-shell -C "{go}"', no]


def apply_wiring(tmux: Tmux, wiring: Wiring) -> list[str]:
    """Apply the configuration; return the options and keys that could not be set."""
    problems = []
    for name in HOOKS:
        taken = _hooks(tmux, name)
        ours = [n for n, command in taken.items() if _OURS.search(command)]
        free = next(n for n in range(FIRST, FIRST + len(taken) + 1) if n not in taken)
        entry = f"{name}[{min(ours, default=free)}]"
        if tmux.ask("set-option", "-gq", entry, wiring.hook(name)) is None:
            problems.append(f"{name}: {tmux.why}")
    for key, (text, command) in wiring.keys.items():
        # tmux accepts the key as the user typed it, but lists its own name for it.
        bound = "".join(_bindings(_answer(tmux, *_PREFIXED, argument(key))).values())
        if bound and not _OURS.search(bound):
            problems.append(f"prefix {key}: already bound: {bound}")
        elif tmux.ask("bind-key", "-N", f"bellboard: {text}", argument(key), *command) is None:
            problems.append(f"prefix {key}: {tmux.why}")
    return problems


def is_wired(tmux: Tmux) -> bool:
    """Return whether a server has our hooks or options."""
    try:
        ours = (*(_hooks(tmux, name).values() for name in HOOKS), _keys(tmux).values())
    except Problem:  # the server does not respond
        return False
    return any(_OURS.search(command) for commands in ours for command in commands)


def shows(tmux: Tmux) -> bool:
    """Return whether the status line contains the status."""
    options = (tmux.ask("show-options", "-g") or "").splitlines()
    return any(OPTION in option for option in options if not option.startswith(f"{OPTION} "))


def show_status(tmux: Tmux, shown: str) -> str:
    """Put the status, as `Wiring.shown`, into the status line; return why that failed, or ""."""
    right = tmux.ask("show-options", "-gv", "status-right")
    length = decimal((tmux.ask("show-options", "-gv", "status-right-length") or "").strip())
    if right is None or length is None:
        return tmux.why
    made = tmux.ask("set-option", "-g", "status-right", argument(f"{shown}{right[:-1]}"))
    if made is not None and length < ROOM:
        tmux.ask("set-option", "-g", BEFORE, str(length))
        made = tmux.ask("set-option", "-g", "status-right-length", str(ROOM))
    return tmux.why if made is None else ""


def remove_wiring(tmux: Tmux) -> None:
    """Remove all our hooks, keys and options, whichever installation set them."""
    for name in HOOKS:
        for n, command in _hooks(tmux, name).items():
            if _OURS.search(command):
                _answer(tmux, "set-option", "-gqu", f"{name}[{n}]")
    for key, command in _keys(tmux).items():
        if _OURS.search(command):
            _answer(tmux, "unbind-key", argument(key))
    _answer(tmux, "set-option", "-gqu", BACK)
    right = _answer(tmux, "show-options", "-gv", "status-right")
    keeper, ours, theirs = right.partition(SHOWN)
    if ours and (not keeper or keeper.startswith("#(: bellboard;")):
        theirs = argument(theirs[:-1])
        _answer(tmux, "set-option", "-g", "status-right", theirs)
    if before := _answer(tmux, "show-options", "-gqv", BEFORE).strip():
        if _answer(tmux, "show-options", "-gv", "status-right-length").strip() == str(ROOM):
            _answer(tmux, "set-option", "-g", "status-right-length", before)
        _answer(tmux, "set-option", "-gqu", BEFORE)
    _answer(tmux, "set-option", "-gqu", OPTION)


def quoted(text: str) -> str:
    """Quote a word of a tmux command."""
    if re.fullmatch(r"[\w/.:@%+-]+", text, re.ASCII):
        return text
    if "'" not in text:
        return f"'{text}'"
    return '"' + re.sub(r'(["\\$])', r"\\\1", text) + '"'


def _words(*words: str) -> str:
    """Quote words for a shell, in a text that tmux expands as a format."""
    return shlex.join(words).replace("#", "##")


def _hooks(tmux: Tmux, name: str) -> dict[int, str]:
    """Return the commands of a hook by index; none if this tmux does not know it."""
    output = _answer(tmux, "show-hooks", "-g", name)
    return {int(n): command for n, command in re.findall(r"^[\w-]+\[(\d+)\] (.*)$", output, re.M)}


def _answer(tmux: Tmux, *command: str) -> str:
    """Return the output of a command, or "" if it failed; raise Problem without an answer."""
    output = tmux.ask(*command)
    if tmux.is_silent:  # its options are unknown
        raise Problem(f"{tmux.why}; it may be busy: try again")
    return output or ""


def _keys(tmux: Tmux) -> dict[str, str]:
    """Return the key bindings after the prefix."""
    return _bindings(_answer(tmux, *_PREFIXED))


def _bindings(listed: str) -> dict[str, str]:
    """Return the commands of listed keys; tmux lists a key as it would read it in a tmux.conf."""
    found = re.findall(r"^bind-key +(?:-r +)?-T +prefix +(\S+) +(.*)$", listed, re.M)
    return {_plain(key): command for key, command in found}


def _plain(key: str) -> str:
    """Return the name of a key without quotes, as in `\\%`, `"M-'"` and `'M-"'`."""
    if len(key) > 2 and key[0] == key[-1] and key[0] in "\"'":
        key = key[1:-1]
    return re.sub(r"\\(.)", r"\1", key)
