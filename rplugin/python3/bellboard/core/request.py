"""Requests of agents, in full, and the answers to them.

A *request* is made by the dialect of its CLI from the evidence of a question.  It has every text
that is asked about, with hidden characters shown as marks, the *choices*, and a digest of exactly
that.  An *answer* is one of these choices with what it needs; `check` says why
an answer is refused.  Words are derived here and in the dialects, and every screen shows the same.

This file does no I/O, knows no clock, and tolerates any input.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence, Set
from typing import Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import Meta, Raw, Struct

from .last_turn import LastTurn
from .text import ODD, visible
from .untrusted import converted

LONGEST_ANSWER: Final = 1 << 16  # bytes of a message, a typed answer, a changed command
DIGITS: Final = 16  # in a digest
JOINER: Final = ", "  # between several labels in one answer
LONGEST_LIST: Final = 4096  # characters of these, if it is unclear where one ends

# What a screen prints as it is, also in a command to copy; another machine may send anything.
Digest = Annotated[str, Meta(pattern=rf"\A[0-9a-f]{{{DIGITS}}}\Z")]
Word = Annotated[str, Meta(pattern=r"\A[\w-]{1,40}\Z")]
Line = Annotated[str, Meta(pattern=r"\A[^\n]*\Z")]

#: Whose answer counted: ours, the user's in the terminal, or another hook's; or the user
#: stopped the turn there, before or after an answer counted.
OURS: Final = "ours"
TERMINAL: Final = "terminal"
STOPPED: Final = "stopped"
HOOK: Final = "hook"

#: Characters that no answer may have: control characters and lone surrogates.
_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


class Part(Struct, frozen=True, omit_defaults=True, gc=False):
    """A text that is asked about; `old` and `new` are those of a diff."""

    kind: str  # command | text | file | url | diff | plan | json
    label: str = ""
    text: str = ""
    path: str = ""
    old: str = ""
    new: str = ""
    warnings: tuple[str, ...] = ()  # what is hidden in it, in words


class Option(Struct, frozen=True, omit_defaults=True, gc=False):
    """An answer that a question offers."""

    label: str
    description: str = ""


class Question(Struct, frozen=True, omit_defaults=True, gc=False):
    """A question; `many` says that several of its options can be chosen."""

    text: str
    header: str = ""
    many: bool = False
    options: tuple[Option, ...] = ()
    typed: bool = True  # it also takes an answer in the user's own words


class Field(Struct, frozen=True, omit_defaults=True, gc=False):
    """A field of a form."""

    name: str
    title: str = ""
    description: str = ""
    type: str = "string"  # string | number | integer | boolean
    required: bool = False
    options: tuple[Option, ...] = ()
    default: Any = None


class Choice(Struct, frozen=True, omit_defaults=True, gc=False):
    """A possible answer, and the fields that it needs; a `?` marks optional ones."""

    id: Word
    words: Line
    needs: str = ""  # message | message? | answers | content | input
    note: Line = ""  # how long it counts, where it is written


class Request(Struct, frozen=True, omit_defaults=True, gc=False):
    """A request in full, and who makes it; `why` says why it is not complete."""

    id: str
    session_id: str
    agent: str
    kind: str  # permission | question | plan | form
    digest: Digest
    pid: int = 0
    thread: str = ""  # a subagent's id
    thread_type: str = ""
    tool: str = ""
    asked_at: float = 0.0
    title: str = ""
    parts: tuple[Part, ...] = ()
    questions: tuple[Question, ...] = ()
    fields: tuple[Field, ...] = ()
    choices: tuple[Choice, ...] = ()
    complete: bool = True
    why: str = ""
    more: tuple[Line, ...] = ()  # what cannot be chosen here


class Answer(Struct, frozen=True, omit_defaults=True, gc=False):
    """The choice of a person, and the fields that it needs."""

    choice: str
    message: str = ""
    answers: dict[str, list[str] | str] = {}  # text of the question → labels, or a typed text
    content: dict[str, Any] = {}  # name of the field → value
    input: str | None = None  # the command to run instead


class Went(NamedTuple):
    """The moment at which a session went on after it had asked."""

    t: float
    rests: bool  # without any work: the turn is over


class SentAnswer(NamedTuple):
    """An answer that was sent."""

    answer: Answer
    t: float  # when; it was read later
    hook: bool  # to a hook that waited, and not as keys
    went: Went | None = None  # what the CLI itself showed first after the answer


#: The keys that choose, by name, and the choices that each stands for: the first that is offered.
#: The popup uses them, and the editor gets what they come to, with a request.
MEANS: Final[Mapping[str, tuple[str, ...]]] = {
    "yes": ("allow", "approve", "choose", "fill"),
    "always": ("always", "approve-edits"),
    "no": ("deny", "decline"),
    "reply": ("deny", "keep"),
    "stop": ("stop",),
    "edit": ("edit",),
}


def meant(choices: Sequence[Choice], name: str) -> Choice | None:
    """Return the choice that a key stands for: `reply` takes a message, and `no` needs none."""
    for wanted in MEANS[name]:
        for choice in choices:
            needed = choice.needs.startswith("message") if name == "reply" else True
            fits = needed and not (name == "no" and choice.needs == "message")
            if choice.id == wanted and fits:
                return choice
    return None


#: How the id of a choice begins that only the terminal offers.
OFFER: Final = "offer-"


def offered(text: str, words: str) -> Choice:
    """Return the choice of an option that only the terminal offers; its id stands for its text."""
    return Choice(f"{OFFER}{digest_of(squeezed(text))[:8]}", words, note="chosen in its terminal")


#: What a choice may need: fields of an answer.
NEEDS: Final = ("message", "answers", "content", "input")


def digest_of(*facts: object) -> str:
    """Return a hash of JSON values; it is equal only for equal values."""
    import hashlib  # loads OpenSSL, and few commands need it

    encoded = msgspec.json.encode(facts, order="deterministic")
    return hashlib.sha256(encoded).hexdigest()[:DIGITS]


def answer_of(given: Mapping[str, Any]) -> Answer | None:
    """Decode an answer; return None for one of the wrong types.

    Editors cannot tell an empty list from an empty object.
    """
    fields = {name: value for name, value in given.items() if value not in ([], None)}
    return converted(fields, Answer)


def are_distinct(questions: Sequence[Question]) -> bool:
    """Return whether all questions, and the options of each, differ: answers name them by text."""
    texts = [[q.text for q in questions], *([x.label for x in q.options] for q in questions)]
    return all(len({*group}) == len(group) for group in texts)


# ---------------------------------------------------------------- what is refused


def check(request: Request, answer: Answer) -> str:
    """Return why an answer cannot be given to a request, or "" if it can."""
    if not request.complete:
        return request.why
    choice = next((c for c in request.choices if c.id == answer.choice), None)
    if choice is None and answer.choice.startswith(OFFER):
        choice = Choice(answer.choice, "")  # the terminal must still offer it, as is checked there
    if choice is None:
        offered = ", ".join(c.id for c in request.choices)
        return f"“{plain_id(answer.choice)}” is not one of its choices: {offered}"
    needs = choice.needs.removesuffix("?")
    for name in NEEDS:
        if name != needs and getattr(answer, name):
            return f"“{choice.id}” takes no {name}"
    if choice.needs == "message" and not answer.message.strip():
        return f"“{choice.id}” needs a message"
    if needs == "answers":
        return _answers(request.questions, answer.answers)
    if needs == "content":
        return _content(request.fields, answer.content)
    if choice.needs == "input" and not (answer.input or "").strip():
        return f"“{choice.id}” needs a command"
    return fault_in(answer.message, "the message") or fault_in(answer.input or "", "the command")


def plain_id(text: str) -> str:
    """Return a choice as a short word for a message."""
    return re.sub(r"[^\w-]", "?", text[:40])


def fault_in(text: str, name: str) -> str:
    """Return why a text cannot be given to an agent, or ""."""
    if len(text) > LONGEST_ANSWER or len(text.encode("utf-8", "replace")) > LONGEST_ANSWER:
        return f"{name} is longer than {LONGEST_ANSWER >> 10} kB"
    if (found := _CONTROL.search(text)) is not None:
        return f"{name} has the control character U+{ord(found[0]):04X}"
    return ""


def _answers(questions: Sequence[Question], given: Mapping[str, list[str] | str]) -> str:
    by_text = {q.text: q for q in questions}
    if not given:
        return "no question is answered"
    for text, said in given.items():
        question = by_text.get(text)
        if question is None:
            return "it does not ask that question"
        if why := _typed(question, said) if isinstance(said, str) else _chosen(question, said):
            return why
    return ""


def _typed(question: Question, text: str) -> str:
    if not question.typed:
        return "it takes only the options that it offers"
    return fault_in(text, "the answer") if text.strip() else "an answer is empty"


def _chosen(question: Question, labels: Sequence[str]) -> str:
    """Return why these labels cannot be the answer."""
    known = [option.label for option in question.options]
    if not labels:
        return "an answer is empty"
    if len(labels) > 1 and not question.many:
        return "only one option can be chosen"
    if not {*labels} <= {*known}:
        return "it does not offer that option"
    if len({*labels}) != len(labels):
        return "an option is chosen twice"
    chosen = {*labels}
    joined = JOINER.join(label for label in known if label in chosen)
    if question.many and any(JOINER in label for label in known) and _is_unclear(joined, {*known}):
        return "the names of these options can be read in two ways; type the answer instead"
    return ""


def _is_unclear(joined: str, labels: Set[str]) -> bool:
    """Return whether a text can be read as a list of labels in several ways, or is very long."""
    if len(joined) > LONGEST_LIST:
        return True
    lengths = sorted({len(label) for label in labels} - {0})
    ways = {0: 1}
    for start in range(len(joined)):
        for end in (start + length for length in lengths if start in ways):
            if joined[start:end] not in labels:
                continue
            after = end if end == len(joined) else end + len(JOINER)
            if end == len(joined) or joined.startswith(JOINER, end):
                ways[after] = min(ways.get(after, 0) + ways[start], 2)
    return ways.get(len(joined), 0) > 1


def _content(fields: Sequence[Field], given: Mapping[str, Any]) -> str:
    by_name = {field.name: field for field in fields}
    for name, value in given.items():
        if name not in by_name:
            return f"the form has no field “{plain_id(name)}”"
        if why := _value(by_name[name], value):
            return why
    missing = [f for f in fields if f.required and given.get(f.name) in (None, "")]
    return f"the form needs “{missing[0].title or missing[0].name}”" if missing else ""


def _value(field: Field, value: object) -> str:
    name = f"“{field.title or field.name}”"
    if field.options and value not in [option.label for option in field.options]:
        return f"{name} is not one of its options"
    if field.type == "boolean":
        return "" if isinstance(value, bool) else f"{name} must be yes or no"
    if field.type in ("number", "integer"):
        is_float = isinstance(value, float) and math.isfinite(value)
        if not is_float and type(value) is not int:  # as True is one as well
            return f"{name} must be a number"
        is_whole = field.type == "number" or value == int(value)  # type: ignore[call-overload]
        return "" if is_whole else f"{name} must be a whole number"
    return fault_in(value, name) if isinstance(value, str) else f"{name} must be a text"


# The digest of what a dialog shows of a request, to find the request again on a screen.
#
# It covers the whole text, because the line kept of it may be truncated or redacted. Texts that
# differ only in blanks and line breaks, as a terminal wraps them, have the same digest. What
# binds an answer is another digest, of all that is asked: see request.py.


UNKNOWN: Final = "?"  # for input that cannot be read; never equals a digest
_BLANKS: Final = re.compile(r"[ \t\n]+")


class _Input(Struct):
    """The parts of a tool's input that a dialog shows."""

    command: str | None = None
    description: str | None = None
    file_path: str | None = None
    notebook_path: str | None = None
    url: str | None = None


_decode = msgspec.json.Decoder(_Input).decode


def squeezed(text: str) -> str:
    """Remove the blanks that a terminal may add or drop when it wraps a text."""
    return _BLANKS.sub("", text)


def shown_digest(text: str) -> str:
    """Return a hash that is equal for equal texts, however they are wrapped."""
    import hashlib  # loads OpenSSL, and few commands need it

    return hashlib.sha256(squeezed(text).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def shown_digest_of(raw: Raw) -> str:
    """Return the digest of what a tool would do: a command with its description, a file, a URL."""
    try:
        given = _decode(raw)
    except ODD:
        return UNKNOWN
    if given.command is not None:
        return shown_digest(given.command + (given.description or ""))
    named = (given.file_path, given.notebook_path, given.url)
    return next((shown_digest(text) for text in named if text is not None), UNKNOWN)


# The reply of another machine, in the form that the asker uses.
#
# A machine may be older, newer or hostile: its reply has the fields that are known here, of the
# types that are used here, or it cannot be used.
#
# This file does no I/O, knows no clock, and tolerates any input.


MOST_ROWS: Final = 200  # of a preview
WIDEST: Final = 1000  # characters of a row
CHECK: Final = "; check whether it was done"  # where no reply came
NOTHING: Final = "nothing"  # followed an answer, as far as is known


Given = Mapping[str, Any]  # what a request to a host is about, and its details
Reply = dict[str, Any]  # what happened


def refusal(why: str) -> Reply:
    """Return the reply to a request that is not carried out."""
    return {"ok": False, "why": why}


class Way(Struct, frozen=True):
    """A way in which a request can be answered."""

    name: str
    words: str


class AnswerableRequest(Request, frozen=True, omit_defaults=True, gc=False):
    """A request, the ways in which it can be answered, best first, and the choices of the best."""

    ways: tuple[Way, ...] = ()
    way: str = ""
    takes: Line = ""


class Shown(Struct, frozen=True):
    """The reply to `request`."""

    request: AnswerableRequest


class Answered(Struct, frozen=True):
    """The reply to `answer`: `outcome` is "taken" if the agent went on."""

    way: str = ""
    outcome: str = NOTHING
    text: str = "it does not say what followed; look there"


class Stopped(Struct, frozen=True):
    """The reply to `stop`."""

    text: str = "it does not say what followed; look there"


class Outcome(Struct, frozen=True):
    """The reply to `send` and `interrupt`."""

    outcome: str = NOTHING
    text: str = "it does not say what followed; look there"


class Previewed(Struct, frozen=True):
    """The reply to `preview`."""

    rows: tuple[str, ...]


class TurnShown(Struct, frozen=True):
    """The reply to `turn`."""

    turn: LastTurn


class Compared(Struct, frozen=True):
    """The reply to `diff`."""

    diff: str


#: What was asked → the reply that is understood.  Other replies have no field that is used, or one
#: that the asker checks.
KNOWN: Final[Mapping[str, type[Struct]]] = {
    "request": Shown,
    "answer": Answered,
    "stop": Stopped,
    "send": Outcome,
    "interrupt": Outcome,
    "preview": Previewed,
    "turn": TurnShown,
    "diff": Compared,
}


def with_keys(reply: Reply) -> Reply:
    """Return the reply to `request` with the choice that each key stands for."""
    shown = converted(reply.get("request"), Request)
    named = {name: meant(shown.choices, name) for name in MEANS} if shown else {}
    keys = {name: choice.id for name, choice in named.items() if choice}
    return {**reply, "request": {**reply["request"], "keys": keys}} if keys else reply


def understood(do: str, reply: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a reply with only the fields of this version; None if it lacks a needed field."""
    kind = KNOWN.get(do)
    if kind is None:
        return dict(reply)
    made = converted(reply, kind)
    if made is None:
        return None
    if isinstance(made, Previewed):
        rows = (visible(row[:WIDEST]).replace("\n", " ") for row in made.rows[:MOST_ROWS])
        made = Previewed(tuple(rows))
    fields: dict[str, Any] = msgspec.to_builtins(made)
    return {**fields, "ok": reply.get("ok") is True}
