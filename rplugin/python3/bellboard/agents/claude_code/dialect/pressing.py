"""Which key to press next, so that the dialog on a screen gets an answer.

Nothing is counted or remembered: each key follows from the screen alone, which must show exactly
what is asked.  So an answer of several keys is proven after each of them, and one that somebody
else has begun to give is either completed as it was meant or left alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Final

from ....core.request import Answer, Request, squeezed
from ....core.text import cut, marked
from ...dialect import About, Press
from .dialog import Dialog, Option, bottom_of, dialog_of, options_in
from .filling import (
    DIFFERENT,
    DOWN,
    ELSEWHERE,
    ENTER,
    IN_PART,
    NOT_OFFERED,
    NOT_SHOWN,
    form,
    question,
    write,
)
from .suggestions import SESSION, WHOSE, WORDS

LONGEST_SHOWN: Final = 72  # cells of an answer that only the terminal offers
LONGEST_TYPED: Final = 200  # characters to type: the CLI folds a longer paste
TAKES: Final = f"one line, at most {LONGEST_TYPED} printable characters"
TAB: Final = "Tab"
EDITS: Final = WORDS["edits"] + WHOSE[SESSION]

#: Answers of a plan's dialog, as seen in 2.1.76, 2.1.119, 2.1.328 and 2.1.330 (tests/captures).
APPROVE: Final = frozenset(
    {
        "Yes",
        "Yes, manually approve edits",
        "Yes, and manually approve edits",
        "Yes, and switch to default (ask each time) for this session",
    }
)
APPROVE_EDITS: Final = frozenset({"Yes, auto-accept edits", "Yes, and auto-accept edits"})
#: The same for a permission, in 2.1.76 and 2.1.119, and from 2.1.328 on; blanks are left out.
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
_PLAIN: Final = re.compile(r"Yes$|No\b")
_ABOUT: Final = re.compile(r"(?:againfor:?|readingfrom)(.+?)(?:duringthissession)?$")
_DOTS: Final = re.compile(r"\s*╌{8,}")
_AMEND: Final = "Tab to amend"
_OPEN: Final = "Esc to cancel"  # alone, below a plain "No" whose text is open


def press(screen: Sequence[str], request: Request, answer: Answer, about: About) -> Press:
    """Return the next key, or why there is none."""
    texts = [answer.message, *answer.answers.values(), *answer.content.values()]
    if not all(is_typeable(text) for text in texts if isinstance(text, str)):
        return Press(why=f"its dialog takes only {TAKES}{ELSEWHERE}")
    rows = bottom_of(screen)
    if request.kind == "permission":
        return _permission(rows, request, answer, about)
    kinds: dict[str, Callable[[Sequence[str], Request, Answer], Press]]
    kinds = {"question": question, "plan": _plan, "form": form}
    kind = kinds.get(request.kind)
    return kind(rows, request, answer) if kind else Press(why=NOT_OFFERED)


def is_typeable(text: str) -> bool:
    """Return whether a text arrives as it is when it is typed."""
    return len(text) <= LONGEST_TYPED and text == text.strip() and text.isprintable()


def _take(options: Sequence[Option], texts: Collection[str], rows: tuple[str, ...]) -> Press:
    """Take the only answer with one of these texts, by its number or by moving to it."""
    found = [option for option in options if option.whole in texts]
    if len(found) != 1:
        return Press(why=NOT_OFFERED)
    if found[0].key:
        return Press(found[0].key, rows=rows, last=True)
    return Press(ENTER, rows=rows, last=True) if found[0].chosen else Press(DOWN, rows=rows)


def offers(screen: Sequence[str], request: Request) -> tuple[str, ...]:
    """Return the answers on a screen that are none of a permission's choices, in short."""
    dialog = dialog_of(bottom_of(screen)) if request.kind == "permission" else None
    ours = {squeezed(choice.words).rstrip("`") for choice in request.choices}
    found = []
    for option in dialog.options if dialog else ():
        about = _ABOUT.search(squeezed(option.whole))
        is_ours = about is not None and any(words.endswith(about[1]) for words in ours)
        if not (is_ours or squeezed(option.whole) in ALL_EDITS or _PLAIN.match(option.whole)):
            found.append(cut(" ".join(marked(option.whole).split()), LONGEST_SHOWN))
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


def _deny(dialog: Dialog, no: Option, message: str) -> Press:
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
        return Press(why=NOT_OFFERED)  # what is typed into a closed list takes an answer
    empty = no.whole == "No" or said.startswith(hint) or is_cut
    return write(no.whole, empty, f"No, {message}", message, dialog.whole)


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


def _keep(keep: Option, message: str, shown: tuple[str, ...]) -> Press:
    """Move to the answer that takes a text, type the message, send it."""
    said = squeezed(keep.whole).removesuffix(squeezed(FEEDBACK))
    empty = said == squeezed(KEEP)
    if keep.chosen and keep.key == "3":
        return write(said, empty, message, message, shown)
    return Press(keep.key, rows=shown) if empty else Press(why=NOT_OFFERED)


def _letters(text: str) -> str:
    """Return the letters and digits of a plan, because the CLI renders its Markdown."""
    return re.sub(r"[\W_]+", "", squeezed(text))
