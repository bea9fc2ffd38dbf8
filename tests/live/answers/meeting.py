"""Two answers at the same moment, many times: `python -m live answers meeting`.

One of them counts, the reply says which, and neither a process nor a message is left.
"""

from __future__ import annotations

import random
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Final

from bellboard.screen.prompt import SOON
from live.answers.leaving import hooks
from live.answers.place import PROGRAM, Place, answers_on, look, place
from rig import warm
from rig.agents.agent import Agent, spoken
from rig.agents.scenarios import Turn, say, shell
from rig.editor import Editor
from rig.tmux import Pane
from rig.waiting import PATIENCE, eventually, rest

TIMES: Final = 50
SPREAD: Final = 0.15  # seconds between the two at most: about what a key takes to count
GIVE: Final = """
local id, answer = ...
_G.reply = nil
require('bellboard').answer(id, answer, function(reply) _G.reply = reply end)
"""
REPLY: Final = "return _G.reply"
KNOWN: Final = "return require('bellboard.sessions').get(...) ~= nil"
DENIED: Final = "Not that one"
NO: Final = {"choice": "deny", "message": DENIED}
LOST: Final = "answered by|answered in the terminal first"  # what those who come second are told
STOPPED: Final = "you stopped it in the terminal"  # what was allowed, before the tool was done
POPUP: Final = [
    *("sh", "-c", 'while :; do "$@"; sleep 0.1; done', "sh"),
    *(*PROGRAM, "answer", "--popup"),
]

#: Somebody who answers: the action, and the outcome that is reported back.
Way = tuple[Callable[[], object], Callable[[], str]]


class Meeting:
    """A session that asks again and again, and what answers it.

    The first of a pair says yes; the second says no, which the user does with Esc.
    """

    def __init__(self, made: Place, cli: Agent, editors: list[Editor], popup: Pane | None) -> None:
        self.made, self.cli, self.editors, self.popup = made, cli, editors, popup
        self.sid = made.session(cli)
        self.counted: Counter[str] = Counter()

    def round(self, step: int, pair: str) -> None:
        """Let two answer at once; check that one counted, and that the other says which."""
        self.made.api.scenarios[f"r{step}"] = (Turn((shell(f"touch x{step}.txt"),)), say("Done."))
        if "Enter to continue" in self.cli.text():  # a second Esc at rest opens a menu
            self.cli.press("Escape")
        self.cli.press("C-u")
        self.cli.submit(f"play:r{step} please")
        digest = eventually(self.digest, "a request")
        yes, no = PAIRS[pair]
        ways = [WAYS[name](self, step, n, digest) for n, name in enumerate((yes, no))]
        wait = random.uniform(-SPREAD, SPREAD)
        first, second = ways if wait > 0 else ways[::-1]
        first[0]()
        rest(abs(wait))
        second[0]()
        said = [eventually(reply, f"a reply to {pair}") for _, reply in ways]
        eventually(lambda: spoken(self.cli.text()) == "idle", "the end of the turn")
        eventually(lambda: not hooks(self.cli), "no hook that waits")
        self.check(step, (yes, no), said)

    def check(self, step: int, names: Sequence[str], said: list[str]) -> None:
        is_yes = (self.cli.launch.cwd / f"x{step}.txt").exists()
        won, lost = (0, 1) if is_yes else (1, 0)
        told = shape(said[won]), shape(said[lost])
        self.counted[f"{names[won]} counted: {told[0]}; {names[lost]}: {told[1]}"] += 1
        assert not re.search(LOST, said[won]), (is_yes, said)
        assert names[lost] == "user" or re.search(f"{LOST}|{STOPPED}", said[lost]), (is_yes, said)
        if "user" not in names:
            assert (DENIED in self.made.next(f"r{step}").results[-1]) != is_yes, said

    def digest(self) -> str:
        said = self.made.asked(self.cli)
        return str(said["digest"]) if said["way"] == "hook" else ""


def user(meeting: Meeting, step: int, n: int, digest: str) -> Way:
    """Answer at the terminal of the session, where nobody is told anything."""
    return lambda: meeting.cli.press("Escape"), lambda: "-"


def nvim(meeting: Meeting, step: int, n: int, digest: str) -> Way:
    """Answer in a Neovim, each time one of two."""
    editor, sid = meeting.editors[n], meeting.sid
    answer = {**NO, "digest": digest} if n else {"choice": "allow", "digest": digest}

    def said() -> str:
        reply = editor.lua(REPLY)
        return str(reply.get("why") or reply["text"]) if reply else ""

    return lambda: editor.nvim.exec_lua(GIVE, sid, answer, async_=True), said


def shell_command(meeting: Meeting, step: int, n: int, digest: str) -> Way:
    """Answer with a command."""
    given = ("deny", "--message", DENIED) if n else ("allow",)
    argv = ["-m", "bellboard", "answer", meeting.sid, *given, "--digest", digest]
    out = tempfile.TemporaryFile()  # noqa: SIM115 - it is read after this
    started: list[warm.Program] = []

    def act() -> None:
        started.append(warm.Program(argv, env=meeting.made.home.env, stdout=out, stderr=out))

    def said() -> str:
        started[0].wait(PATIENCE)
        out.seek(0)
        return out.read().decode().strip()

    return act, said


def popup(meeting: Meeting, step: int, n: int, digest: str) -> Way:
    """Answer in a popup that is always open, and notes what became of its last answer."""
    assert meeting.popup is not None
    pane = meeting.popup
    pane.shows(rf"(?s)touch x{step}\.txt.*go terminal")
    rest(SOON + 0.2)

    def said() -> str:
        """Return its last note, once it has nothing to ask: it shows the last three."""
        rows = pane.text().splitlines()
        over = [n for n, row in enumerate(rows) if "No more requests" in row]
        return rows[over[0] - 1].strip() if over else ""

    return lambda: pane.press("A"), said


WAYS: Final[dict[str, Callable[[Meeting, int, int, str], Way]]] = {
    "user": user,
    "Neovim": nvim,
    "shell": shell_command,
    "popup": popup,
}
#: Who says yes, and who says no.
PAIRS: Final = {
    "editors": ("Neovim", "Neovim"),
    "user": ("Neovim", "user"),
    "popup": ("popup", "user"),
    "shell": ("shell", "Neovim"),
}


def shape(text: str) -> str:
    return re.sub(r"\d+(\.\d+)?", "N", text)


def meet(version: str, times: int, pair: str) -> None:
    with place(version) as made, ExitStack() as ending:
        editors: list[Editor] = []
        how = {**look(), "ui": False}
        for name in ("a", "b"):
            editors.append(Editor("0.12", made.home, name, **how))
            ending.callback(editors[-1].close)
        answers_on(made)
        cli = made.start("session")
        popup = made.tmux.open(POPUP, session="popup", columns=200) if pair == "popup" else None
        meeting = Meeting(made, cli, editors, popup)
        for editor in editors:
            eventually(lambda e=editor: e.lua(KNOWN, meeting.sid), "the session")
        for step in range(times):
            meeting.round(step, pair)
        screen = cli.text()
        assert not re.search("hook (error|failed|timed)", screen, re.IGNORECASE), screen
        print(f"{version}: {times} times, {' and '.join(PAIRS[pair])}:")
        for what, count in meeting.counted.most_common():
            print(f"  {count:3} {what}", flush=True)
