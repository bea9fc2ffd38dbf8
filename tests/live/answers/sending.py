"""Prompts from elsewhere, and interrupts: `python -m live answers sending`.

What was sent is in the model's next request, once, and as it was written; what does not fit is
refused, and leaves the terminal as it was.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any, Final
from unicodedata import normalize

from bellboard.agents.agent import Prompt
from bellboard.agents.claude.screen import read_prompt
from live.answers.elsewhere import inside
from live.answers.place import PROGRAM, Place, look, serving
from rig.agents.agent import Agent
from rig.agents.scenarios import Turn, say, shell
from rig.editor import Editor
from rig.machines.ssh import Machine
from rig.waiting import PATIENCE, eventually

LONG: Final = "".join(f"{n}: dünn 漢 😀 'q' \"d\" \\n $(x) `y` #z\n" for n in range(1200))
TEXTS: Final = {
    "one line": "plain words",
    "lines, CRLF": "one\r\ntwo\r\n\r\nthree",
    "Unicode": "é 漢 😀 👩\u200d💻 ⚠\ufe0f e\u0301",
    "quotes and shell": "'a' \"b\" $HOME `id` \\ # ; | & {x}",
    "like an option": "--help -x",
    "a name at the end": "look at @x",
    "50 kB": LONG[:50_000],
}
TWENTY: Final = "".join(f"line {n} of twenty\n" for n in range(20)) + "and then say what you see"
REFUSED: Final = {
    "the end of a paste": "a\x1b[201~b",
    "a control character": "a\x03b",
    "a shell command": "!touch x",
    "an invisible character": "right \u202eto left",
    "nothing": "\n \n",
    "too long": "x" * 70_000,
}


def sent(made: Place, sid: str, text: str, *options: str) -> dict[str, Any]:
    """Send a text with `bellboard send`; return the reply."""
    argv = [*PROGRAM, "send", sid, "-", "--json", *options]
    done = subprocess.run(argv, env=made.home.env, input=text.encode(), capture_output=True)
    reply: dict[str, Any] = json.loads(done.stdout or b'{"ok": false, "why": ""}')
    return reply if done.stdout else {"ok": False, "why": done.stderr.decode()}


def heard(made: Place, text: str) -> int:
    """Return how many requests of the main thread ended with that text."""
    wanted = squeezed(text)
    return sum(wanted in squeezed(r.said) for r in made.api.requests if r.kind == "main")


def squeezed(text: str) -> str:
    """Return a text without blanks: a CLI writes a tab as blanks, and cuts what is last."""
    return "".join(normalize("NFC", text).split())


def arrives(made: Place, cli: Agent, sid: str, text: str) -> str:
    """Send and submit a text; return what was wrong."""
    before = heard(made, text)
    reply = sent(made, sid, text, "--submit")
    if reply.get("outcome") != "taken":
        return f"{reply}\n{cli.text()}"
    eventually(lambda: heard(made, text) == before + 1, "the model's request")
    cli.becomes("idle")
    return ""


def own_words(made: Place, cli: Agent, sid: str, text: str) -> str:
    """Send a text as `arrives`; the model must not be told that others may have written it."""
    why = arrives(made, cli, sid, text)
    told = [r.said for r in made.api.requests if squeezed(text) in squeezed(r.said)]
    return why or ("the model takes it for a paste" if "<pasted_content" in told[-1] else "")


def refuses(made: Place, cli: Agent, sid: str, text: str, why: str) -> str:
    """Send a text that must be refused, and must leave its terminal as it was."""
    before = prompt_of(cli)
    reply = sent(made, sid, text, "--submit")
    if reply["ok"] or not re.search(why, reply["why"]):
        return f"{reply}\n{cli.text()}"
    return "" if prompt_of(cli) == before else f"its prompt changed: {before}\n{cli.text()}"


def prompt_of(cli: Agent) -> Prompt | None:
    return read_prompt(cli.text().splitlines())


def texts(made: Place) -> Iterator[tuple[str, str]]:
    """Send texts of all kinds to one session."""
    cli = made.start("texts")
    sid = made.session(cli)
    for name, text in TEXTS.items():
        yield name, arrives(made, cli, sid, text)
    made.tmux.run("resize-window", "-t", cli.pane.id, "-x", "90", "-y", "24")
    yield "twenty lines, as typed", own_words(made, cli, sid, TWENTY)
    yield "a long line, as typed", own_words(made, cli, sid, "word " * 190 + "end")
    for name, text in REFUSED.items():
        yield (
            f"refused: {name}",
            refuses(made, cli, sid, text, "nothing|control|longer|shell|invisible"),
        )
    reply = sent(made, sid, "kept here")
    yield "kept", "" if reply.get("outcome") == "kept" else str(reply)
    yield "refused: half-typed", refuses(made, cli, sid, "more", "its prompt holds “kept here”")
    cli.press("Enter")
    eventually(lambda: heard(made, "kept here"), "what was kept")
    cli.becomes("idle")
    made.tmux.run("copy-mode", "-t", cli.pane.id)
    yield "refused: copy mode", refuses(made, cli, sid, "more", "copy mode")
    made.tmux.run("send-keys", "-t", cli.pane.id, "-X", "cancel")
    yield "refused: another id", refuses(made, cli, "0" * 8, "more", "no session matches")
    made.tmux.run("set-option", "-g", "synchronize-panes", "on")
    yield "refused: shared keys", refuses(made, cli, sid, "more", "shares its keys")
    made.tmux.run("set-option", "-g", "synchronize-panes", "off")


def works(made: Place) -> Iterator[tuple[str, str]]:
    """Send while it works, and interrupt it."""
    cli = made.start("works")
    sid = made.session(cli)
    yield "refused: it rests", _is(stopped(made, sid), ok=False)
    sent(made, sid, "play:slow please", "--submit")
    cli.shows("word3")
    yield "queued", _is(sent(made, sid, "play:text queued", "--submit"), outcome="queued")
    yield "interrupted, goes on", _is(stopped(made, sid), outcome="taken")
    eventually(lambda: heard(made, "play:text queued"), "what was queued")
    cli.becomes("idle")
    sent(made, sid, "play:sleep please", "--submit")
    cli.shows("Bash|sleep")
    yield "interrupted", _is(stopped(made, sid), outcome="taken")
    cli.becomes("idle")


def asks(made: Place) -> Iterator[tuple[str, str]]:
    """Nothing is sent into a dialog or a menu, nor to a session that is gone."""
    made.api.scenarios["touch"] = (Turn((shell("touch x.txt"),)), say("Done."))
    cli = made.start("asks")
    sid = made.session(cli)
    cli.submit("play:touch please")
    cli.shows("Do you want")
    yield "refused: a dialog", refuses(made, cli, sid, "more", "asks something|dialog")
    cli.press("Escape")
    cli.becomes("idle")
    own = shlex.join([*PROGRAM, "send", sid, "to myself", "--submit"])
    made.api.scenarios["own"] = (Turn((shell(own),)), say("Done."))
    cli.submit("play:own please")
    cli.answer("Enter")
    result = made.next("own").results[-1]
    yield "refused: its own session", "" if "was started by" in result else result
    cli.becomes("idle")
    reply = sent(made, sid, "/model", "--submit")
    yield "a command", _is(reply, outcome="taken")
    cli.shows("Esc to")
    yield "refused: a menu", refuses(made, cli, sid, "more", "dialog or a menu")
    cli.press("Escape")
    cli.pane.shows("(?m)^.*manual mode")
    cli.exit()
    reply = sent(made, sid, "more", "--submit")
    yield "refused: gone", _is(reply, ok=False)


def everywhere(made: Place) -> Iterator[tuple[str, str]]:
    """A session in a terminal of a Neovim: from a shell, another Neovim and another machine."""
    with serving(made), ExitStack() as ending:
        editor = Editor("0.12", made.home, "a", **look())
        ending.callback(editor.close)
        editor.shows("~")
        cli = inside(made)
        sid = made.session(cli)
        yield "Neovim's terminal", arrives(made, cli, sid, LONG[:50_000])
        known = "return require('bellboard.sessions').get(...) ~= nil"
        eventually(lambda: editor.lua(known, sid), "the session in the other Neovim")
        yield "from another Neovim", typed(made, cli, editor, sid)
        yield "from its own Neovim", beside(made, cli)
        machine = Machine("here", home=made.home)
        ending.callback(machine.place.close)
        command = " ".join([*PROGRAM, "send", sid, "'over ssh'", "--submit"])
        subprocess.run([*machine.ssh, command], stdin=subprocess.DEVNULL, check=True)
        eventually(lambda: heard(made, "over ssh") == 1, "the model's request")
        yield "over ssh", ""
        cli.becomes("idle")
        yield "both ends at once", at_once(made, cli, sid)


def typed(made: Place, cli: Agent, editor: Editor, sid: str) -> str:
    """Write in the window of a Neovim: what the session takes, what it only keeps, and no more."""

    def opened(keys: str) -> None:
        editor.command(f"ClaudeSessions send {sid}")
        editor.shows("<C-s> send")
        editor.press(keys)

    opened("from Neovim<CR>please<C-s>")
    editor.hides(" to ")
    eventually(lambda: heard(made, "from Neovim\nplease") == 1, "the model's request")
    cli.becomes("idle")
    opened("kept there<Esc>gp")
    editor.hides(" to ")
    if (shown := prompt_of(cli)) is None or shown.text != "kept there":
        return f"its prompt shows {shown}"
    opened("once more<C-s>")
    editor.shows("Not sent: its prompt holds “kept there”")
    editor.press("q")
    editor.hides(" to ")
    cli.press("Enter")
    eventually(lambda: heard(made, "kept there") == 1, "what was kept")
    cli.becomes("idle")
    opened("<C-s>")
    editor.hides(" to ")
    eventually(lambda: heard(made, "once more") == 1, "what was refused before")
    cli.becomes("idle")
    return ""


def beside(made: Place, cli: Agent) -> str:
    """Write in the Neovim that shows the session, without a name; be back in its terminal."""
    cli.pane.press("C-\\", "C-n")
    cli.pane.type(":ClaudeSessions send")
    cli.pane.press("Enter")
    cli.shows("C-s> send")
    cli.pane.type("from its own Neovim")
    cli.pane.press("C-s")
    eventually(lambda: heard(made, "from its own Neovim") == 1, "the model's request")
    cli.becomes("idle")
    if "C-s> send" in cli.text():
        return cli.text()
    cli.pane.type("i")
    return ""


def at_once(made: Place, cli: Agent, sid: str) -> str:
    """Let four send at the same moment: each arrives whole, once, or is refused."""
    told = [f"number {n} of four\nsecond line {n}" for n in range(4)]
    with ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(lambda text: sent(made, sid, text, "--submit"), told))
    time.sleep(1.0)
    eventually(lambda: cli.registry().get("status") == "idle", "its end", within=PATIENCE)
    for text, reply in zip(told, replies, strict=True):
        count = sum(squeezed(text) in squeezed(e["prompt"]) for e in cli.events("UserPromptSubmit"))
        if count != int(reply["ok"]):
            return f"{count} times, {reply}"
    return "" if any(reply["ok"] for reply in replies) else f"none arrived: {replies}"


def stopped(made: Place, sid: str) -> dict[str, Any]:
    """Interrupt a session; return the reply."""
    argv = [*PROGRAM, "interrupt", sid, "--json"]
    done = subprocess.run(argv, env=made.home.env, capture_output=True, text=True, check=False)
    return dict(json.loads(done.stdout)) if done.stdout else {"ok": False, "why": done.stderr}


def _is(reply: dict[str, Any], **wanted: object) -> str:
    return "" if wanted.items() <= reply.items() else f"{reply}"


PARTS: Final[dict[str, Callable[[Place], Iterator[tuple[str, str]]]]] = {
    each.__name__: each for each in (texts, works, asks, everywhere)
}
