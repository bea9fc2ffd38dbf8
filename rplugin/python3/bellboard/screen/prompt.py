"""Let the user answer a request in a terminal.

A prompt holds the state of a screen and applies keys, the same as in the editor's view: the user
chooses, and then the prompt asks for the fields of the choice, one after the other.  Digits
choose the options of a question, as in the dialogs of the agents; else they are the keys of choices
that have no letter, and are pressed twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from ..core import text, words
from ..core.request import MEANS, Answer, Field, Question, Request, answer_of, check, meant
from ..core.text import marked_line
from .full import pasted
from .request import MORE, NEXT, TURN, lines_of, title_of, value_of, wrapped
from .styled import StyledText

SOON: Final = 0.4  # seconds after a request appears in which keys were not meant for it
LETTERS: Final = "123456789abcdefghjklmnoprstuvwxyz"  # keys of options; i types, q leaves
DIGITS: Final = 9  # digits among these
REFUSES: Final = frozenset(
    {"deny", "decline", "keep", "stop", NEXT.id}
)  # sent even if the end was not read
UNREAD: Final = "Read it to the end first: Space or G."
MOVES: Final = {"up": -1, "down": 1, "page up": -10, "page down": 10, "first": -9999, "last": 9999}
NAMES: Final = {"k": "up", "j": "down", "G": "last"}  # keys of the editor that move
DOES: Final = {"leave": "leave", "q": "leave", "s": "snooze", "tab": "skip", "d": "seen"}
#: Meaning of a choice → its key, and its words in the last row.
CHOOSE: Final = {
    "yes": ("A", "yes"),
    "always": ("P", "always"),
    "no": ("D", "no"),
    "reply": ("R", "reply"),
    "stop": ("S", "stop"),
    "edit": ("C", "change"),
}
WRITES: Final = ("r", "write")  # the key of what is said next, and its word
#: Words of the last row that give way on a narrow screen, the first one first.
GIVES_WAY: Final = ("change", "stop", "snooze", "reply", "always", "no", "yes", "next", "terminal")
SHORT: Final = 24  # most cells of a choice that shares its row


class Step(NamedTuple):
    """A field that a choice needs: an option, several options, or a text."""

    title: str
    field: str  # the field of the answer to fill
    key: str = ""  # the key in the field, if there are several
    options: tuple[str, ...] = ()
    many: bool = False
    type: str = "string"
    text: str = ""  # initial text
    optional: bool = False
    typed: bool = False  # whether it takes a text instead of options


class Offer(NamedTuple):
    """An offer to choose: "No, and say why" makes two, as only one asks for a message."""

    id: str
    words: str
    needs: str
    key: str  # a digit is pressed twice
    note: str = ""


class ShownRequest:
    """A request on a screen, and the user's work on it."""

    def __init__(self, request: Request, heading: str, asker: str, now: float) -> None:
        self.request = request
        self._offers = [*_offers(request)]
        self._answers = next((x for x in self._offers if x.needs == "answers"), None)
        self._asker = asker
        self._goes = False  # the first key of `go` was pressed
        self._room = 1  # rows of the request on the screen
        self.taken: dict[str, Any] | None = None  # the answer
        self.chosen = ""  # the words of the choice
        self.does = ""  # instead of an answer: leave, skip or go
        self._heading = heading
        self._shown = now
        self._top = 0
        self._is_read = False
        self._columns, self._body = 0, [StyledText()]
        self._why = ""
        self._given: dict[str, Any] = {}
        self._steps: list[Step] = []
        self._kept: dict[tuple[str, str], str] = {}  # typed texts, by field and key
        self._twice = -1  # the choice whose key was pressed once
        self._clear()

    @property
    def over(self) -> bool:
        """Return whether no question is left."""
        return self.taken is not None or bool(self.does)

    @property
    def unsent(self) -> str:
        """Return the typed text so far."""
        is_new = self._typing and bool(self._steps) and self._typed != self._steps[0].text
        return self._typed if is_new else ""

    def press(self, key: str, now: float) -> None:
        """Apply a key: a name in `full.KEYS`, a character, or what was pasted."""
        if now < self._shown + SOON and key != "leave":
            self._shown = now  # the user is still typing something else
            return
        self._why = ""
        once, self._twice = self._twice, -1
        begun, self._goes = self._goes, key == "g" and not self._steps
        if self._steps:
            self._fill(key)
        elif begun and key == "o":
            self.does = "go"
        elif key in DOES and (key != "d" or self.request.kind == TURN):
            self.does = DOES[key]
        elif (moves := NAMES.get(key, key)) in MOVES:
            self._top = max(0, self._top + MOVES[moves])
        elif key == "take" and once >= 0:
            self._choose(self._offers[once])
        elif key in (" ", "take"):
            self._top += self._room
        elif (n := next((n for n, x in enumerate(self._offers) if x.key == key), -1)) >= 0:
            self._offer(n, once)
        elif key == "i" and self._answers and self.request.questions[0].typed:
            if self._choose(self._answers):
                self._typing = True
        elif (offer := self._answering(key)) and self._choose(offer):
            self._fill(key)

    def lines(self, now: float, columns: int, height: int) -> list[StyledText]:
        """Return as much of the request as there is room for, with the keys below it."""
        why = [*wrapped(self._why, columns, style="yellow")]
        heading = f"{self._heading}: {title_of(self.request)}"
        ago = f"  {words.age(self.request.asked_at, now)}" if self.request.asked_at else ""
        if columns != self._columns:  # wrapping a long plan takes a while
            keys = LETTERS[:DIGITS] if self._answers else ""
            fits = len(heading) + len(ago) <= columns
            body = [*wrapped(self._asker, columns, style="dim")]
            body += lines_of(self.request, columns, keys, titled=not fits)
            self._columns, self._body = columns, body
        body = self._body
        spare = height - len(why) - 2 - min(len(body), height // 3)
        below = self._asks(columns, spare) if self._steps else self._choices(columns)
        if len(below) > spare and not self._steps:  # a small screen: all of it scrolls
            body, below = [*body, *below[:-1]], below[-1:]
        below += why
        room = max(1, height - len(below) - 2)
        self._top = min(self._top, max(0, len(body) - room))
        more = len(body) - room - self._top
        self._is_read = self._is_read or more <= 0
        self._room = room
        rule = f"── {more} more: Space " if more > 0 else ""
        style = "bold" if self.request.kind == TURN else "bold red"
        head = StyledText(text.cut(heading, columns - len(ago)), style)
        head.append(" " * (columns - text.width(head.plain) - len(ago)) + ago, "dim")
        seen = body[self._top : self._top + room]
        return [head, *seen, StyledText(rule.ljust(columns, "─")[:columns], "dim"), *below][:height]

    # ------------------------------------------------------------ keys

    def _choices(self, columns: int) -> list[StyledText]:
        """Return the choices, each in a row of its own, the short ones without a note abreast."""
        lines: list[StyledText] = []
        last: StyledText | None = None  # a row with room for another choice
        for n, offer in enumerate(self._offers):
            style = "bold" if n == self._twice else ""
            used = max(text.width(last.plain) + 4, 13) if last else 0
            if last and not offer.note and used + 3 + text.width(offer.words) < columns:
                last.append(" " * (used - text.width(last.plain)) + f"{offer.key}  ")
                last.append(offer.words, style)
                continue
            rows = _hung(f" {offer.key or ' '}  ", offer.words, columns, style)
            lines += [*rows, *wrapped(offer.note, columns, " " * 6, "dim")]
            is_short = len(rows) == 1 and not offer.note and text.width(offer.words) <= SHORT
            last = rows[0] if is_short else None
        lines = lines or [*wrapped(self.request.why, columns, " ")]
        for more in self.request.more[:MORE]:
            lines += wrapped(marked_line(more), columns, " ", "dim")
        return [*lines, self._hints(columns)]

    def _hints(self, columns: int) -> StyledText:
        """Return the keys with an effect, as many as there is room for."""
        named = dict([*CHOOSE.values(), WRITES])
        hints = {x.key: named[x.key] for x in self._offers if x.key in named}
        if self._answers and self.request.questions[0].typed:
            hints["i"] = "type an answer"
        seen = {"d": "seen"} if self.request.kind == TURN else {}
        hints |= {"go": "terminal", **seen, "s": "snooze", "Tab": "next", "q": "close"}
        for gone in ("", *GIVES_WAY):
            hints = {key: word for key, word in hints.items() if word != gone}
            if len(row := " · ".join(f"{key} {word}" for key, word in hints.items())) < columns - 1:
                break
        return StyledText(text.cut(f" {row}", columns), "dim")

    def _asks(self, columns: int, height: int) -> list[StyledText]:
        step = self._steps[0]
        lines = [*wrapped(step.title, columns, " ", "bold")]
        options = [self._option(n, columns) for n in range(len(step.options))]
        room = max(1, height - len(lines) - 1)
        typed = self._input(columns, max(1, room // 2 if options else room))
        lines += [*_around(options, self._at, max(1, room - len(typed))), *typed]
        hint = "Enter to continue, Esc to go back"
        if not self._typing:
            or_type = ", i to type an answer" if step.typed else ""
            hint = f"a key or Space to choose{or_type}, {hint}"
            if self._is_lone:
                hint = f"a key twice or Enter{or_type}, Esc to go back"
        return [*lines, StyledText(text.cut(f" {hint}", columns), "dim")]

    def _input(self, columns: int, height: int) -> list[StyledText]:
        """Return the last rows of the typed text, each line in rows of its own."""
        if not self._typing:
            return []
        end = self._typed[-columns * height :]  # a long paste has more than there is room for
        first, *more = [*wrapped(end, columns - 4)][-height:] or [StyledText()]
        rows = [
            StyledText(" > ", "bold").append(first.plain, ""),
            *(StyledText(f"   {r.plain}") for r in more),
        ]
        rows[-1].append("█", "dim")
        return rows

    def _option(self, n: int, columns: int) -> list[StyledText]:
        step = self._steps[0]
        box = ("[x] " if step.options[n] in self._chosen else "[ ] ") if step.many else ""
        mark = ">" if n == self._at and not self._typing else " "
        first, *more = wrapped(f"{_letter(n)}  {box}{step.options[n]}", columns, " ")
        return [StyledText(mark + first.plain[1:]), *more]

    # ------------------------------------------------------------ what a choice needs

    def _offer(self, n: int, once: int) -> None:
        """Choose, or ask for the same key again."""
        offer = self._offers[n]
        if offer.key.isdigit() and n != once and (self._is_read or offer.id in REFUSES):
            self._twice = n
            self._why = f"Press {offer.key} again or Enter to say: {offer.words}."
        else:
            self._choose(offer)

    @property
    def _is_lone(self) -> bool:
        """Return whether an answer is sent as soon as an option is chosen: there is no other step.

        Its key is pressed twice then.
        """
        asked = self.request.questions
        return len(asked) == 1 and not asked[0].many and self._steps[0].field == "answers"

    def _choose(self, offer: Offer) -> bool:
        """Choose, and ask for the choice's fields; return whether the request was read before."""
        if not (self._is_read or offer.id in REFUSES):
            self._why = UNREAD
            return False
        self.chosen, self._given = offer.words, {"choice": offer.id}
        self._steps = _steps(self.request, offer.needs)
        self._next()
        return True

    def _answering(self, key: str) -> Offer | None:
        """Return the choice that a digit stands for: an option of the first question."""
        options = [option for q in self.request.questions[:1] for option in q.options]
        return self._answers if 0 <= _nth(key) < min(len(options), DIGITS) else None

    def _begin(self) -> None:
        self._keep()
        self._given, self._steps = {}, []
        self._clear()

    def _clear(self) -> None:
        self._chosen: list[str] = []
        self._at = 0  # the option that Space chooses
        self._is_pointed = False  # at that option, by its key or by moving to it
        step = self._steps[0] if self._steps else None
        self._typed = self._kept.get((step.field, step.key), step.text) if step else ""
        self._typing = bool(self._steps) and not self._steps[0].options

    def _keep(self) -> None:
        """Keep the typed text for the next time that its field is asked for."""
        if self._steps and self._typing:
            self._kept[self._steps[0].field, self._steps[0].key] = self._typed

    def _fill(self, key: str) -> None:
        step = self._steps[0]
        if key == "leave":
            self._begin()
        elif key == "take":
            pointed = [step.options[self._at]] if self._is_lone and self._is_pointed else []
            self._take(self._typed.rstrip("\n") if self._typing else self._chosen or pointed)
        elif self._typing:
            if key in ("rub", "clear"):
                self._typed = self._typed[:-1] if key == "rub" else ""
            elif text := pasted(key) or (key if len(key) == 1 else ""):
                self._typed += "".join(c for c in text if c.isprintable() or c in "\n\t")
        elif key == "i" and step.typed:
            self._typing = True
        elif key in MOVES or key == "tab":
            self._at = min(max(0, self._at + MOVES.get(key, 1)), len(step.options) - 1)
            self._is_pointed = True
        elif 0 <= (n := self._at if key == " " else _nth(key)) < len(step.options):
            option = step.options[n]
            if self._is_lone and key != " " and not (self._is_pointed and n == self._at):
                self._at, self._is_pointed = n, True
            elif not step.many:
                self._take([option])
            elif option in self._chosen:
                self._chosen.remove(option)
            else:
                self._chosen.append(option)

    def _take(self, said: str | list[str]) -> None:
        step = self._steps[0]
        if not said and not step.optional:
            self._why = "choose an option first" if step.options else "type something first"
            return
        self._keep()
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
        """Ask for the next missing field, or finish."""
        self._clear()
        if self._steps:
            return
        answer = answer_of(self._given) or Answer(self._given["choice"])
        self._why = check(self.request, answer)
        if self._why:
            self._begin()
        else:
            self.taken = self._given


class LongQuestion:
    """A text, from its start, and below it a question; y and Enter means yes, all else no."""

    def __init__(self, parts: Sequence[tuple[str, str]], question: str) -> None:
        self.over = self.is_yes = False
        self._parts, self._question = parts, question  # each part has a style
        self._columns, self._body = 0, [StyledText()]
        self._top, self._room = 0, 1
        self._typed = ""

    def press(self, key: str, now: float) -> None:
        """Apply a key; those that move are the same as for a request."""
        if key in ("take", "leave", "q"):
            self.over, self.is_yes = True, key == "take" and self._typed in ("y", "Y")
        elif (moves := NAMES.get(key, key)) in MOVES or key == " ":
            self._top += MOVES.get(moves, self._room)
        else:
            self._typed = key if len(key) == 1 else ""

    def lines(self, now: float, columns: int, height: int) -> list[StyledText]:
        """Return as much of the text as there is room for, and the question."""
        if columns != self._columns:
            self._columns = columns
            self._body = [
                row for part, style in self._parts for row in wrapped(part, columns, style=style)
            ]
        self._room = max(1, height - 2)
        self._top = max(0, min(self._top, len(self._body) - self._room))
        more = len(self._body) - self._room - self._top
        rule = f"── {more} more: Space " if more > 0 else ""
        asked = StyledText(text.cut(f"{self._question} [y/N] {self._typed}█", columns), "bold")
        seen = self._body[self._top : self._top + self._room]
        return [*seen, StyledText(rule.ljust(columns, "─")[:columns], "dim"), asked][:height]


def _letter(n: int, keys: str = LETTERS) -> str:
    """Return the key of an option, if there are not too many."""
    return keys[n] if n < len(keys) else " "


def _hung(head: str, text: str, columns: int, style: str) -> list[StyledText]:
    """Return the rows of a text, with its key before the first one."""
    first, *more = wrapped(text, columns, " " * len(head), style) or [StyledText()]
    return [StyledText(head).append(first.plain[len(head) :], style), *more]


def _nth(key: str, keys: str = LETTERS) -> int:
    """Return the number of the option for a key, or -1."""
    return keys.find(key) if len(key) == 1 else -1


def _around(blocks: list[list[StyledText]], at: int, room: int) -> list[StyledText]:
    """Return as many rows as there is room for, with those of one block."""
    rows = [row for block in blocks for row in block]
    before = sum(len(block) for block in blocks[:at])
    after = before + len(blocks[at]) if blocks else 0
    start = max(0, min(before, len(rows) - room, max(0, after - room)))
    return rows[start : start + room]


def _offers(request: Request) -> Iterator[Offer]:
    """Return the offers of a request, with their keys."""
    letters = {NEXT.id: WRITES[0]}
    for name in MEANS:
        if (choice := meant(request.choices, name)) and choice.id not in letters:
            letters[choice.id] = CHOOSE[name][0]
    has_digits = not (request.questions or request.fields)
    for n, choice in enumerate(request.choices):
        digit = LETTERS[n] if has_digits and n < DIGITS else ""
        key, needs = letters.get(choice.id, digit), choice.needs
        if needs == "message?":
            yield Offer(choice.id, choice.words.partition(",")[0], "", key)
            key, needs = CHOOSE["reply"][0], "message"
        yield Offer(choice.id, choice.words, needs, key, choice.note)


def _steps(request: Request, needs: str) -> list[Step]:
    """Return the steps for the fields of a choice."""
    if needs == "message":
        return [Step("To it" if request.kind == TURN else "Message", "message")]
    if needs == "input":
        command = next((p.text for p in request.parts if p.kind == "command"), "")
        return [Step("Run this command instead", "input", text=command)]
    if needs == "answers":
        return [_of_question(q) for q in request.questions]
    return [_of_field(f) for f in request.fields] if needs == "content" else []


def _of_question(q: Question) -> Step:
    options = tuple(o.label for o in q.options)
    return Step(q.text, "answers", q.text, options, q.many, typed=q.typed)


def _of_field(f: Field) -> Step:
    options = tuple(o.label for o in f.options) or (("yes", "no") if f.type == "boolean" else ())
    default = "" if f.default is None else str(f.default)
    title = f.title or f.name
    return Step(title, "content", f.name, options, False, f.type, default, not f.required)
