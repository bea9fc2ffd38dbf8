"""Each kind of question with each choice, and what must arrive."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bellboard.core.request import Answer
from rig import claude_code
from rig.scenarios import QUESTION, SCENARIOS, Scenario, Tool, Turn, call, say, shell

MAKE: Final = Turn((shell("make --dry-run alpha"),))
SEVERAL: Final = [
    QUESTION,
    {**QUESTION, "question": "Which sizes?", "header": "Size", "multiSelect": True},
]
CURL: Final = "curl -s http://127.0.0.1:1/x"
FETCHED: Final = "https://example.invalid/page"
PLAYED: Final[dict[str, Scenario]] = {
    **SCENARIOS,
    "make": (MAKE, MAKE, say("Made twice.")),
    "npm": (Turn((shell("npm run a"),)), Turn((shell("npm run b"),)), say("Run twice.")),
    "outside": (
        *(call("Write", file_path=f"$CWD/../{name}.txt", content="x\n") for name in ("on", "off")),
        say("Written twice."),
    ),
    "touches": (Turn((shell("touch a.txt"),)), Turn((shell("touch b.txt"),)), say("Touched.")),
    "curls": (Turn((shell(f"{CURL} | sh"),)), Turn((shell(f"{CURL} | sh"),)), say("Tried twice.")),
    "several": (Turn((Tool("AskUserQuestion", {"questions": SEVERAL}),)), say("You chose all.")),
    "fetch": (call("WebFetch", url=FETCHED, prompt="Sum it up"), say("Fetched.")),
}
PLANNING: Final = ("--permission-mode", "plan")
FORM: Final = ("form",)  # stands for the arguments of its MCP server


@dataclass(frozen=True)
class Case:
    """An answer; `result` is in what the model gets, `file` and `rule` are there afterwards."""

    name: str
    scenario: str
    answer: Answer
    result: str
    old: str = ""  # the result up to 2.1.119, if it differs
    args: tuple[str, ...] = ()
    file: str = ""
    gone: str = ""  # a file that is not there
    rule: str = ""  # in the project's settings
    mode: str = ""  # of the next hooks
    again: int = 0  # the same is asked again: so often, and then denied
    alone: bool = False  # it changes what is asked from then on, so its CLI plays nothing else
    stops: bool = False  # the turn ends: the model gets the result with the next prompt
    since: tuple[int, ...] = ()

    def expected(self, version: str) -> str:
        is_old = claude_code.numbers(version) <= (2, 1, 119)
        return self.old if self.old and is_old else self.result

    def wrong(self, project: Path, version: str, heard: str, mode: str, asks: int) -> str:
        """Return what did not arrive as it should."""
        settings = project / ".claude/settings.local.json"
        written = settings.read_text() if settings.exists() else ""
        checks = {
            f"the model got {heard!r}": self.expected(version) in heard,
            f"it was asked {asks} times": asks == (self.args != FORM) + self.again,
            f"{self.file} is missing": not self.file or (project / self.file).exists(),
            f"{self.gone} is there": not self.gone or not (project / self.gone).exists(),
            f"no rule in {written}": self.rule in (written.replace("\n", "") or "{}"),
            f"the mode is {mode}": self.mode in ("", mode),
        }
        return "; ".join(text for text, fits in checks.items() if not fits)


def chosen(**answers: Any) -> Answer:
    named = {"colour": "Which colour?", "sizes": "Which sizes?"}
    return Answer("choose", answers={named[key]: said for key, said in answers.items()})


APPROVED: Final = "User has approved"
STOPPED: Final = "doesn't want to"
ACCEPTED: Final = "acceptEdits"
ONCE: Final = (2, 1, 119)
NEWER: Final = (2, 1, 328)  # older ones suggest other rules
NOTHING: Final = "{}"  # is written

CASES: Final = (
    Case("permission: deny", "perm", Answer("deny"), "The user said no.", gone="made.txt"),
    Case(
        "permission: deny with a message",
        "perm",
        Answer("deny", 'Not "that"\nname'),
        'Not "that"\nname',
    ),
    Case("permission: stop", "perm", Answer("stop"), STOPPED, "The user said no.", stops=True),
    Case(
        "permission: edit",
        "perm",
        Answer("edit", input="touch x.txt"),
        "",
        file="x.txt",
        gone="made.txt",
    ),
    Case("permission: allow", "perm", Answer("allow"), "", file="made.txt"),
    Case("make: always", "make", Answer("always"), "", rule='"Bash(make --dry-run alpha)"'),
    Case("npm: always", "npm", Answer("always"), "", rule='"Bash(npm run'),
    Case("fetch: always", "fetch", Answer("always"), "", rule="WebFetch(domain:example.invalid)"),
    Case(
        "touch: folder",
        "touches",
        Answer("folder"),
        "",
        file="a.txt",
        gone="b.txt",
        rule=NOTHING,
        mode="default",
        again=1,
        alone=True,
    ),
    Case(
        "touch: edits",
        "touches",
        Answer("edits"),
        "",
        file="b.txt",
        rule=NOTHING,
        mode=ACCEPTED,
        alone=True,
    ),
    Case("write: edits", "writes", Answer("edits"), "", file="two.txt", mode=ACCEPTED, alone=True),
    Case(
        "outside: both",
        "outside",
        Answer("both"),
        "",
        file="../off.txt",
        mode=ACCEPTED,
        alone=True,
        since=NEWER,
    ),
    Case(
        "outside: edits",
        "outside",
        Answer("edits"),
        "",
        file="../on.txt",
        gone="../off.txt",
        mode=ACCEPTED,
        again=1,
        alone=True,
        since=NEWER,
    ),
    Case(
        "curl: always",
        "curls",
        Answer("always"),
        "",
        rule=f'"Bash({CURL})",      "Bash(sh)"',
        alone=True,
        since=NEWER,
    ),
    Case(
        "curl: the first",
        "curls",
        Answer("always-1"),
        "",
        rule=f'[      "Bash({CURL})"    ]',
        again=1,
        alone=True,
        since=NEWER,
    ),
    Case(
        "curl: the second",
        "curls",
        Answer("always-2"),
        "",
        rule='[      "Bash(sh)"    ]',
        again=1,
        alone=True,
        since=NEWER,
    ),
    Case("write: deny", "write", Answer("deny", "No file"), "No file", gone="w.txt"),
    Case("write: allow", "write", Answer("allow"), "w.txt", file="w.txt"),
    Case("question: choose", "ask", chosen(colour=["Blue"]), '"Which colour?"="Blue"'),
    Case("question: type", "ask", chosen(colour='a "horn", please'), 'a "horn", please'),
    Case("question: deny", "ask", Answer("deny", "Ask later"), "Ask later"),
    Case("question: stop", "ask", Answer("stop"), STOPPED, "The user said no.", stops=True),
    Case(
        "questions: choose",
        "several",
        chosen(colour=["Red"], sizes=["Blue", "Red"]),
        '"Which sizes?"="Red, Blue"',
    ),
    Case(
        "questions: choose one of two", "several", chosen(sizes=["Blue"]), '"Which sizes?"="Blue"'
    ),
    Case("plan: approve", "plan", Answer("approve"), APPROVED, args=PLANNING),
    Case(
        "plan: approve-edits",
        "plan",
        Answer("approve-edits"),
        APPROVED,
        args=PLANNING,
        mode=ACCEPTED,
    ),
    Case(
        "plan: keep", "plan", Answer("keep", "Add tests"), "Add tests", args=PLANNING, mode="plan"
    ),
    Case(
        "plan: stop",
        "plan",
        Answer("stop"),
        STOPPED,
        "The user said no.",
        args=PLANNING,
        stops=True,
    ),
    Case(
        "form: fill",
        "elicit",
        Answer("fill", content={"name": "Ada"}),
        "Ada",
        args=FORM,
        since=ONCE,
    ),
    Case(
        "form: several fields",
        "order",
        Answer("fill", content={"name": "Ada", "count": 2, "size": "large", "gift": True}),
        '"count": 2',
        args=FORM,
        since=ONCE,
    ),
    Case("form: decline", "elicit", Answer("decline"), "decline", args=FORM, since=ONCE),
)
