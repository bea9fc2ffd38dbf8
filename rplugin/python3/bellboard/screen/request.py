"""Show a request in a terminal, whole, and let a person answer it.

`lines_of` is what is asked.  `Prompt` holds the state of a screen for it and applies keys: a digit
chooses, and what the choice needs is asked for, one thing after the other.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from textwrap import wrap
from typing import Any, Final, NamedTuple

from rich.text import Text

from ..core import words
from ..core.request import Answer, Field, Part, Question, Request, answer_of, check
from ..core.visible import marked

SOON: Final = 0.4  # seconds in which a key was typed before the request could be read
INDENT: Final = "  "
CHANGED: Final = {"+": "green", "-": "red", "@": "cyan"}
LETTERS: Final = "123456789abcdefghijklmnoprtuvwxyz"  # of choices: q and s have a meaning
#: What a choice needs → how a shell says it.
NEEDED: Final = {
    "message": "  --message TEXT",
    "message?": "  [--message TEXT]",
    "answers": "  --answer QUESTION=TEXT…",
    "content": "  --field NAME=VALUE…",
    "input": "  --command TEXT",
}
TRUE: Final = frozenset({"y", "yes", "true", "1"})


def lines_of(request: Request, columns: int) -> list[Text]:
    """Return all that a request asks, without its choices."""
    lines = [Text(request.title or request.tool or request.kind, "bold")]
    for part in request.parts:
        lines += _part(part, columns)
    for question in request.questions:
        lines += wrapped(question.text, columns, style="bold")
        for option in question.options:
            lines += wrapped(f"· {option.label}", columns, INDENT)
            lines += wrapped(option.description, columns, INDENT * 2, "dim")
    for field in request.fields:
        needed = " (required)" if field.required else ""
        lines += wrapped(f"{field.title or field.name}: {field.type}{needed}", columns, INDENT)
    return lines


def _part(part: Part, columns: int) -> Iterator[Text]:
    if part.label:
        yield Text(part.label, "dim")
    if part.path:
        yield from wrapped(part.path, columns, INDENT, "bold")
    if part.kind == "diff":
        olds, news = part.old.splitlines(), part.new.splitlines()
        for row in list(difflib.unified_diff(olds, news, lineterm="", n=3))[2:]:
            yield from wrapped(row, columns, INDENT, CHANGED.get(row[:1], ""))
    else:
        yield from wrapped(part.text, columns, INDENT)
    for warning in part.warnings:
        yield from wrapped(f"! {warning}", columns, INDENT, "bold red")


def wrapped(text: str, columns: int, indent: str = "", style: str = "") -> Iterator[Text]:
    """Yield the rows of a text: broken where a row is full, without losing a blank."""
    room = max(10, columns - len(indent) - 1)
    how: dict[str, Any] = {"drop_whitespace": False, "replace_whitespace": False}
    for line in marked(text).split("\n") if text else ():
        for row in wrap(line.expandtabs(4), room, break_on_hyphens=False, **how) or [""]:
            yield Text(indent + row, style)


class Step(NamedTuple):
    """Something that a choice needs: one of some options, several of them, or a text."""

    title: str
    field: str  # of the answer
    key: str = ""  # in that field, if it has several
    options: tuple[str, ...] = ()
    many: bool = False
    type: str = "string"
    text: str = ""  # to begin with
    may: bool = False  # be left out


class Prompt:
    """A request on a screen, and what a person does with it."""

    def __init__(self, request: Request, heading: str, now: float) -> None:
        self.request = request
        self.taken: dict[str, Any] | None = None  # the answer
        self.does = ""  # or: leave, skip, go
        self._heading = heading
        self._shown = now
        self._top = 0
        self._why = ""
        self._given: dict[str, Any] = {}
        self._steps: list[Step] = []
        self._clear()

    @property
    def over(self) -> bool:
        """Return whether there is nothing more to ask."""
        return self.taken is not None or bool(self.does)

    @property
    def unsent(self) -> str:
        """Return what has been typed so far."""
        is_new = self._typing and bool(self._steps) and self._typed != self._steps[0].text
        return self._typed if is_new else ""

    def press(self, key: str, now: float) -> None:
        """Apply a key: a name in `full.KEYS`, or a character."""
        if now < self._shown + SOON and key != "leave":
            self._shown = now  # as long as hands type something else
            return
        self._why = ""
        if self._steps:
            self._fill(key)
        elif key in ("leave", "q"):
            self.does = "leave"
        elif key in ("s", "g"):
            self.does = {"s": "skip", "g": "go"}[key]
        elif key in ("up", "down", "page up", "page down", "first", "last"):
            far = {"up": -1, "down": 1, "page up": -10, "page down": 10}
            self._top = max(0, self._top + far.get(key, 0)) if key in far else 0
            self._top = 1 << 20 if key == "last" else self._top
        elif len(key) == 1 and 0 <= (n := LETTERS.find(key)) < len(self.request.choices):
            choice = self.request.choices[n]
            self._given = {"choice": choice.id}
            self._steps = _steps(self.request, choice.needs)
            self._next()

    def lines(self, now: float, columns: int, height: int) -> list[Text]:
        """Return the request as far as there is room, and below it what can be pressed."""
        below = self._asks(columns) if self._steps else self._choices(columns)
        below += [*wrapped(self._why, columns, style="yellow")]
        body = lines_of(self.request, columns)
        room = max(1, height - len(below) - 2)
        self._top = min(self._top, max(0, len(body) - room))
        more = len(body) - room - self._top
        rule = f"── {more} more rows: Down " if more > 0 else ""
        head = Text(words.cut(self._heading, columns), "bold red")
        seen = body[self._top : self._top + room]
        return [head, *seen, Text(rule.ljust(columns, "─")[:columns], "dim"), *below][:height]

    # ------------------------------------------------------------ what can be pressed

    def _choices(self, columns: int) -> list[Text]:
        rows = [f"{LETTERS[n]}  {c.words}" for n, c in enumerate(self.request.choices)]
        rows = rows or [self.request.why]
        lines = [line for row in rows for line in wrapped(row, columns, " ")]
        return [*lines, Text(words.cut(" g  go there    s  skip    Esc  leave", columns), "dim")]

    def _asks(self, columns: int) -> list[Text]:
        step = self._steps[0]
        lines = [*wrapped(step.title, columns, " ", "bold")]
        for n, option in enumerate(step.options):
            mark = ("[x] " if option in self._chosen else "[ ] ") if step.many else ""
            lines += wrapped(f"{LETTERS[n]}  {mark}{option}", columns, " ")
        hint = "Enter to go on, Esc to go back"
        if step.options and not self._typing:
            typed = ", t to type an answer" if step.field == "answers" else ""
            hint = f"a digit to choose{typed}, {hint}"
        else:
            shown = words.plain(self._typed)[-max(1, columns - 5) :]
            lines.append(Text(" > ", "bold").append(shown, "").append("█", "dim"))
        return [*lines, Text(words.cut(f" {hint}", columns), "dim")]

    # ------------------------------------------------------------ what a choice needs

    def _begin(self) -> None:
        self._given, self._steps = {}, []
        self._clear()

    def _clear(self) -> None:
        self._chosen: list[str] = []
        self._typed = self._steps[0].text if self._steps else ""
        self._typing = bool(self._steps) and not self._steps[0].options

    def _fill(self, key: str) -> None:
        step = self._steps[0]
        if key == "leave":
            self._begin()
        elif key == "take":
            self._take(self._typed if self._typing else self._chosen)
        elif self._typing:
            if key in ("rub", "clear"):
                self._typed = self._typed[:-1] if key == "rub" else ""
            elif len(key) == 1 and key.isprintable():
                self._typed += key
        elif key == "t" and step.field == "answers":
            self._typing = True
        elif len(key) == 1 and 0 <= (n := LETTERS.find(key)) < len(step.options):
            option = step.options[n]
            if not step.many:
                self._take([option])
            elif option in self._chosen:
                self._chosen.remove(option)
            else:
                self._chosen.append(option)

    def _take(self, said: str | list[str]) -> None:
        step = self._steps[0]
        if not said and not step.may:
            self._why = "nothing is chosen" if step.options else "nothing is typed"
            return
        value: object = said
        if step.field == "content":
            value = value_of(step.type, said[0] if isinstance(said, list) and said else str(said))
        if said and step.key:
            self._given.setdefault(step.field, {})[step.key] = value
        elif said:
            self._given[step.field] = value
        del self._steps[0]
        self._next()

    def _next(self) -> None:
        """Ask for what is still needed, or finish."""
        self._clear()
        if self._steps:
            return
        answer = answer_of(self._given) or Answer(self._given["choice"])
        self._why = check(self.request, answer)
        if self._why:
            self._begin()
        else:
            self.taken = self._given


def _steps(request: Request, needs: str) -> list[Step]:
    """Return what to ask for."""
    if needs.startswith("message"):
        title = "Message (Enter for none)" if needs.endswith("?") else "Message"
        return [Step(title, "message", may=needs.endswith("?"))]
    if needs == "input":
        command = next((p.text for p in request.parts if p.kind == "command"), "")
        return [Step("Run this command instead", "input", text=command)]
    if needs == "answers":
        return [_of_question(q) for q in request.questions]
    return [_of_field(f) for f in request.fields] if needs == "content" else []


def _of_question(q: Question) -> Step:
    return Step(q.text, "answers", q.text, tuple(o.label for o in q.options), q.many)


def _of_field(f: Field) -> Step:
    options = tuple(o.label for o in f.options) or (("yes", "no") if f.type == "boolean" else ())
    default = "" if f.default is None else str(f.default)
    title = f.title or f.name
    return Step(title, "content", f.name, options, False, f.type, default, not f.required)


def value_of(kind: str, text: str) -> object:
    """Return the value of a field; `check` refuses a text that is none."""
    if kind == "boolean":
        return text.lower() in TRUE
    if kind in ("number", "integer"):
        try:
            number = float(text)
        except ValueError:
            return text
        return int(number) if number.is_integer() else number
    return text


def page(request: Request, who: str, columns: int) -> list[Text]:
    """Return a request with its choices, to print."""
    lines = [Text(f"{who} asks:", "bold red"), *lines_of(request, columns), Text("")]
    width = max((len(c.id) for c in request.choices), default=0)
    for choice in request.choices:
        needs = NEEDED.get(choice.needs, "")
        lines.append(Text(f"{INDENT}{choice.id.ljust(width)}  {choice.words}").append(needs, "dim"))
    if request.why:
        lines += wrapped(request.why, columns, INDENT, "yellow")
    told = f"bellboard answer {request.session_id} CHOICE --digest {request.digest}"
    return [*lines, Text(""), Text(told, "dim")]
