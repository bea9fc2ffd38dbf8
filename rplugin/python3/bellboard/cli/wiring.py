"""What bellboard sets in a tmux server: printed for a tmux.conf, set while it runs, taken out.

Hooks that tell who looks at which pane, two keys, and an option that hosts keep true.  Each hook
takes a place of its own among those of its name, each key one that is free: what is not ours is
never touched.  A hook runs nothing where nobody looks, else `hooks/emit`; and none of its formats
holds a text that a program could have chosen, as titles and names are.
"""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import Final

from ..agents.claude_code.installer import installed
from ..hosting.bars import OPTION
from ..system.tmux import Tmux

FIRST: Final = 2355  # place of a hook, B-E-L-L on the keys of a telephone
PICK: Final = "b"
NEXT: Final = "B"

#: Hook → what it tells (`evidence.of_tmux`) of which clients.
HOOKS: Final = {
    "session-window-changed": ("looks", "window_active_clients_list"),
    "window-pane-changed": ("looks", "window_active_clients_list"),
    "client-session-changed": ("looks", "hook_client"),
    "client-focus-in": ("focus", "hook_client"),  # these two from tmux 3.3, with focus-events on
    "client-focus-out": ("away", "hook_client"),
    "client-detached": ("gone", "hook_client"),
}
_HERE: Final = Path(__file__).resolve().parents[1]
_OURS: Final = re.compile(r": bellboard;")  # begins what a shell runs for us; does nothing


class Wiring:
    """The tmux commands of this installation, for one home and two keys."""

    def __init__(self, home: Path, pick: str = PICK, next: str = NEXT) -> None:
        env = ("env", f"BELLBOARD_HOME={home}")  # the server's environment may be an older one
        self._emit = str(installed.script(home))
        self._say = _words(*env, self._emit)
        self._command = _words(*env, sys.executable, str(_HERE / "__main__.py"))
        self.keys = {
            pick: ("pick a session", self._pick()),
            next: ("go to the next session that needs you", self._next()),
        }

    def hook(self, name: str) -> str:
        """The command of that hook."""
        how, clients = HOOKS[name]
        # `test`: tmux would show that a command failed, once it is gone.  The shell may be any:
        # newer tmuxes take the user's own.
        shell = (
            f": bellboard; test -x {_words(self._emit)} && "
            f"exec {self._say} view #{{pid}} tmux {how} #{{pane_id}} #{{q:{clients}}}; exit 0"
        )
        run = f"run-shell -b {quoted(shell)}"
        return f"if-shell -F {quoted(f'#{{{clients}}}')} {quoted(run)}"

    def _pick(self) -> list[str]:
        shell = f": bellboard; exec {self._command} pick --client #{{q:client_name}}"
        return ["run-shell", "-C", f"display-popup -E -w 90% -h 60% {quoted(shell)}"]

    def _next(self) -> list[str]:
        shell = f": bellboard; exec {self._command} goto --next --client #{{q:client_name}}"
        return ["run-shell", "-b", shell]

    def printed(self) -> str:
        """All of it, as lines of a tmux.conf."""
        shell = f": bellboard; exec {self._command} tmux --apply"
        hooks = [f"set -gq '{name}[{FIRST}]' {quoted(self.hook(name))}" for name in HOOKS]
        keys = [
            f"bind -N {quoted(f'bellboard: {text}')} {key} {' '.join(map(quoted, command))}"
            for key, (text, command) in self.keys.items()
        ]
        return f"""\
# For ~/.tmux.conf; `bellboard tmux --apply` does the same in a server that runs already.
run-shell -b {quoted(shell)}

# The status, where you like it, and with room:
set -ga status-right ' #{{{OPTION}}}'
set -g status-right-length 80

# A terminal that has lost the focus is then known to show its pane to nobody:
set -g focus-events on

# The first line sets these; `bellboard tmux --remove` takes them out again:
""" + "\n".join(f"#   {line}" for line in [*hooks, *keys])


def apply(tmux: Tmux, wiring: Wiring) -> list[str]:
    """Set what is not set yet; in words what could not be."""
    problems = []
    for name in HOOKS:
        taken = _hooks(tmux, name)
        ours = [place for place, command in taken.items() if _OURS.search(command)]
        free = next(n for n in range(FIRST, FIRST + len(taken) + 1) if n not in taken)
        place = f"{name}[{min(ours, default=free)}]"
        if tmux.ask("set-option", "-gq", place, wiring.hook(name)) is None:
            problems.append(f"{name}: {tmux.why}")
    bound = _keys(tmux)
    for key, (text, command) in wiring.keys.items():
        if key in bound and not _OURS.search(bound[key]):
            problems.append(f"prefix {key} has a meaning already: {bound[key]}")
        elif tmux.ask("bind-key", "-N", f"bellboard: {text}", key, *command) is None:
            problems.append(f"prefix {key}: {tmux.why}")
    return problems


def remove(tmux: Tmux) -> None:
    """Take out what is ours, wherever it is and whichever installation has set it."""
    for name in HOOKS:
        for place, command in _hooks(tmux, name).items():
            if _OURS.search(command):
                tmux.ask("set-option", "-gqu", f"{name}[{place}]")
    for key, command in _keys(tmux).items():
        if _OURS.search(command):
            tmux.ask("unbind-key", key)
    tmux.ask("set-option", "-gqu", OPTION)


def quoted(text: str) -> str:
    """One word of a tmux command."""
    if re.fullmatch(r"[\w/.:@%+-]+", text, re.ASCII):
        return text
    if "'" not in text:
        return f"'{text}'"
    return '"' + re.sub(r'(["\\$])', r"\\\1", text) + '"'


def _words(*words: str) -> str:
    """Words of a shell, in a text that tmux takes for a format."""
    return shlex.join(words).replace("#", "##")


def _hooks(tmux: Tmux, name: str) -> dict[int, str]:
    """What is hooked there, by place; nothing in a tmux that does not know that hook."""
    told = tmux.ask("show-hooks", "-g", name) or ""
    return {int(n): command for n, command in re.findall(r"^[\w-]+\[(\d+)\] (.*)$", told, re.M)}


def _keys(tmux: Tmux) -> dict[str, str]:
    """What the keys after the prefix do."""
    told = tmux.ask("list-keys", "-T", "prefix") or ""
    return dict(re.findall(r"^bind-key +(?:-r +)?-T +prefix +(\S+) +(.*)$", told, re.M))
