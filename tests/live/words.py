"""The words of the steps in `scenes.txt`: `prompt text`, `press Escape`, `says idle`."""

from __future__ import annotations

import json
import re
import shlex
import signal
from collections.abc import Callable
from typing import Final

import psutil

from live.odd import ODD
from live.stage import PRESS, STANDS, Stage
from rig.agent import DIALOG, elicitation
from rig.waiting import rest as pause

Word = Callable[[Stage, str], None]
LAST: Final = "LAST"  # in place of a key: the number of the last choice
VARIABLE: Final = re.compile("[A-Z_]+=")
SESSION: Final = "SESSION"  # in place of an argument: the id of the first session


def start(stage: Stage, text: str) -> None:
    """start [shell] [beside] [untrusted] [unready] [mcp] [NAME=VALUE] [ARGUMENT]: start a CLI.

    As a job of a shell, or of the shell of the one in use; in a folder that is not trusted; without
    waiting for its prompt; with an MCP server that has a form (mcp-asks: whose tool asks first).
    """
    given = shlex.split(text.replace(SESSION, stage.first_session) if SESSION in text else text)
    said = {"shell", "beside", "untrusted", "unready", "mcp", "mcp-asks"} & set(given)
    env = dict(each.split("=", 1) for each in given if VARIABLE.match(each))
    args = [each for each in given if each not in said and not VARIABLE.match(each)]
    servers = elicitation(stage.home) if said & {"mcp", "mcp-asks"} else ()
    stage.start(
        *(servers[:3] if "mcp-asks" in said else servers),
        *args,
        env=env,
        shell="shell" in said,
        beside=stage.agent if "beside" in said else None,
        trusted="untrusted" not in said,
        ready="unready" not in said,
    )


def after(stage: Stage, text: str) -> None:
    """after a turn: start a CLI, and wait until its first turn is over."""
    assert text == "a turn", text
    stage.rests_after_a_turn()


def prompt(stage: Stage, text: str) -> None:
    """prompt SCENARIO: enter a prompt; `rig/scenarios.py` has what the model does."""
    stage.prompt(text)


def enter(stage: Stage, text: str) -> None:
    """enter TEXT: type a text or a command, and press Enter."""
    stage.enter(text.replace(SESSION, stage.first_session) if SESSION in text else text)


def type_(stage: Stage, text: str) -> None:
    r"""type TEXT: type a text; `\n` is Enter."""
    stage.agent.pane.type(text.replace("\\n", "\n"))


def type_until(stage: Stage, text: str) -> None:
    """type-until HOOK: TEXT: type, and go on until that hook: meanwhile, dialogs are held back."""
    event, _, typed = text.partition(": ")
    stage.types_until(event, typed)


def press(stage: Stage, text: str) -> None:
    """press KEY…: press keys by tmux's names; LAST is the number of the last choice."""
    stage.press(*_keys(stage, text))


def answer(stage: Stage, text: str) -> None:
    """answer KEY…[: DIALOG]: press keys in a dialog, which shows that, until it is gone."""
    keys, _, dialog = text.partition(": ")
    stage.agent.answer(*_keys(stage, keys), dialog=dialog or DIALOG)


def _keys(stage: Stage, text: str) -> list[str]:
    return [str(stage.options()) if key == LAST else key for key in text.split()]


def down(stage: Stage, text: str) -> None:
    """down to the last: press Down until the last choice of a dialog is chosen."""
    assert text == "to the last", text
    for _ in range(stage.options() - 1):
        stage.press("Down")


def choose(stage: Stage, text: str) -> None:
    """choose WORD: choose the row of a dialog that begins with this word."""
    chosen = rf"❯ (\d\. )?{text}\b"
    if not re.search(chosen, stage.agent.text()):
        stage.press("Down")
    stage.agent.shows(chosen)
    stage.press("Enter")


def background(stage: Stage, text: str) -> None:
    """background: send what runs to the background, with Ctrl-B; in tmux, twice."""
    stage.press("C-b")
    if not stage.how.editor:
        pause(PRESS)
        stage.press("C-b")


def says(stage: Stage, text: str) -> None:
    """says STATUS [SECONDS]: wait until the CLI has said that of itself for some seconds."""
    status, _, seconds = text.partition(" ")
    stage.stands(status, float(seconds or STANDS))


def shows(stage: Stage, text: str) -> None:
    """shows PATTERN: wait until the terminal shows this."""
    stage.agent.shows(text)


def hook(stage: Stage, text: str) -> None:
    """hook EVENT [TIMES] [FIELD=VALUE] [within=SECONDS]: wait for a hook of the CLI in use."""
    event, *more = text.split()
    times = int(more.pop(0)) if more and more[0].isdigit() else 1
    fields: dict[str, object] = dict(each.split("=", 1) for each in more)
    fields = {name: stage.first_session if v == SESSION else v for name, v in fields.items()}
    within = {"within": float(str(fields.pop("within")))} if "within" in fields else {}
    stage.happens(event, times, **within, **fields)


def stops(stage: Stage, text: str) -> None:
    """stops [TIMES]: wait for the end of a turn."""
    stage.stops(int(text or 1))


def ready(stage: Stage, text: str) -> None:
    """ready: wait until a prompt can be typed."""
    stage.agent.ready()


def marks(stage: Stage, text: str) -> None:
    """marks MARKER: DETAIL: wait until the board shows a marker, and a detail with this text."""
    marker, _, detail = text.partition(": ")
    stage.marks(marker, detail)


def placed(stage: Stage, text: str) -> None:
    """placed [CLI]: wait until the board has the session in the terminal of this CLI."""
    stage.is_placed(stage.numbered(text))


def asks(stage: Stage, text: str) -> None:
    """asks TEXT: wait for a permission request whose input has this text."""
    stage.asks(text)


def found(stage: Stage, text: str) -> None:
    """found STATUS SECONDS: wait until the board has the CLI's process, under any session."""
    status, seconds = text.split()
    stage.is_found(status, float(seconds))


def rest(stage: Stage, text: str) -> None:
    """rest SECONDS: do nothing."""
    pause(float(text))


def use(stage: Stage, text: str) -> None:
    """use CLI: use this CLI from now on; they are counted from 1, as they were started."""
    stage.turn_to(stage.numbered(text))


def leave(stage: Stage, text: str) -> None:
    """leave: exit all CLIs, as a user would."""
    stage.leave()


def ends(stage: Stage, text: str) -> None:
    """ends [CLI] [KEY…]: press keys until this CLI has ended."""
    number, _, keys = text.partition(" ") if text[:1].isdigit() else ("", "", text)
    stage.ends(stage.numbered(number), *keys.split())


def kill(stage: Stage, text: str) -> None:
    """kill SIGNAL: send a signal to the CLI in use."""
    stage.kill(signal.Signals[text])


def kill_child(stage: Stage, text: str) -> None:
    """kill-child TEXT: kill the CLI's children whose command has this text."""
    for child in psutil.Process(stage.agent.pid).children(recursive=True):
        if text in " ".join(child.cmdline()):
            child.kill()


def close(stage: Stage, text: str) -> None:
    """close: close the terminal of the CLI in use."""
    stage.agent.pane.close()


def tmux(stage: Stage, text: str) -> None:
    """tmux COMMAND: let tmux do something; PANE is the pane of the CLI in use."""
    assert stage.server
    words = shlex.split(text)
    stage.server.run(*(stage.agent.pane.id if word == "PANE" else word for word in words))


def user_hook(stage: Stage, text: str) -> None:
    """user-hook EVENT [OPTION]: COMMAND: add a hook of the user's to CLIs that start afterwards."""
    about, _, command = text.partition(": ")
    event, *options = about.split()
    stage.user_hook(event, command, *options)


def setting(stage: Stage, text: str) -> None:
    """setting NAME=JSON: change a setting of CLIs that start afterwards."""
    name, _, value = text.partition("=")
    stage.settings[name] = json.loads(value)


def file(stage: Stage, text: str) -> None:
    """file PATH: TEXT: write a file in the folder of the CLI."""
    path, _, content = text.partition(": ")
    stage.home.file(path, content + "\n")


def do(stage: Stage, text: str) -> None:
    """do NAME: do what no row can say: a function of `odd.py`."""
    ODD[text](stage)


WORDS: Final[dict[str, Word]] = {
    (each.__doc__ or "").split()[0].rstrip(":"): each
    for each in (
        *(start, after, prompt, enter, type_, type_until, press, answer, down, choose, background),
        *(says, shows, hook, stops, ready, marks, placed, asks, found, rest),
        *(use, leave, ends, kill, kill_child, close, tmux, user_hook, setting, file, do),
    )
}
