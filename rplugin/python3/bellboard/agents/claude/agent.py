"""Claude Code: each part is decoded in a file of its own.

The parts about screens are loaded when one is read: hooks and files report everything else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...core.events import AGENT
from ...core.last_turn import TurnLog
from ...core.program_status import Report
from ...core.request import Answer, Choice, Request, SentAnswer, Went
from ...core.session import Session
from ..agent import Abilities, Ability, About, Agent, OpenRequest, Press, Prompt, Seen
from ..installing.hookline import HooksFile, below_home
from ..words import Words
from .hooks import CONFIG, KINDS, account, hook
from .reply import reply
from .request import on_disk, request
from .rules import SETTINGS
from .transcript import head_of, is_noise, transcript_event

if TYPE_CHECKING:
    from ..need import Observing
    from .installer import Settings


_HOOKS: Final = Ability("hooks, session file")
_FILE: Final = Ability("session file")
SETTINGS_OPTION: Final = "--settings"
#: Pasted characters of one line that are certainly no "pasted content" to the model.
PIECE: Final = 500
#: Abilities of the newest version, as for every CLI.
NEWEST: Final[Abilities] = {
    "unprompted": _HOOKS,
    "working": _HOOKS,
    "permission": _HOOKS,
    "question": _HOOKS,
    "granted": _FILE,
    "denied": _FILE,
    "completed": _HOOKS,
    "interrupted": _FILE,
    "failed": Ability("hooks, transcript"),
    "ended": Ability("hooks, processes"),
    "itself": Ability(
        "OSC 7501",
        when="in a Neovim terminal, from 2.1.295 on, unless "
        "CLAUDE_CODE_DISABLE_TERMINAL_TITLE is set",
    ),
    "answer": Ability("hooks, keys"),
}
#: Status in the CLI's own report, once the turn is over and only background work still runs.
_WORK: Final = r"\d+ (?:shell|monitor|MCP task)s?"
_LEFT: Final = re.compile(rf"{_WORK}(?:\W+(?:and )?{_WORK})* still running")


class ClaudeCode(Agent):
    """See `Agent`."""

    key = AGENT
    name = "Claude Code"
    program = "claude"
    variable = CONFIG
    tested = (2, 1, 332)
    abilities = NEWEST
    resuming = ("--resume",)
    prompting = ("--",)
    leaving = frozenset({"prompt_input_exit", "logout"})
    queues = True
    hooks = HooksFile(below_home(".claude", CONFIG), "settings.json")
    without_hooks = (
        "its sessions are known from their files and screens; "
        "hooks add the tool in use, subagents and progress"
    )
    words = Words(KINDS)
    rules = f"permissions.allow in {SETTINGS}"

    event = staticmethod(hook)
    account = staticmethod(account)
    entry = staticmethod(transcript_event)
    is_noise = staticmethod(is_noise)
    head_of = staticmethod(head_of)
    request = staticmethod(request)
    on_disk = staticmethod(on_disk)
    reply = staticmethod(reply)

    def reported(self, report: Report) -> str:
        is_left = report.state == "working" and _LEFT.fullmatch(report.msg)
        is_dialog = report.state == "blocked" and not report.kind and report.msg == "dialog open"
        return "background" if is_left else "dialog" if is_dialog else report.state

    def on_screen(self, rows: Sequence[str]) -> Seen | None:
        from .screen import read_screen

        return read_screen(rows)

    def prompt(self, screen: Sequence[str]) -> Prompt | None:
        from .screen import read_prompt

        return read_prompt(screen)

    def press(self, screen: Sequence[str], request: Request, answer: Answer, about: About) -> Press:
        from .dialog import press

        return press(screen, request, answer, about)

    def offers(self, screen: Sequence[str], request: Request) -> tuple[Choice, ...]:
        from .dialog import offers

        return offers(screen, request)

    def takes(self) -> str:
        from .dialog import TAKES

        return TAKES

    # ------------------------------------------------------------ doors

    def observing(self, environ: Mapping[str, str], brief: bool) -> Observing:
        from .witness import ClaudeSessions

        return ClaudeSessions(self, environ, brief).observing()

    def reporting(self, line: Callable[[str], str]) -> str:
        from .installer import handlers
        from .versions import CORE

        hooks = {event: [{"hooks": [each]}] for event, each in handlers(CORE, line).items()}
        return json.dumps({"hooks": hooks}, indent=2, ensure_ascii=False)

    def installer(self, home: Path, environ: Mapping[str, str]) -> Settings:
        from .installer import Settings

        return Settings(home, environ, self)

    def own_hooks(self, argv: Sequence[str], home: Path, environ: Mapping[str, str]) -> list[str]:
        if any(word.partition("=")[0] == SETTINGS_OPTION for word in argv):  # it reads the first
            return []
        settings = self.installer(home, environ)
        printed = settings.printed(settings.version(argv[0]))
        return [SETTINGS_OPTION, json.dumps(json.loads(printed), ensure_ascii=False)]

    def restart(self, s: Session) -> list[str]:
        argv = self.resume(s.session_id)
        return ["env", f"{CONFIG}={s.config_dir}", *argv] if argv and s.config_dir else argv

    def session_of(self, pid: int, environ: Mapping[str, str]) -> str:
        from ...system.processes import environment_of, innermost
        from .session_files import config_of, file_state

        own = config_of(environment_of(pid, (CONFIG, "HOME")))
        for config in dict.fromkeys((own, config_of(environ))):
            record = file_state(config / "sessions", innermost(pid)).record
            if record is not None and record["pid"] == pid:
                return str(record["sessionId"])
        return ""

    def went_on(
        self, pid: int, s: Session, since: float, environ: Mapping[str, str]
    ) -> Went | None:
        from .session_files import config_of, went_on

        config = Path(s.config_dir or config_of(environ))
        return went_on(config / "sessions", pid, s.session_id, since)

    def piece(self, pid: int, s: Session, environ: Mapping[str, str]) -> int:
        from .session_files import config_of, is_folding

        return 0 if is_folding(Path(s.config_dir or config_of(environ)), pid) else PIECE

    def asking(self, s: Session, environ: Mapping[str, str]) -> bytes:
        from .request import open_tool
        from .session_files import config_of, last_entries, path_of

        config = s.config_dir or config_of(environ)
        path = s.transcript or path_of(config, s.session_id, s.cwd)  # if no hook has named it
        return open_tool(s.session_id, last_entries(self, path))

    def conversation(self, path: str) -> list[str]:
        from .session_files import last_entries
        from .transcript import spoken

        return spoken(last_entries(self, path))

    def last_turn(self, s: Session, environ: Mapping[str, str]) -> TurnLog | None:
        from ..tailing import newest_first
        from .session_files import config_of, path_of
        from .transcript import last_turn

        path = s.transcript or path_of(s.config_dir or config_of(environ), s.session_id, s.cwd)
        return last_turn(newest_first(path, is_noise)) if path else None

    def winner(self, s: Session, asked: OpenRequest, since: float, sent: SentAnswer) -> str | None:
        from .reply import first_in
        from .session_files import last_entries

        entries = last_entries(self, s.transcript)
        return first_in(entries, asked.payload, asked.tool_id, since, sent)
