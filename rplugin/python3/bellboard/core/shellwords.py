"""Find secrets by the words before them: names, command options, input from a pipe.

Texts are read word by word as a shell reads them, including what is quoted; prose comes through
unchanged.  This file does no I/O, and takes time in proportion to the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from .flags import (
    FED,
    FLAGS,
    HIDDEN,
    LOGIN,
    LONG,
    NAMES,
    OTHERS,
    PAIRS,
    REGISTRIES,
    SAYS,
    SCHEMES,
    TAGGED,
    WEAK,
    Flag,
)

_QUOTED: Final = r"""
    (?: "(?: [^"\\] | \\ [\s\S] )*" | '[^']*'
      | (?P<quote> (?<! \\ ) \\{1,7} ["'] ) (?: (?! (?<! \\ ) (?P=quote) ) [\s\S] )* (?P=quote) )"""
#: A word as a shell splits it, with its quotes; also each member of a JSON list.
_WORD: Final = re.compile(
    rf"""(?: [^\s\\"',]+
      | (?<= [A-Za-z] ) ' (?= (?: s | t | re | ve | ll | d | m ) \b )  # don't
      | {_QUOTED}
      | (?! \\{{1,7}} \r?\n ) (?: \\{{1,7}} [^\r\n\\] | \\ [^\r\n] )
      | (?! (?<= ["'] ) , (?: \\{{0,7}} ["'] | \*\*\* ) ) [^\s\\] )+""",
    re.VERBOSE,
)
_QUOTES: Final = re.compile(rf"{_QUOTED} | \\ [\s\S]", re.VERBOSE)
_INSIDE: Final = re.compile(_QUOTED, re.VERBOSE)
_NAMES_LAST: Final = re.compile(rf"{NAMES} \Z", re.IGNORECASE | re.VERBOSE)
_LAST: Final = (
    *("password", "passwd", "passphrase", "passcode", "secret", "token", "key", "authorization"),
    *("pass", "pwd", "pw", "auth"),
)
_ASSIGNS: Final = re.compile(
    rf"""(?: (?: {NAMES} | (?: set- )? \b cookie ) (?: \s{{0,9}} \\{{0,3}} : | \+? = ) | {WEAK} = )
        (?! [=:] )""",
    re.IGNORECASE | re.VERBOSE,
)
#: Types and values in code and schemas, which are not secrets.
_HARMLESS: Final = re.compile(
    r"(?:str|string|int|bool|boolean|bytes|number|any|undefined|none|null|true|false|optional|"
    r"required)(?:\W.*)?|[A-Za-z_][\w.]*\(.*",
    re.IGNORECASE | re.DOTALL,
)
#: What follows the word password only if it is one, except for ordinary words.
_ODD: Final = re.compile(r"(?=[^\d\s]*\d)(?=[^A-Za-z\s]*[A-Za-z])[^\s/]{6,}")
_ORDINARY: Final = re.compile(
    r"(?:sha|md|base|utf|oauth|python|node|es|web|http|x|v)-?\d+\W*|.*\.[a-z]{1,4}", re.IGNORECASE
)
_WRAPPING: Final = "\"'`[](){}<>,$\\"
_CLOSING: Final = re.compile(r"[;|&)\]},.`]{0,9}\Z")
_ENDS: Final = re.compile(r"[;|&(`{]")
_LINKS: Final = frozenset(("=", ":", ":=", "=>"))
_VERBS: Final = frozenset(("is", "was", "to", "as"))


class Reader:
    """Reads word by word, and decides from each what the next one is."""

    def __init__(self) -> None:
        self._out: list[str] = []
        self._is_over = False  # all that follows is a secret
        self._end()

    def read(self, text: str) -> str:
        """Return the text without its secrets."""
        at = 0
        for found in _WORD.finditer(text):
            gap = text[at : found.start()]
            if "\n" in gap and "\\" not in gap:
                self._end()
            self._out.append(gap)
            self._out.append(self._word(found.group()))
            at = found.end()
            if self._is_over:
                return "".join(self._out)
        return "".join((*self._out, text[at:]))

    def _end(self) -> None:
        """Start a new command."""
        self._command = ""
        self._flag: Flag | None = None
        self._is_fed = False
        self._said: list[int] = []  # where the output has what an echo may write into a pipe
        self._expects = ""  # the next word is a secret if it is: any, odd, value, scheme, or a sign

    def _word(self, word: str) -> str:
        bare = word.strip(_WRAPPING)
        if self._expects and (hidden := self._expected(word, bare)):
            return hidden
        if ("=" in word or ":" in word) and (assigned := self._assigned(word)) is not None:
            return assigned
        if bare in FED or (self._command == "sudo" and re.fullmatch("-[A-Za-z]*S", bare)):
            self._feed()
        elif bare.startswith("-"):
            return self._option(word, bare)
        elif word == "<<<" and self._is_fed:
            self._expects = "any"
        elif names(bare):
            self._expects = "value" if ":_" in bare else "odd"  # a setting of npm
        self._follow(word)
        return self._inside(word)

    # ------------------------------------------------------------ the meaning of a word

    def _expected(self, word: str, bare: str) -> str:
        """Return what to show of a word that may be a secret; "" to read it as any other."""
        expects, self._expects = self._expects, ""
        if expects in ("odd", "value") and (word in _LINKS or bare in _VERBS):
            self._expects = "value" if word in _LINKS else expects
            return word
        if expects == "scheme":
            if bare.lower() in SCHEMES:
                self._expects = "any"
                return word
            expects = "any"
        if expects == "odd":
            is_secret = bool(_ODD.match(bare)) and not _ORDINARY.fullmatch(bare)
        elif expects == "value":
            is_secret = word[:1] in "\"'`" or not _HARMLESS.fullmatch(word)
        elif expects == "any":
            is_secret = not bare.startswith("-")
        else:
            is_secret = expects in bare
        return self._hidden(word) if is_secret else ""

    def _assigned(self, word: str) -> str | None:
        """Hide the value of `NAME=value` or `'X-Api-Key: value'`; None for any other word."""
        found = _ASSIGNS.search(word)
        if found is None or any(map(str.isspace, word[: found.start()])):
            return None
        head, value = word[: found.end()], word[found.end() :]
        bare = value.strip(_WRAPPING + "; \t\r\n")
        is_header = head.endswith(":")
        if value.startswith(f"{HIDDEN}&"):
            return None
        if not bare:
            if not value:
                named = found.group().lower().startswith("authorization")
                self._expects = "scheme" if named else "value" if is_header else "odd"
            return word
        if is_header and head[0] not in "\"'\\" and _HARMLESS.fullmatch(bare):
            return None
        space = value[: len(value) - len(value.lstrip())]
        scheme, _, rest = value.lstrip().partition(" ")
        shown = f"{scheme} " if rest and scheme.lower() in SCHEMES else ""
        opened = re.search(r"[\"'][\w.-]*[:=]\Z", head)
        closing = opened.group()[0] if opened and value.endswith(opened.group()[0]) else ""
        return head + space + shown + self._hidden(value) + closing

    def _option(self, word: str, bare: str) -> str:
        option, sign, value = bare.partition("=")
        flag = self._flag
        if option in TAGGED or (option in PAIRS and flag is not None and flag.sign == ":"):
            if ":" in value:
                return word[: word.index("=") + 1] + self._hidden(value)
            self._expects = "" if sign else ":"
        elif bare in LONG or (names(bare) and (flag is None or bare.startswith("--"))):
            self._expects = "any"
        elif flag is not None and (found := re.match(rf"-[A-Za-z#]*?[{flag.letters}]", bare)):
            if len(found.group()) > 2 and flag.sign != ":":
                return self._inside(word)  # curl joins letters: `-sSu name:password`
            start = word.index(bare) + found.end()
            joined = word[start:]
            if joined.strip(_WRAPPING) and flag.sign in joined:
                return word[:start] + self._hidden(joined)
            if found.end() == len(bare) and flag.apart:
                self._expects = flag.sign or "any"
        return self._inside(word)

    def _follow(self, word: str) -> None:
        """Note which command is being read from here on."""
        parts = [word] if word.isalnum() else _ENDS.split(_QUOTES.sub(_calmed, word))
        if len(parts) > 1:
            said = self._said if word in ("|", "|&") else []
            self._end()
            self._said = said
        elif self._command in SAYS:
            self._said.append(len(self._out))
        command = parts[-1].strip(_WRAPPING).rpartition("/")[2]
        if command == LOGIN:
            self._flag = FLAGS[LOGIN] if self._command in REGISTRIES else self._flag
        elif command in FLAGS:
            self._command, self._flag = command, FLAGS[command]
        elif command in REGISTRIES or command in OTHERS or command in SAYS:
            self._command, self._flag = command, None

    # ------------------------------------------------------------ what to show

    def _feed(self) -> None:
        """Hide what was written into the pipe, from which this command reads its secret."""
        self._is_fed = True
        for n in self._said:
            self._out[n] = HIDDEN
        self._said = []

    def _inside(self, word: str) -> str:
        """Read the quoted parts of a word, which may be commands or messages themselves."""
        return "".join(_parts(word)) if any(map(str.isspace, word)) else word

    def _hidden(self, word: str) -> str:
        """Return what to show for a secret; if its quotes are not closed, hide all that follows."""
        if word[:1] in ("'", '"') and not _INSIDE.match(word):
            self._is_over = True
            return HIDDEN
        closing = _CLOSING.search(word)
        return HIDDEN + (closing.group() if closing else "")


def _calmed(quoted: re.Match[str]) -> str:
    return _ENDS.sub(" ", quoted.group())


def names(text: str) -> bool:
    """Return whether a text ends in the name of a secret."""
    return text.lower().endswith(_LAST) and _NAMES_LAST.search(text) is not None


def _parts(word: str) -> Iterator[str]:
    at = 0
    for found in _INSIDE.finditer(word):
        quote = found.group("quote") or found.group()[0]
        yield word[at : found.start()] + quote
        yield Reader().read(found.group()[len(quote) : -len(quote)])
        at = found.end() - len(quote)
    yield word[at:]
