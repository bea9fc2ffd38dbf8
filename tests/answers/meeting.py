"""Two answers at the same moment, many times: `python -m answers.meeting [editors|user]`.

One of them counts, the reply says which, and neither a process nor a message is left.
"""

from __future__ import annotations

import argparse
import random
import re
from collections import Counter
from functools import partial
from typing import Any, Final

from answers.leaving import hooks
from answers.place import NEWEST, Place, answers_on, look, place
from rig import claude_code
from rig.agent import Agent, spoken
from rig.editor import Editor
from rig.scenarios import Turn, say, shell
from rig.waiting import eventually, rest

TIMES: Final = 50
SPREAD: Final = 0.15  # seconds between the two at most: about what a key takes to count
GIVE: Final = """
local id, answer = ...
_G.reply = nil
require('bellboard').answer(id, answer, function(reply) _G.reply = reply end)
"""
REPLY: Final = "return _G.reply"
KNOWN: Final = "return require('bellboard.state.sessions').get(...) ~= nil"
DENIED: Final = "Not that one"


class Meeting:
    """A session that asks again and again, and two Neovims."""

    def __init__(self, made: Place, cli: Agent, editors: list[Editor]) -> None:
        self.made, self.cli, self.editors = made, cli, editors
        self.sid = made.session(cli)
        self.counted: Counter[str] = Counter()

    def round(self, step: int, by_user: bool) -> None:
        """Let two answer at once; check that one counted, and that its reply says so."""
        self.made.api.scenarios[f"r{step}"] = (Turn((shell(f"touch x{step}.txt"),)), say("Done."))
        self.cli.press("C-u")
        self.cli.submit(f"play:r{step} please")
        digest = eventually(self.digest, "a request")
        other = partial(self.cli.press, "Escape")
        if not by_user:
            other = partial(self.give, 1, {"choice": "deny", "message": DENIED, "digest": digest})
        acts = [partial(self.give, 0, {"choice": "allow", "digest": digest}), other]
        wait = random.uniform(-SPREAD, SPREAD)
        first, second = acts if wait > 0 else acts[::-1]
        first()
        rest(abs(wait))
        second()
        asked = self.editors[: 1 if by_user else 2]
        replies = [eventually(lambda e=e: e.lua(REPLY), "a reply") for e in asked]
        eventually(lambda: spoken(self.cli.text()) == "idle", "the end of the turn")
        eventually(lambda: not hooks(self.cli), "no hook that waits")
        if by_user:
            self.of_user(step, replies[0])
        else:
            self.of_editors(step, replies)

    def of_editors(self, step: int, replies: list[dict[str, Any]]) -> None:
        won = [n for n, reply in enumerate(replies) if reply["ok"]]
        assert len(won) == 1, replies
        result = self.made.next(f"r{step}").results[-1]
        assert (DENIED in result) == (won == [1]), (result, replies)
        said = shape(replies[won[0]]["text"]), shape(replies[1 - won[0]]["why"])
        self.counted[f"Neovim {'AB'[won[0]]}: {said[0]}; the other: {said[1]}"] += 1

    def of_user(self, step: int, reply: dict[str, Any]) -> None:
        """The user says no with Esc, which ends the turn; Neovim says yes."""
        is_ours = (self.cli.launch.cwd / f"x{step}.txt").exists()
        said = reply.get("text") or reply["why"]
        self.counted[f"{'Neovim' if is_ours else 'the user'} counted: {shape(said)}"] += 1
        wrong = ("took" in said and not is_ours) or ("terminal first" in said and is_ours)
        assert not wrong, (is_ours, reply)

    def digest(self) -> str:
        said = self.made.asked(self.cli)
        return str(said["digest"]) if said["way"] == "hook" else ""

    def give(self, which: int, answer: dict[str, Any]) -> None:
        self.editors[which].nvim.exec_lua(GIVE, self.sid, answer, async_=True)


def shape(text: str) -> str:
    return re.sub(r"\d+(\.\d+)?", "N", text)


def meet(version: str, times: int, by_user: bool) -> None:
    with place(version) as made:
        editors: list[Editor] = []
        try:
            how = {**look(), "ui": False}
            editors.extend(Editor("0.12", made.home, name, **how) for name in ("a", "b"))
            answers_on(made)
            cli = made.start("session")
            meeting = Meeting(made, cli, editors)
            for editor in editors:
                eventually(lambda e=editor: e.lua(KNOWN, meeting.sid), "the session")
            for step in range(times):
                meeting.round(step, by_user)
            screen = cli.text()
            assert not re.search("hook (error|failed|timed)", screen, re.IGNORECASE), screen
            print(
                f"{version}: {times} times, {'Neovim and the user' if by_user else 'two Neovims'}:"
            )
            for what, count in meeting.counted.most_common():
                print(f"  {count:3} {what}", flush=True)
        finally:
            for editor in editors:
                editor.close()


if __name__ == "__main__":
    given = argparse.ArgumentParser(prog="python -m answers.meeting")
    given.add_argument("who", nargs="*", choices=["editors", "user", []])
    given.add_argument("--times", type=int, default=TIMES)
    given.add_argument("--cli", default=NEWEST, help="that version, or `newest`")
    args = given.parse_args()
    for who in args.who or ["editors", "user"]:
        meet(claude_code.resolved(args.cli), args.times, who == "user")
