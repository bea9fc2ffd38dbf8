"""The words of the steps in `scenes.txt`: `prompt text`, `press Escape`, `says idle`."""

from __future__ import annotations

import json
import re
import shlex
import signal
from collections.abc import Callable
from typing import Any, Final

import psutil

from live.claude import ClaudeStage
from live.odd import ODD
from live.stage import PRESS, Stage
from rig.agents.agent import DIALOG, elicitation
from rig.waiting import eventually
from rig.waiting import rest as pause

Anywhere = Stage[Any]
Word = Callable[[Any, str], None]
VARIABLE: Final = re.compile("[A-Z_]+=")


def start(stage: Anywhere, text: str) -> None:
    """start [shell] [beside] [untrusted] [unready] [mcp] [NAME=VALUE] [ARGUMENT]: start a CLI.

    As a job of a shell, or of the shell of the one in use; in a folder that is not trusted; without
    waiting for its prompt; with an MCP server that has a form (mcp-asks: whose tool asks first).
    """
    options: dict[str, object] = {}
    args: list[str] = []
    for word in shlex.split(text):
        match word:
            case "shell":
                options["shell"] = True
            case "beside":
                options["beside"] = stage.cli
            case "untrusted":
                options["trusted"] = False
            case "unready":
                options["ready"] = False
            case "mcp":
                args += elicitation(stage.home)
            case "mcp-asks":
                args += elicitation(stage.home)[:3]
            case _ if VARIABLE.match(word):
                name, _, value = word.partition("=")
                options["env"] = {**options.get("env", {}), name: value}  # type: ignore[dict-item]
            case _:
                args += stage.meant(word)
    stage.start(*args, **options)


def after(stage: ClaudeStage, text: str) -> None:
    """after a turn: start a CLI, and wait until its first turn is over."""
    assert text == "a turn", text
    stage.rests_after_a_turn()


def prompt(stage: Anywhere, text: str) -> None:
    """prompt SCENARIO: enter a prompt; `rig/agents/scenarios.py` has what the model does."""
    stage.prompt(text)


def enter(stage: Anywhere, text: str) -> None:
    """enter TEXT: type a text or a command, and press Enter."""
    stage.enter(" ".join(part for word in text.split(" ") for part in stage.meant(word)))


def type_(stage: Anywhere, text: str) -> None:
    r"""type TEXT: type a text; `\n` is Enter."""
    stage.type(text.replace("\\n", "\n"))


def type_until(stage: ClaudeStage, text: str) -> None:
    """type-until HOOK: TEXT: type, and go on until that hook: meanwhile, dialogs are held back."""
    event, _, typed = text.partition(": ")
    stage.types_until(event, typed)


def press(stage: Anywhere, text: str) -> None:
    """press KEY…: press keys by tmux's names.

    LAST is the number of the last choice; ALLOW, ALWAYS, DENY and STOP are the CLI's own keys.
    """
    stage.press(*_keys(stage, text))


def answer(stage: ClaudeStage, text: str) -> None:
    """answer KEY…[: DIALOG]: press keys in a dialog, which shows that, until it is gone."""
    keys, _, dialog = text.partition(": ")
    stage.cli.answer(*_keys(stage, keys), dialog=dialog or DIALOG)


def _keys(stage: Anywhere, text: str) -> list[str]:
    return [key for word in text.split() for key in stage.meant(word)]


def down(stage: ClaudeStage, text: str) -> None:
    """down to the last: press Down until the last choice of a dialog is chosen."""
    assert text == "to the last", text
    for _ in range(stage.options() - 1):
        stage.press("Down")


def choose(stage: ClaudeStage, text: str) -> None:
    """choose WORD: choose the row of a dialog that begins with this word."""
    chosen = rf"❯ (\d\. )?{text}\b"
    if not re.search(chosen, stage.cli.text()):
        stage.press("Down")
    stage.cli.shows(chosen)
    stage.press("Enter")


def background(stage: Anywhere, text: str) -> None:
    """background: send what runs to the background, with Ctrl-B; in tmux, twice."""
    stage.press("C-b")
    if not stage.how.editor:
        pause(PRESS)
        stage.press("C-b")


def says(stage: Anywhere, text: str) -> None:
    """says STATUS [SECONDS]: wait until the CLI has said that (a|b) of itself for some seconds.

    Claude Code says busy, waiting, shell or idle; others show that they are working, blocked,
    completed, error or idle.
    """
    status, *seconds = text.split()
    stage.stands(status, *map(float, seconds))


def shows(stage: Anywhere, text: str) -> None:
    """shows PATTERN: wait until the terminal shows this."""
    stage.cli.shows(text)


def hook(stage: ClaudeStage, text: str) -> None:
    """hook EVENT [TIMES] [FIELD=VALUE] [within=SECONDS]: wait for a hook of the CLI in use."""
    event, *more = text.split()
    times = int(more.pop(0)) if more and more[0].isdigit() else 1
    fields: dict[str, Any] = {}
    for name, _, value in (each.partition("=") for each in more):
        fields[name] = float(value) if name == "within" else "".join(stage.meant(value))
    stage.happens(event, times, **fields)


def stops(stage: ClaudeStage, text: str) -> None:
    """stops [TIMES]: wait for the end of a turn."""
    stage.stops(int(text or 1))


def hides(stage: Anywhere, text: str) -> None:
    """hides TEXT: wait until the terminal no longer shows this."""
    eventually(lambda: text not in stage.cli.text(), f"no more {text}")


def if_(stage: Anywhere, text: str) -> None:
    """if STATUS STEP: do a step if the screen says that."""
    status, _, step = text.partition(" ")
    if stage.cli.status == status:
        take(stage, step)


def unless(stage: Anywhere, text: str) -> None:
    """unless STATUS SECONDS STEP: do a step if the screen does not say that within some seconds."""
    status, seconds, step = text.split(" ", 2)
    try:
        stage.stands(status, within=float(seconds))
    except AssertionError:
        take(stage, step)


def ready(stage: ClaudeStage, text: str) -> None:
    """ready: wait until a prompt can be typed."""
    stage.cli.ready()


def marks(stage: ClaudeStage, text: str) -> None:
    """marks MARKER: DETAIL: wait until the board shows a marker, and a detail with this text."""
    marker, _, detail = text.partition(": ")
    stage.marks(marker, detail)


def placed(stage: ClaudeStage, text: str) -> None:
    """placed [CLI]: wait until the board has the session in the terminal of this CLI."""
    stage.is_placed(stage.numbered(text))


def ask(stage: Anywhere, text: str) -> None:
    """ask: make the CLI ask, if it can, and wait until it does; else make it work for long."""
    stage.asks()


def asks(stage: ClaudeStage, text: str) -> None:
    """asks TEXT: wait for a permission request whose input has this text."""
    stage.asks(text)


def found(stage: ClaudeStage, text: str) -> None:
    """found STATUS SECONDS: wait until the board has the CLI's process, under any session."""
    status, seconds = text.split()
    stage.is_found(status, float(seconds))


def rest(stage: Anywhere, text: str) -> None:
    """rest SECONDS: do nothing."""
    pause(float(text))


def use(stage: Anywhere, text: str) -> None:
    """use CLI: use this CLI from now on; they are counted from 1, as they were started."""
    stage.turn_to(stage.numbered(text))


def leave(stage: Anywhere, text: str) -> None:
    """leave: exit all CLIs, as a user would."""
    stage.leave()


def ends(stage: Anywhere, text: str) -> None:
    """ends [CLI] [KEY…]: press keys until this CLI has ended."""
    number, _, keys = text.partition(" ") if text[:1].isdigit() else ("", "", text)
    stage.ends(stage.numbered(number), *keys.split())


def kill(stage: Anywhere, text: str) -> None:
    """kill SIGNAL: send a signal to the CLI in use."""
    stage.kill(signal.Signals[text])


def kill_child(stage: ClaudeStage, text: str) -> None:
    """kill-child TEXT: kill the CLI's children whose command has this text."""
    for child in psutil.Process(stage.cli.pid).children(recursive=True):
        if text in " ".join(child.cmdline()):
            child.kill()


def close(stage: Anywhere, text: str) -> None:
    """close: close the terminal of the CLI in use."""
    stage.cli.pane.close()


def tmux(stage: ClaudeStage, text: str) -> None:
    """tmux COMMAND: let tmux do something; PANE is the pane of the CLI in use."""
    assert stage.server
    words = shlex.split(text)
    stage.server.run(*(stage.cli.pane.id if word == "PANE" else word for word in words))


def user_hook(stage: ClaudeStage, text: str) -> None:
    """user-hook EVENT [OPTION]: COMMAND: add a hook of the user's to CLIs that start afterwards."""
    about, _, command = text.partition(": ")
    event, *options = about.split()
    stage.user_hook(event, command, *options)


def setting(stage: ClaudeStage, text: str) -> None:
    """setting NAME=JSON: change a setting of CLIs that start afterwards."""
    name, _, value = text.partition("=")
    stage.settings[name] = json.loads(value)


def file(stage: ClaudeStage, text: str) -> None:
    """file PATH: TEXT: write a file in the folder of the CLI."""
    path, _, content = text.partition(": ")
    stage.home.file(path, content + "\n")


def do(stage: ClaudeStage, text: str) -> None:
    """do NAME: do what no row can say: a function of `odd.py`."""
    ODD[text](stage)


WORDS: Final[dict[str, Word]] = {
    (each.__doc__ or "").split()[0].rstrip(":"): each
    for each in (
        *(start, after, prompt, enter, type_, type_until, press, answer, down, choose, background),
        *(says, shows, hides, if_, unless, hook, stops, ready, marks, placed),
        *(ask, asks, found, rest),
        *(use, leave, ends, kill, kill_child, close, tmux, user_hook, setting, file, do),
    )
}


def take(stage: Anywhere, step: str) -> None:
    """Take a step."""
    stage.step = step
    word, _, text = step.partition(" ")
    WORDS[word](stage, text)
