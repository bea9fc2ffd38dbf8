"""Read a dialog from a terminal screen, and find the next key of an answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final, NamedTuple

from ...core.request import (
    OFFER,
    Answer,
    Choice,
    Field,
    Question,
    Request,
    offered,
    shown_digest,
    squeezed,
)
from ...core.text import cut, marked
from ..agent import About, Press
from ..inputs import last_rows
from .rules import SESSION, WHOSE, WORDS

# Read a dialog from a terminal screen, before a key is typed into it.
#
# The numbers of the answers vary ("switch to auto mode" once took the third place, where "no"
# had been), so they are read from the screen. The dialog must show everything that is asked:
# the whole command or the exact file. A dialog of another kind, or one whose start is not
# visible, cannot be answered remotely.


DEPTH: Final = 60  # rows from the bottom in which a dialog must be
BELOW: Final = 3  # rows allowed below the answers: "Esc to cancel · Tab to amend"
WRAPPED: Final = 3  # rows of a question

#: The CLI's arrow before the selected answer; a box if several can be chosen; a text.
_OPTION = re.compile(
    r"[\s│|]*(?:(?P<arrow>\u276f|>)\s*)?(?P<key>[1-9])\.(?:\s+|(?=[A-Z]))"
    r"(?:\[(?P<box>[ ✔])\]\s+)?(?P<text>\S(?:.*[^\s│|])?)[\s│|]*"
)
_PLAIN = re.compile(r"(?:\s*(?P<arrow>\u276f))?\s+(?P<text>Yes|No)")  # in auto mode
_TOP = re.compile(r"╭?─{8,}╮?")
_BOX = re.compile(r"│(.*?)│?")
_LINE = re.compile("╌{8,}")  # above and below the request, from 2.1.2xx on
_COMMAND = re.compile(r"(Bash|Run) command\b")
_FILE = re.compile(r"(Create|Edit|Overwrite|Write) (file|notebook)\b")
_FETCH = re.compile(r"Fetch(  |$)")
_NO_DESCRIPTION: Final = "Run shell command"  # shown if there is no description
_AFTER_URL: Final = {True: "prompt:", False: "Claude wants to fetch content from "}


class DialogOption(NamedTuple):
    """An answer that a dialog offers."""

    key: str  # its number; empty if it has none, as in auto mode
    text: str  # the text of its first row
    whole: str  # the text of all its rows
    chosen: bool  # whether the CLI's arrow is before it
    checked: bool | None  # None: no box
    row: int


class Dialog(NamedTuple):
    """A question on a terminal: its answers, and its rows."""

    options: tuple[DialogOption, ...]
    #: The rows above the question, from the title on; empty if not all are visible.
    above: tuple[str, ...]
    below: tuple[str, ...]
    whole: tuple[str, ...]  # all rows on the screen, from the top of the dialog to its end

    def is_about(self, detail: str, digest: str = "", folders: Collection[str] = ()) -> bool:
        """Return whether the dialog shows a text with this digest, if given, else this detail.

        A file may be shown relative to one of the folders.
        """
        readings = _readings(self.above, detail, folders)
        if digest:
            return any(shown_digest(text) == digest for text in readings)
        wanted = squeezed(detail)
        return any(squeezed(text) == wanted for text in readings)


def dialog_of(screen: Sequence[str]) -> Dialog | None:
    """Return the yes-or-no question at the bottom of a screen, or None."""
    rows = last_rows(screen, DEPTH)
    options = options_in(rows)
    if len(options) < 2 or sum(option.chosen for option in options) != 1:
        return None
    at, end = options[0].row, options[-1].row + 1
    below = tuple(row for row in rows[end:] if row.strip(" │|╰─╯"))
    if len(below) > BELOW:
        return None
    top = max((n for n, row in enumerate(rows[:at]) if _TOP.fullmatch(row)), default=None)
    above = _above(rows[top + 1 : at]) if top is not None else ()
    return Dialog(options, above, below, tuple(rows[top or 0 :]))


def options_in(rows: Sequence[str]) -> tuple[DialogOption, ...]:
    """Return the last list of answers: numbered from 1 without a gap, or a plain Yes and No."""
    found = _matches(_OPTION, rows)
    first = max((place for place, (_, m) in enumerate(found) if m["key"] == "1"), default=0)
    found, plain = found[first:], _matches(_PLAIN, rows)[-2:]
    if len(plain) == 2 and (not found or plain[0][0] > found[-1][0]):
        found = plain
        is_list = plain[1][0] == plain[0][0] + 1 and plain[0][1]["text"] != plain[1][1]["text"]
    else:
        is_list = [m["key"] for _, m in found] == [str(n + 1) for n in range(len(found))]
    if not (found and is_list):
        return ()
    ends = [n for n, _ in found[1:]] + [len(rows)]
    return tuple(_option(n, m, rows[n + 1 : end]) for (n, m), end in zip(found, ends, strict=True))


def _matches(shape: re.Pattern[str], rows: Sequence[str]) -> list[tuple[int, re.Match[str]]]:
    return [(n, match) for n, row in enumerate(rows) if (match := shape.fullmatch(row))]


def _option(row: int, m: re.Match[str], more: Sequence[str]) -> DialogOption:
    """Read an answer, which continues in the rows below, up to an empty one."""
    end = next((n for n, text in enumerate(more) if not text.strip(" │|")), len(more))
    whole = "\n".join([m["text"], *(text.strip(" │|") for text in more[:end])])
    facts = m.groupdict("")  # a plain answer has neither number nor box
    box, key = facts.get("box", ""), facts.get("key", "")
    return DialogOption(key, m["text"], whole, bool(m["arrow"]), box == "✔" if box else None, row)


# ---------------------------------------------------------------- the request


def _above(rows: Sequence[str]) -> tuple[str, ...]:
    """Return the rows between the top and the question, or () if the question is not found."""
    inside = [box[1] if (box := _BOX.fullmatch(row)) else row for row in rows]
    asks = [n for n, row in enumerate(inside) if row.strip().startswith("Do you want ")]
    if not asks or len([row for row in inside[asks[-1] :] if row.strip()]) > WRAPPED:
        return ()
    above = [row.rstrip() for row in inside[: asks[-1]]]
    while above and not above[-1]:
        above.pop()
    return tuple(above)


def _readings(shown: Sequence[str], detail: str, folders: Collection[str]) -> Iterator[str]:
    """Yield the texts that a dialog may be asking about."""
    title = shown[0].strip() if shown else ""
    lines = [n for n, row in enumerate(shown) if _LINE.fullmatch(row)]
    above = shown[1 : lines[0]] if lines else shown[1:]
    between = shown[lines[0] + 1 : lines[1]] if len(lines) == 2 else ()
    if _COMMAND.match(title) and between:
        # The description ends where the command begins; there may be a hint above it.
        command = "\n".join(_unmarked(between))
        yield from (command + "\n".join(_unmarked(above[n:])) for n in range(len(above) + 1))
    elif _COMMAND.match(title) and not lines:
        # A note by the CLI may follow, indented less.
        notes = [n for n, row in enumerate(above) if re.match(r" ?\S", row)]
        text = squeezed("".join(above[: notes[0]] if notes else above))
        yield text
        yield text.removesuffix(squeezed(_NO_DESCRIPTION))
    elif _FILE.match(title):
        path = "".join(row.strip() for row in above)
        yield path
        yield from (_below(folder, path) for folder in folders if not path.startswith("/"))
        if not folders and detail.endswith(f"/{path}"):
            yield detail
    elif _FETCH.match(title):
        rows = [row.strip() for row in between or above]
        after = [n for n, row in enumerate(rows) if row.startswith(_AFTER_URL[bool(between)])]
        if after:
            yield "".join(rows[: after[-1]]).removeprefix("url:" if between else "")


def _unmarked(rows: Sequence[str]) -> list[str]:
    """Return rows without their leading bar, if all rows have a bar."""
    marked = [row.strip().startswith("│") for row in rows]
    return [row.strip().removeprefix("│") for row in rows] if all(marked) else [*rows]


def _below(folder: str, path: str) -> str:
    """Join a folder and a relative path, without looking at the file system."""
    names: list[str] = []
    for name in f"{folder}/{path}".split("/"):
        if name == "..":
            del names[-1:]
        elif name not in ("", "."):
            names.append(name)
    return "/" + "/".join(names)


# Which key to press next in a dialog of several parts: questions, and the fields of a form.


DOWN, RIGHT, ENTER, SPACE = "Down", "Right", "Enter", "Space"

ELSEWHERE: Final = "; go there to answer"
NOT_SHOWN: Final = "its terminal does not show the question" + ELSEWHERE
IN_PART: Final = "its terminal does not show the whole request" + ELSEWHERE
DIFFERENT: Final = "its terminal shows a different request" + ELSEWHERE
NOT_OFFERED: Final = "its dialog does not offer that" + ELSEWHERE
BEGUN: Final = "its dialog already contains other input" + ELSEWHERE
NOT_TYPED: Final = "this text cannot be typed into its dialog" + ELSEWHERE
ALL: Final = "answer every question: its terminal accepts nothing less"

OTHER: Final = re.compile(r"Type something\.?")
REVIEW: Final = squeezed("Review your answers")
READY: Final = squeezed("Ready to submit your answers?")
SUBMIT: Final = "Submit answers"
EMPTY: Final = frozenset({"Type something…", "not set"})

_RULE: Final = re.compile(r"\s*─{20,}")
_TABS: Final = re.compile(r"\s*(?:[←→]\s+)?[☐☒✔]\s.*")
_SERVER: Final = re.compile(r"\s*MCP server .(.*). requests your input")
_FIELD: Final = re.compile(
    r"\s*(?:(?P<arrow>❯)\s*)?(?:(?P<mark>[*✔])\s*)?(?P<name>[^\s:*✔❯][^:]*): (?P<value>.+)"
)
_LISTED: Final = re.compile(r"\s*(?:(?P<arrow>❯)\s*)?[◯◉●] (?P<label>.+)")  # of an open field
CLOSED: Final = "▸ "  # before the value of a field that can be opened
OPENED: Final = "▾"
BOX: Final = {False: "☐", True: "☒"}
_BUTTONS: Final = re.compile(r"(?:\s*(?P<accept>❯))?\s+Accept\s+(?:(?P<decline>❯)\s*)?Decline")


def type_text(shown: str, is_empty: bool, wanted: str, text: str, rows: tuple[str, ...]) -> Press:
    """Type a text into the chosen row, then send it, once the row shows exactly that."""
    if is_empty:
        return Press(text=text, rows=rows)
    if squeezed(shown) == squeezed(wanted):
        return Press(ENTER, rows=rows, last=True)
    return Press(why=BEGUN)


# ---------------------------------------------------------------- questions


def answer_question(rows: Sequence[str], request: Request, answer: Answer) -> Press:
    """Answer the question on the page that is shown, or send the answers on the last page."""
    tabs = max((n for n, row in enumerate(rows) if _TABS.fullmatch(row)), default=0)
    if not (tabs and _RULE.fullmatch(rows[tabs - 1])):
        return Press(why=NOT_SHOWN)
    end = next((n for n in range(tabs, len(rows)) if _RULE.fullmatch(rows[n])), len(rows))
    body, shown = rows[tabs + 1 : end], tuple(rows[tabs - 1 :])
    options = options_in(body)
    if len(options) < 2:
        return Press(why=NOT_SHOWN)
    asks = squeezed("".join(row.strip().removeprefix("│") for row in body[: options[0].row]))
    if end == len(rows):
        return _review(asks, options, request, answer, shown)
    asked = next((q for q in request.questions if squeezed(q.text) == asks), None)
    if asked is None or not _offers(asked, options):
        return Press(why=DIFFERENT)
    wanted = answer.answers.get(asked.text)
    if not wanted:
        return Press(why=NOT_OFFERED if answer.choice != "choose" else ALL)
    is_last = len(request.questions) == 1 and not asked.many
    if isinstance(wanted, str):
        return _typed(asked, options[-1], wanted, shown, is_last)
    labels = [x.label for x in asked.options]
    if not {*wanted} <= {*labels}:  # an answer to another request
        return Press(why=NOT_OFFERED)
    if asked.many:
        wrong = [
            o.key
            for o, label in zip(options, labels, strict=False)
            if o.checked != (label in wanted)
        ]
        wrong += [options[-1].key] if options[-1].checked else []
        return Press(wrong[0] if wrong else RIGHT, rows=shown)
    return Press(options[labels.index(wanted[0])].key, rows=shown, last=is_last)


def _typed(
    asked: Question, other: DialogOption, text: str, shown: tuple[str, ...], is_last: bool
) -> Press:
    if asked.many:
        return Press(why=NOT_TYPED)
    if not other.chosen:
        return Press(other.key, rows=shown)
    is_empty = OTHER.fullmatch(other.text) is not None
    made = type_text(other.whole, is_empty, text, text, shown)
    return made._replace(last=made.last and is_last)


def _offers(asked: Question, options: Sequence[DialogOption]) -> bool:
    """Return whether the rows are the options of a question, and a row for a text."""
    if len(options) != len(asked.options) + 1:
        return False
    if any(not o.key or (o.checked is not None) != asked.many for o in options):
        return False
    said = [squeezed(x.label + x.description) for x in asked.options]
    return [squeezed(o.whole) for o in options[:-1]] == said


def _review(
    asks: str,
    options: Sequence[DialogOption],
    request: Request,
    answer: Answer,
    shown: tuple[str, ...],
) -> Press:
    """Send the answers if the last page shows exactly these answers."""
    submit = next((o.key for o in options if o.whole == SUBMIT), "")
    if not (submit and asks.startswith(REVIEW)):
        return Press(why=NOT_SHOWN)
    rest = asks.removeprefix(REVIEW).removesuffix(READY)
    heads = [squeezed(f"●{q.text}→") for q in request.questions]
    for n, (asked, head) in enumerate(zip(request.questions, heads, strict=True)):
        said, rest = rest.removeprefix(head), ""
        if n + 1 < len(heads):
            said, after, rest = said.partition(heads[n + 1])
            rest = after + rest
        if not _says(said, answer.answers.get(asked.text, [])):
            return Press(why=BEGUN)
    return Press(submit, rows=shown, last=True)


def _says(said: str, wanted: list[str] | str) -> bool:
    """Return whether the last page shows these labels, in any order.

    The page quotes a label with a comma.
    """
    labels = [wanted] if isinstance(wanted, str) else wanted
    for label in sorted(map(squeezed, labels), key=len, reverse=True):
        shown = next((text for text in (f'"{label}"', label) if text in said), None)
        if shown is None:
            return False
        said = said.replace(shown, "", 1)
    return bool(labels) and said == "," * (len(labels) - 1)


# ---------------------------------------------------------------- forms


FIELDS: Final = frozenset({"string", "number", "integer", "boolean"})  # that keys can fill in


def fill_form(rows: Sequence[str], request: Request, answer: Answer) -> Press:
    """Fill in the chosen field, or move on to the next one or a button."""
    top = max((n for n, row in enumerate(rows) if _SERVER.fullmatch(row)), default=-1)
    end = next((n for n in range(max(top, 0), len(rows)) if _BUTTONS.fullmatch(rows[n])), -1)
    if min(top, end) < 0:
        return Press(why=NOT_SHOWN)
    server, buttons, shown = _SERVER.fullmatch(rows[top]), _BUTTONS.fullmatch(rows[end]), rows[top:]
    assert server and buttons
    found = [(n, m) for n in range(top, end) if (m := _FIELD.fullmatch(rows[n]))]
    first = found[0][0] if found else end
    said = "".join(part.text for part in request.parts if part.kind == "text")
    if server[1] != request.tool or squeezed("".join(rows[top + 1 : first])) != squeezed(said):
        return Press(why=DIFFERENT)
    if answer.choice == "decline":
        if buttons["decline"]:
            return Press(ENTER, rows=(*shown,), last=True)
        return Press(RIGHT if buttons["accept"] else DOWN, rows=(*shown,))
    if answer.choice != "fill" or any(f.type not in FIELDS for f in request.fields):
        return Press(why=NOT_TYPED)
    named = [m["name"] for _, m in found]
    known = [(f.name, f.title) for f in request.fields]
    if len(named) != len(known) or any(n not in k for n, k in zip(named, known, strict=True)):
        return Press(why=DIFFERENT)
    wanted = [_shown_as(f, answer.content.get(f.name)) for f in request.fields]
    values = [_value(m) for _, m in found]
    here = next((n for n, (_, m) in enumerate(found) if m["arrow"]), -1)
    if here < 0:
        is_done = bool(buttons["accept"]) and values == wanted
        return Press(ENTER, rows=(*shown,), last=True) if is_done else Press(why=BEGUN)
    below = rows[found[here][0] + 1 : found[here + 1][0] if here + 1 < len(found) else end]
    press = _set_field(request.fields[here], values[here], wanted[here], below)
    return press if press.why else press._replace(rows=(*shown,))


def _shown_as(field: Field, value: object) -> str:
    """Return what a field shows once it has a value; "" if it is left out."""
    if value is None or value == "":
        return ""
    if isinstance(value, bool):
        return BOX[value]
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    named = (o.description or o.label for o in field.options if o.label == value)
    return next(named, str(value))


def _value(m: re.Match[str]) -> str:
    """Return what a field has on the screen; an empty box is only a value with its mark."""
    value = m["value"].removeprefix(CLOSED)
    is_unset = value in EMPTY or (value == BOX[False] and m["mark"] != "✔")
    return "" if is_unset else value


def _set_field(field: Field, value: str, wanted: str, below: Sequence[str]) -> Press:
    """Return the next key for the chosen field, or why it is left alone."""
    if value == wanted:
        return Press(DOWN)
    if field.type == "boolean" and wanted and value in ("", *BOX.values()):
        return Press(SPACE)
    if value == OPENED:
        listed = [m for row in below if (m := _LISTED.fullmatch(row))]
        at = next((n for n, m in enumerate(listed) if m["arrow"]), len(listed))
        left = [m["label"].strip() for m in listed[at:]]
        if wanted not in left:
            return Press(why=BEGUN)
        return Press(SPACE if left[0] == wanted else DOWN)
    if value or not wanted:
        return Press(why=BEGUN)
    return Press(RIGHT) if field.options else Press(text=wanted)


# Which key to press next, so that the dialog on a screen gets an answer.
#
# Nothing is counted or remembered: each key follows from the screen alone, which must show
# exactly what is asked. So an answer of several keys is proven after each key, and an answer that
# somebody else has begun is either completed as it was meant or left alone.


LONGEST_SHOWN: Final = 300  # cells of an answer that only the terminal has
LONGEST_TYPED: Final = 200  # characters to type: the CLI folds a longer paste
TAKES: Final = f"one line, at most {LONGEST_TYPED} printable characters"
TAB: Final = "Tab"
EDITS: Final = WORDS["edits"] + WHOSE[SESSION]

#: Answers of a plan's dialog, as seen in 2.1.76, 2.1.119, 2.1.328, 2.1.330 (tests/data/captures).
APPROVE: Final = frozenset(
    {
        "Yes",
        "Yes, manually approve edits",
        "Yes, and manually approve edits",
        "Yes, and switch to default (ask each time) for this session",
    }
)
APPROVE_EDITS: Final = frozenset({"Yes, auto-accept edits", "Yes, and auto-accept edits"})
#: Answers of a permission's dialog, in 2.1.76 and 2.1.119, and from 2.1.328 on; without blanks.
ALL_EDITS: Final = frozenset(
    {
        squeezed("Yes, allow all edits during this session (shift+tab)"),
        squeezed(
            "Yes, and switch to accept edits (auto-approve file edits and common file commands)"
            " for this session (shift+tab)"
        ),
    }
)
KEEP: Final = "Tell Claude what to change"
FEEDBACK: Final = "shift+tab to approve with this feedback"  # a hint below that answer
NO_PLAN: Final = "Claude wants to exit plan mode"
NO_AND: Final = "No, and tell Claude what to do differently"
UNPROVEN: Final = (
    "its dialog does not say exactly that: go there. With answers on, a waiting hook takes it"
)
STOPS: Final = "“No” without a message also stops the turn: choose “stop”, or give a message"

_TITLE: Final = re.compile(r"\s*(?:Exit plan mode|Ready to code)\?")
_YES_OR_NO: Final = re.compile(r"Yes$|No\b")
_ABOUT: Final = re.compile(r"(?:againfor:?|readingfrom)(.+?)(?:duringthissession)?$")
_DOTS: Final = re.compile(r"\s*╌{8,}")
_AMEND: Final = "Tab to amend"
_OPEN: Final = "Esc to cancel"  # the hint, alone, below a plain "No" whose text is open


def press(screen: Sequence[str], request: Request, answer: Answer, about: About) -> Press:
    """Return the next key, or why there is none."""
    texts = [answer.message, *answer.answers.values(), *answer.content.values()]
    if not all(is_typeable(text) for text in texts if isinstance(text, str)):
        return Press(why=f"its dialog takes only {TAKES}{ELSEWHERE}")
    rows = last_rows(screen, DEPTH)
    if request.kind == "permission":
        return _permission(rows, request, answer, about)
    kinds: dict[str, Callable[[Sequence[str], Request, Answer], Press]]
    kinds = {"question": answer_question, "plan": _plan, "form": fill_form}
    kind = kinds.get(request.kind)
    return kind(rows, request, answer) if kind else Press(why=NOT_OFFERED)


def is_typeable(text: str) -> bool:
    """Return whether a text arrives unchanged when it is typed."""
    return len(text) <= LONGEST_TYPED and text == text.strip() and text.isprintable()


def _take(options: Sequence[DialogOption], texts: Collection[str], rows: tuple[str, ...]) -> Press:
    """Take the only answer with one of these texts, by its number or by moving to it."""
    found = [option for option in options if option.whole in texts]
    if len(found) != 1:
        return Press(why=NOT_OFFERED)
    if found[0].key:
        return Press(found[0].key, rows=rows, last=True)
    return Press(ENTER, rows=rows, last=True) if found[0].chosen else Press(DOWN, rows=rows)


def offers(screen: Sequence[str], request: Request) -> tuple[Choice, ...]:
    """Return the answers on a screen that are not among a permission's choices, in short."""
    dialog = dialog_of(last_rows(screen, DEPTH)) if request.kind == "permission" else None
    ours = {squeezed(choice.words).rstrip("`") for choice in request.choices}
    found = []
    for option in dialog.options if dialog else ():
        about = _ABOUT.search(squeezed(option.whole))
        is_ours = about is not None and any(words.endswith(about[1]) for words in ours)
        if not (is_ours or squeezed(option.whole) in ALL_EDITS or _YES_OR_NO.match(option.whole)):
            words = cut(" ".join(marked(option.whole).split()), LONGEST_SHOWN)
            found.append(offered(option.whole, words))
    return tuple(found)


def _permission(rows: Sequence[str], request: Request, answer: Answer, about: About) -> Press:
    dialog = dialog_of(rows)
    if dialog is None:
        return Press(why=NOT_SHOWN)
    if not dialog.above:
        return Press(why=IN_PART)
    if not dialog.is_about(*about):
        return Press(why=DIFFERENT)
    if answer.choice == "allow":
        return _take(dialog.options, {"Yes"}, dialog.whole)
    if answer.choice.startswith(OFFER):
        found = [o.whole for o in dialog.options if offered(o.whole, "").id == answer.choice]
        return _take(dialog.options, found, dialog.whole)
    if any(c.id == answer.choice and c.words == EDITS for c in request.choices):
        found = [option.whole for option in dialog.options if squeezed(option.whole) in ALL_EDITS]
        return _take(dialog.options, found, dialog.whole)
    if answer.choice not in ("deny", "stop", "edit"):
        return Press(why=UNPROVEN)
    nos = [option for option in dialog.options if re.match(r"No\b", option.text)]
    if len(nos) != 1 or answer.choice not in ("deny", "stop"):
        return Press(why=NOT_OFFERED)
    if answer.choice == "stop":
        return _take(dialog.options, {nos[0].whole}, dialog.whole)
    return _deny(dialog, nos[0], answer.message) if answer.message else Press(why=STOPS)


def _deny(dialog: Dialog, no: DialogOption, message: str) -> Press:
    """Move to the no, open its text, type the message, send it."""
    if not no.chosen:
        return Press(DOWN, rows=dialog.whole)
    if squeezed(_AMEND) in squeezed("".join(dialog.below)):
        return Press(TAB, rows=dialog.whole) if no.whole == "No" else Press(why=NOT_OFFERED)
    said, hint = squeezed(no.whole), squeezed(NO_AND)
    # A narrow terminal wraps the hint or cuts its end: "No,and tell Claude what to do di…".
    is_cut = said.endswith("…") and hint.startswith(said[:-1])
    is_open = squeezed("".join(dialog.below)) == squeezed(_OPEN)
    if no.whole == "No" and not is_open:
        return Press(why=NOT_OFFERED)  # keys typed into a closed list would choose an answer
    empty = no.whole == "No" or said.startswith(hint) or is_cut
    return type_text(no.whole, empty, f"No, {message}", message, dialog.whole)


def _plan(rows: Sequence[str], request: Request, answer: Answer) -> Press:
    top = max((n for n, row in enumerate(rows) if _TITLE.fullmatch(row)), default=-1)
    options = [option for option in options_in(rows) if option.row > top >= 0]
    if len(options) < 2 or sum(option.chosen for option in options) != 1:
        return Press(why=NOT_SHOWN)
    shown, head = tuple(rows[top:]), rows[top : options[0].row]
    plan = "".join(part.text for part in request.parts if part.kind == "plan")
    dots = [n for n, row in enumerate(head) if _DOTS.fullmatch(row)]
    asks = "".join(head[dots[0] + 1 : dots[-1]]) if dots else ""
    if _letters(asks) != _letters(plan) or not (dots or any(NO_PLAN in row for row in head)):
        return Press(why=DIFFERENT)
    if answer.choice == "keep":
        return _keep(options[-1], answer.message, shown)
    texts = {"approve": APPROVE, "approve-edits": APPROVE_EDITS, "stop": {"No"}}
    return _take(options, texts.get(answer.choice, ()), shown)


def _keep(keep: DialogOption, message: str, shown: tuple[str, ...]) -> Press:
    """Move to the answer that takes a text, type the message, send it."""
    said = squeezed(keep.whole).removesuffix(squeezed(FEEDBACK))
    empty = said == squeezed(KEEP)
    if keep.chosen and keep.key == "3":
        return type_text(said, empty, message, message, shown)
    return Press(keep.key, rows=shown) if empty else Press(why=NOT_OFFERED)


def _letters(text: str) -> str:
    """Return the letters and digits of a plan, because the CLI renders its Markdown."""
    return re.sub(r"[\W_]+", "", squeezed(text))
