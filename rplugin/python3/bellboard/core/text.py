"""Text for people: visible, free of secrets, and as wide as there is room."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache, partial
from typing import Final, NamedTuple
from unicodedata import category, east_asian_width

import msgspec
from msgspec import Raw, Struct

from .secrets import hide

# Reduce untrusted text to what the user can see.
#
# Terminals act on control characters and escape sequences. Marks that change the writing
# direction, and characters without width, make one text look like another.
#
# This file does no I/O and imports nothing heavy; `re` compiles its patterns when text needs
# them.


#: Escape sequences: CSI, terminated strings (OSC, DCS, …), and short ones.
_ESCAPES: Final = (
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9c-\x9f]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-~]?"
)
#: Control characters except newline, and marks that change the writing direction.
_ACTIVE: Final = "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
#: Characters without width.  One U+FE0E or U+FE0F may follow a symbol, and selects how it is drawn.
_UNSEEN: Final = (
    "[\u00ad\u034f\u070f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d"
    "\u2060-\u2065\u206a-\u206f\u3164\ufe00-\ufe0d\uffa0\ufff0-\ufffb\U00013430-\U0001345f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
    "|(?<=[\0-\x7f\ufe0e\ufe0f])[\ufe0e\ufe0f](?!\u20e3)"
)
#: More combining marks than any language puts on one letter: they cover the lines around it.
_MARK: Final = "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
_PILES: Final = f"({_MARK}{{4}}){_MARK}+"
_JOINT: Final = "[./:@=_-]"
#: Turkish words have it; in the name of a host or file without their other letters it is odd.
_DOTLESS: Final = "\u0131"
_JOINED: Final = rf"(?<!\S)(?=\S*{_DOTLESS})(?!\S*[çğñöşüəÇĞİÑÖŞÜƏ])(?=\S*\w{_JOINT}[\w/])\S+"
#: Where other forms of ASCII characters are, such as mathematical and wide letters, Roman numbers.
_FORMS: Final = ((0x370, 0x400), (0x1FC0, 0x2200), (0xFE50, 0xFF60), (0x1D400, 0x1D800))
#: Dashes and slashes that look like those of ASCII.
_DASHES: Final = "\u2010\u2044\u2212\u2215"
_OVERLAID: Final = "[\u0334-\u0338\u20d2\u20d3\u20d8-\u20da\u20e5\u20e6\u20ea\u20eb]"
#: Signs before Arabic and other numbers; terminals give them no width.
_PREFIXES: Final = "[\u0600-\u0605\u06dd\u0890\u0891\u08e2\U000110bd\U000110cd]"


def visible(text: str) -> str:
    """Return the text with its line breaks, and without anything invisible."""
    if text.isascii() and text.isprintable():
        return text
    text = text.encode("utf-8", "replace").decode()
    text = re.sub(_ACTIVE, " ", re.sub(_ESCAPES, "", text))
    return text if text.isascii() else re.sub(_PILES, r"\1", re.sub(_UNSEEN, "", text))


_LIKE_LATIN: Final = "letters that look like Latin ones"


class _Hidden(NamedTuple):
    """The words for what `marked` shows as a mark, and its pattern."""

    words: str
    pattern: str
    is_ascii: bool = False  # whether plain ASCII may have it
    only: str = ""  # which characters of what the pattern matches, if not all


@cache
def _hidden(is_ascii: bool) -> tuple[_Hidden, ...]:
    """Return the pattern of hidden characters for a text; ASCII has fewer of them."""
    return tuple(hidden for hidden in _all_hidden() if hidden.is_ascii or not is_ascii)


@cache
def _all_hidden() -> tuple[_Hidden, ...]:
    """Return all kinds."""
    letters, signs = _forms()
    signs += _DASHES
    return (
        _Hidden("escape sequences", "[\x1b\x9b]", True),
        _Hidden("control characters", "[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9a\x9c-\x9f]", True),
        _Hidden(
            "characters that change the writing direction",
            "[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]",
        ),
        _Hidden("line breaks of another kind", "[\u2028\u2029]"),
        _Hidden("invisible characters", rf"\ufeff|[\ud800-\udfff]|{_PREFIXES}|{_UNSEEN}"),
        _Hidden("blanks of another kind", "[\xa0\u1680\u2000-\u200a\u202f\u205f\u3000\u2800]"),
        _Hidden("signs that look like others", f"(?<=[A-Za-z])[{signs}]|[{signs}](?=[A-Za-z])"),
        _Hidden("lines through letters", _OVERLAID),
        _Hidden("piles of accents", f"(?<={_MARK}{{4}}){_MARK}"),
        _Hidden("blanks at the end of a line", r"(?m)(?<![ \t])[ \t]+$", True),
        _Hidden(_LIKE_LATIN, f"[{_ranges(letters)}]"),
        _Hidden(_LIKE_LATIN, _JOINED, only=_DOTLESS),
    )


def _forms() -> tuple[str, str]:
    """Return the other forms of ASCII letters, and of its signs; none that is raised or wide.

    Wide letters count: they are common only beside letters that are as wide.
    """
    letters = signs = ""
    for form in (chr(n) for first, end in _FORMS for n in range(first, end)):
        kind, _, code = unicodedata.decomposition(form).rpartition(" ")
        if kind not in ("", "<font>", "<wide>", "<small>", "<compat>") or not code:
            continue
        same = chr(int(code, 16))
        if same.isascii() and same.isalpha():
            letters += form
        elif same.isascii() and not same.isspace() and kind != "<wide>":
            signs += form
    return letters, signs


def _ranges(letters: str) -> str:
    """Return a set of characters as ranges: `re` compares each of those beyond U+FFFF in turn."""
    codes = dict.fromkeys(sorted(map(ord, letters)))
    first = [code for code in codes if code - 1 not in codes]
    last = [code for code in codes if code + 1 not in codes]
    return "".join(f"{chr(a)}-{chr(b)}" for a, b in zip(first, last, strict=True))


def marked(text: str) -> str:
    """Return the whole text, with a mark for each hidden character; line breaks and tabs stay."""
    if text.isascii() and text.isprintable() and not text.endswith(" "):
        return text
    for hidden in _hidden(text.isascii()):
        text = re.sub(hidden.pattern, partial(_marks, hidden.only) if hidden.only else _mark, text)
    done, parts = 0, []
    for start, end in _lookalikes(text):
        parts += [text[done:start], *map(_mark_of_one, text[start:end])]
        done = end
    return "".join(parts) + text[done:]


def _lookalikes(text: str) -> list[tuple[int, int]]:
    """Return where letters are that look like others."""
    if text.isascii():
        return []
    from .lookalikes import spots  # imported late: most texts have none

    return spots(text)


def marked_line(text: str) -> str:
    """Return the same as one line: line breaks are marks, too."""
    return marked(text).replace("\n", _mark_of_one("\x0a"))


def warnings(text: str) -> tuple[str, ...]:
    """Return a warning for each kind of hidden character in a text."""
    found = [x.words for x in _hidden(text.isascii()) if re.search(x.pattern, text)]
    if _LIKE_LATIN not in found and _lookalikes(text):
        found.append(_LIKE_LATIN)
    return tuple(dict.fromkeys(found))


def _marks(only: str, found: re.Match[str]) -> str:
    return re.sub(only, _mark, found[0])


def _mark(found: re.Match[str]) -> str:
    hidden = found[0]
    return _mark_of_one(hidden) if len(hidden) == 1 else _mark_of(hidden)


@lru_cache(1024)
def _mark_of_one(hidden: str) -> str:
    """Do the same for one character: a hostile text has a million of them."""
    return _mark_of(hidden)


def _mark_of(hidden: str) -> str:
    if hidden.isspace() and hidden.strip(" \t") == "":
        return hidden.replace(" ", "\N{MIDDLE DOT}").replace("\t", "\N{RIGHTWARDS ARROW TO BAR}")
    return "".join(f"<U+{ord(c):04X}>" for c in hidden)


def as_json(encoded: bytes) -> str:
    """Return JSON with invisible characters as \\u escapes; it decodes to the same value."""
    text = encoded.decode()
    if text.isascii() and "\x7f" not in text:
        return text
    return re.sub(_UNSEEN, _numbered, re.sub(_ACTIVE, _numbered, text))


def _numbered(found: re.Match[str]) -> str:
    units = found.group().encode("utf-16-be")
    return "".join(f"\\u{units[n]:02x}{units[n + 1]:02x}" for n in range(0, len(units), 2))


def plain(text: object) -> str:
    """Return text as part of a line: single spaces, and nothing that a terminal acts on."""
    return " ".join(visible(str(text)).split()) if text else ""


# Text in terminal cells: how many it takes, and as much of it as fits.
#
# This file does no I/O and imports nothing heavy, because `words.py` needs it.


def width(text: str) -> int:
    """Return how many terminal cells a text takes."""
    return len(text) if text.isascii() else sum(map(_cells, text))


def cut(text: str, cells: int) -> str:
    """Cut a text to this many cells."""
    if width(text) <= cells:
        return text
    return head(text, cells - 1).rstrip() + "…" if cells > 0 else ""


def head(text: str, cells: int) -> str:
    """Return as much of a text as fits into this many cells."""
    for n, c in enumerate(text):
        cells -= _cells(c)
        if cells < 0:
            return text[:n]
    return text


def _cells(c: str) -> int:
    if c.isascii():
        return 1
    if category(c) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if east_asian_width(c) in "WF" else 1


# Short lines for display, without secrets: what a tool does, what a question asks.


LONGEST_LINE: Final = 200  # characters of a command, question or prompt to show
LONGEST_PATH: Final = 4096  # bytes on Linux, with the null character
MOST_PATHS: Final = 50  # of one tool
ODD: Final = (msgspec.DecodeError, ValueError, RecursionError)  # errors of decoding

_LONE = re.compile("[\ud800-\udfff]")  # lone surrogates, left by a cut in the middle of a character


def whole(text: str) -> str:
    """Return text that can be encoded: lone surrogates are replaced."""
    return text if text.isascii() else _LONE.sub("\N{REPLACEMENT CHARACTER}", text)


class _Question(Struct):
    question: str = ""


class _Input(Struct):
    """The fields of a tool's input that describe what it does."""

    command: str | None = None
    file_path: str | None = None
    notebook_path: str | None = None
    pattern: str | None = None
    url: str | None = None
    query: str | None = None
    plan: str | None = None
    questions: list[_Question] | None = None
    subject: str | None = None
    description: str | None = None
    skill: str | None = None
    name: str | None = None
    script: str | None = None


_decode_input = msgspec.json.Decoder(_Input).decode
#: The members of an input that may be shown; the first that is there is.
SHOWN = tuple(f for f in _Input.__struct_fields__ if f not in ("questions", "script"))
_META: Final = 4096  # characters at the start of a workflow's script, which describe it
_DESCRIBED: Final = re.compile(r"""\bdescription\s*:\s*(["'`])((?:\\.|(?!\1)[^\\])+)\1""")


def line(text: str, longest: int = LONGEST_LINE) -> str:
    """Return text as one short line: visible characters only, no secrets, truncated."""
    if not text:
        return ""
    most = longest * 4
    if len(text) > most:
        # Cut at a space: a truncated secret may not look like one.
        text = text[:most].rpartition(" ")[0] or text[:most]
    return _shown(text, longest)


#: A block of code in Markdown, and the place that the editor writes above it.
_CODE: Final = re.compile(r"(?:^\S+:\d+(?:-\d+)?\n)?^```.*?^```[ \t]*$\n?", re.M | re.S)


def prompt_line(prompt: str) -> str:
    """Return a prompt as one short line, without blocks of code if there is more than these."""
    words = _CODE.sub("", prompt) if "```" in prompt else prompt
    return line(words if words.strip() else prompt)


@lru_cache(maxsize=256)  # a tool's hooks repeat its command, and each is decoded twice
def _shown(text: str, longest: int) -> str:
    text = hide(visible(whole(text)))
    if "\n" in text or "  " in text or text != text.strip():
        text = " ".join(text.split())
    return text if len(text) <= longest else text[: longest - 1] + "…"


def tool_detail(tool: str, raw: Raw | bytes) -> str:
    """Return the input of a tool in one line: the command, the file, the question."""
    if not raw:
        return ""
    try:
        given = _decode_input(raw)
    except ODD:
        return _odd_detail(bytes(raw))
    if given.questions:
        return line(given.questions[0].question)
    if tool == "ExitPlanMode" and given.plan:
        return line(given.plan.lstrip("# \n"))
    if given.script and (described := _DESCRIBED.search(given.script[:_META])):
        return line(described[2])
    for field in SHOWN:
        if (value := getattr(given, field)) is not None:
            return line(value)
    return ""


def files_of(raw: Raw | bytes) -> tuple[str, ...]:
    """Return the absolute path of the file that a tool works on, if it is a usable one."""
    try:
        given = _decode_input(raw)
    except ODD:
        return ()
    return usable_paths([given.file_path or given.notebook_path or ""])


def usable_paths(paths: Iterable[str]) -> tuple[str, ...]:
    """Return those that are absolute, whole and visible, each once."""
    usable = (path for path in paths if path.startswith("/") and len(path) <= LONGEST_PATH)
    return tuple(dict.fromkeys(whole(path) for path in usable if path.isprintable()))[:MOST_PATHS]


def _odd_detail(raw: bytes) -> str:
    """Do the same for an input of unexpected types (Codex gives a command as a list of words)."""
    try:
        given = json.loads(raw)
    except ODD:
        return ""
    if not isinstance(given, dict):
        return ""
    for field in SHOWN:
        value = given.get(field)
        if isinstance(value, list) and all(isinstance(x, str) for x in value):
            value = " ".join(value)
        if isinstance(value, str) and value:
            return line(whole(value))
    return ""


# Split what is read into lines, of which anybody may send an endless one.


class Lines:
    """Splits bytes into lines.

    Of a line that is longer than `longest`, only the beginning comes, with one byte more than that.
    """

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._rest = bytearray()  # of a line
        self._skips = False  # whether the rest of a line is dropped

    def take(self, data: bytes) -> Iterator[bytes]:
        """Yield the lines that end in the data, and the beginning of a line that is too long."""
        *whole, rest = data.split(b"\n")
        for part in whole:
            raw, skips, self._skips = bytes(self._rest) + part, self._skips, False
            self._rest.clear()
            if not skips:
                yield raw[: self._longest + 1]
        if not self._skips:
            self._rest += rest
        if len(self._rest) > self._longest:
            raw, self._skips = bytes(self._rest[: self._longest + 1]), True
            self._rest.clear()
            yield raw
