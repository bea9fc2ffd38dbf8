"""Find letters that look like Latin ones where somebody would read them as such.

    in a word with ASCII letters   all letters of another alphabet; of other scripts, those that
                                   look like ASCII ones; Greek ones unless it may be a formula
    in a name, such as of a host   words that consist of such letters; unusual Latin letters
    in a line of Latin words       Greek, Cyrillic, Armenian words that consist of such letters, if
                                   no other letter of these is in it

The table says which letters look like ASCII ones; `python doc/lookalikes.py` writes it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Final

VERSION: Final = "13.0.0"  # of Unicode's confusables.txt
_TABLE: Final = (
    "\u0131\u017f\u0184\u0185\u018d\u0194\u0196\u019c\u01a6\u01a7\u01a8\u01b2\u01b7\u01bc\u01bd"
    "\u01c0\u021c\u021d\u0222\u0223\u0251\u025c\u0261\u0262\u0263\u0269\u026a\u026f\u0274\u0276"
    "\u0280\u0281\u028b\u028f\u0292\u0299\u029b\u029c\u029d\u029f\u037f\u0391\u0392\u0395\u0396"
    "\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03b1\u03b3\u03b9\u03bd\u03bf"
    "\u03c1\u03c3\u03c5\u03d2\u03dc\u03e8\u03f1\u03f2\u03f3\u03f9\u03fa\u0405\u0406\u0408\u0410"
    "\u0412\u0415\u0417\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u042c\u0430\u0431"
    "\u0433\u0435\u043e\u0440\u0441\u0443\u0445\u0455\u0456\u0458\u0461\u0474\u0475\u04ae\u04af"
    "\u04bb\u04bd\u04c0\u04cf\u04e0\u0501\u050c\u051b\u051c\u051d\u054d\u054f\u0555\u0561\u0563"
    "\u0566\u0570\u0578\u057c\u057d\u0581\u0584\u0585\u05d5\u05d8\u05df\u05e1\u0627\u0647\u0661"
    "\u0665\u0667\u06be\u06c1\u06d5\u06f1\u06f5\u06f7\u07c0\u07ca\u0966\u09e6\u09ea\u09ed\u0a66"
    "\u0a67\u0a6a\u0ae6\u0b20\u0b66\u0b68\u0be6\u0c66\u0ce6\u0d20\u0d66\u0d6d\u0e50\u0ed0\u101d"
    "\u1040\u10e7\u10ff\u1200\u12d0\u13a0\u13a1\u13a2\u13a5\u13a9\u13aa\u13ab\u13ac\u13b3\u13b7"
    "\u13bb\u13bd\u13c0\u13c2\u13c3\u13ce\u13cf\u13d2\u13d4\u13d5\u13d9\u13da\u13de\u13df\u13e2"
    "\u13e6\u13e7\u13ee\u13f3\u13f4\u142f\u144c\u146d\u146f\u1472\u148d\u14aa\u14bf\u1541\u157c"
    "\u157d\u1587\u15af\u15b4\u15c5\u15de\u15ea\u15f0\u15f7\u16b7\u16c1\u16d5\u16d6\u1d00\u1d01"
    "\u1d03\u1d04\u1d05\u1d06\u1d07\u1d0a\u1d0b\u1d0c\u1d0d\u1d0e\u1d0f\u1d10\u1d11\u1d15\u1d18"
    "\u1d19\u1d1a\u1d1b\u1d1c\u1d20\u1d21\u1d22\u1d23\u1d26\u1d83\u1d8c\u1e9d\u1efe\u1eff\u1fbe"
    "\u212a\u2160\u2164\u2169\u216c\u216d\u216e\u216f\u2170\u2174\u2179\u217c\u217d\u217e\u2c6d"
    "\u2c7b\u2c85\u2c8e\u2c92\u2c94\u2c98\u2c9a\u2c9e\u2c9f\u2ca2\u2ca3\u2ca4\u2ca5\u2ca6\u2ca8"
    "\u2cac\u2cca\u2ccc\u2cd0\u2cd2\u2d38\u2d39\u2d4f\u2d54\u2d55\u2d5d\u3007\ua4d0\ua4d1\ua4d2"
    "\ua4d3\ua4d4\ua4d6\ua4d7\ua4d9\ua4da\ua4dc\ua4dd\ua4df\ua4e0\ua4e1\ua4e2\ua4e3\ua4e6\ua4e7"
    "\ua4ea\ua4eb\ua4ec\ua4ee\ua4f0\ua4f2\ua4f3\ua4f4\ua644\ua647\ua6df\ua6ef\ua730\ua731\ua75a"
    "\ua75b\ua76a\ua76b\ua76e\ua76f\ua776\ua798\ua799\ua79e\ua79f\ua7ab\ua7ac\ua7ae\ua7af\ua7b2"
    "\ua7b3\ua7b4\ua7b5\ua7fa\uab32\uab35\uab3d\uab46\uab47\uab48\uab4e\uab52\uab53\uab5a\uab75"
    "\uab81\uab83\uab93\uaba9\uabaa\uabaf\ufba6\ufba7\ufba8\ufba9\ufbaa\ufbab\ufbac\ufbad\ufe8d"
    "\ufe8e\ufee9\ufeea\ufeeb\ufeec\U00010282\U00010286\U00010287\U0001028a\U00010290\U00010292"
    "\U00010295\U00010296\U00010297\U000102a0\U000102a1\U000102a2\U000102a5\U000102ab\U000102b0"
    "\U000102b1\U000102b2\U000102b4\U000102cf\U000102f5\U00010301\U00010302\U00010309\U00010311"
    "\U00010315\U00010317\U0001031a\U00010320\U00010322\U00010404\U00010415\U0001041b\U00010420"
    "\U0001042c\U0001043d\U00010448\U000104b4\U000104c2\U000104ce\U000104d2\U000104ea\U000104f6"
    "\U00010513\U00010516\U00010518\U0001051c\U0001051d\U00010525\U00010526\U00010527\U000114d0"
    "\U00011706\U0001170a\U0001170e\U0001170f\U000118a0\U000118a2\U000118a3\U000118a4\U000118a6"
    "\U000118a9\U000118ac\U000118ae\U000118af\U000118b2\U000118b5\U000118b8\U000118bb\U000118bc"
    "\U000118c0\U000118c1\U000118c2\U000118c3\U000118c4\U000118c6\U000118c8\U000118ca\U000118cc"
    "\U000118d5\U000118d6\U000118d7\U000118d8\U000118dc\U000118e0\U000118e5\U000118e6\U000118e9"
    "\U000118ec\U000118ef\U000118f2\U00016f08\U00016f0a\U00016f16\U00016f28\U00016f35\U00016f3a"
    "\U00016f3b\U00016f40\U00016f42\U00016f43\U0001df02\U0001df04\U0001df10\U0001e8c7\U0001e8cb"
)

_NAME: Final = r"[\w\u0300-\u036f./:@=-]+"
_WORD: Final = r"[^\W_][^\W_\u0300-\u036f]*(?:[\u0300-\u036f]+[^\W_]*)*"
_FOREIGN: Final = "[\u0370-\u0587]+"  # Greek, Cyrillic, Armenian
#: Turkish words have it: `text.py` judges it by its word.
_DOTLESS: Final = "\u0131"
_SHORT: Final = 3  # letters of a word; with fewer, it may be an ending, such as of a Russian case
_LONG: Final = 4  # letters of a word in a name without Latin ones, which may be an abbreviation
_FEW: Final = "\u0180"  # from here on, Latin letters of few languages; those with accents are not
_SCHWA: Final = "\u0259"  # Azerbaijani words have it


def spots(text: str) -> list[tuple[int, int]]:
    """Return where such letters are, as pairs of start and end, in order."""
    found = _in_names(text)
    found.update(_in_lines(text, found))
    runs: list[tuple[int, int]] = []
    for n in sorted(found):
        if runs and runs[-1][1] == n:
            runs[-1] = runs[-1][0], n + 1
        else:
            runs.append((n, n + 1))
    return runs


def _in_names(text: str) -> set[int]:
    found: set[int] = set()
    for each in re.finditer(_NAME, text):
        name, at = each[0], each.start()
        if name.isascii():
            continue
        if name.isalnum():  # most are a single word
            if re.search("[A-Za-z]", name):
                found.update(at + n for n in _in_word(name, False, False, True))
            continue
        words = list(re.finditer(_WORD, name))
        is_name = _is_name(name, [word[0] for word in words])
        inner = name.strip("./:")
        is_host, is_prose = bool(re.search(r"[.@]|//", inner)), not re.search("[./:@]", inner)
        for word in words:
            if not word[0].isascii():
                start, marks = at + word.start(), _in_word(word[0], is_name, is_host, is_prose)
                found.update(start + n for n in marks)
    return found


def _is_name(name: str, words: list[str]) -> bool:
    """Return whether a word that looks like a Latin one would be read as such in it."""
    if re.search("[A-Za-z]", name) or "//" in name:
        return len(words) > 1 or "//" in name
    if not re.search("[0-9]", name):
        return "." in name and any(len(word) >= _LONG and _is_alike(word) for word in words[:-1])
    return len(words) > 1 and all(map(_is_alike, words)) and len(name) > _LONG


def _in_word(word: str, is_name: bool, is_host: bool, is_prose: bool) -> list[int]:
    """Return the letters to mark in a word."""
    letters = [(n, c) for n, c in enumerate(word) if not c.isascii() and c.isalnum()]
    if len(letters) == len(word) or not re.search("[A-Za-z]", word):
        if not (is_name and all(_is_alike(c) for _, c in letters)):
            return []
        is_short = is_prose or any(_script(c) == "uncased" for _, c in letters)
        return [] if is_short and len(word) < _SHORT else [n for n, _ in letters]
    scripts = {"other", *(["rare"] if is_name else [])}
    if is_host or any(_script(c) == "greek" and _is_alike(c) for _, c in letters):
        scripts.add("greek")  # it is no formula
    marks: list[int] = []
    run: list[int] = []  # of letters in scripts without capitals
    for n, c in letters:
        script = _script(c)
        if script != "uncased":
            if script in scripts or (script and _is_alike(c)):
                marks.append(n)
            continue
        if run and run[-1] != n - 1:
            run = []
        run.append(n)
        is_last = n + 1 == len(word) or word[n + 1].isascii() or _script(word[n + 1]) != "uncased"
        if is_last and all(_is_alike(word[m]) for m in run):
            marks += run
    return marks


def _in_lines(text: str, found: set[int]) -> Iterator[int]:
    """Yield the letters of words that would be read as Latin words, in a line of Latin words."""
    at = 0
    for line in text.split("\n"):
        if not line.isascii() and re.search("[a-z]", line):
            yield from _in_line(line, at, found)
        at += len(line) + 1


def _in_line(line: str, at: int, found: set[int]) -> Iterator[int]:
    words = list(re.finditer(_FOREIGN, line))
    for word in words:
        for n in range(*word.span()):
            if at + n not in found and line[n].isalpha() and not _is_alike(line[n]):
                return
    for word in words:
        start, end = word.span()
        is_alone = not (line[start - 1 : start].isalpha() or line[end : end + 1].isalpha())
        is_formula = end - start == 1 and _script(word[0]) == "greek"
        if is_alone and not is_formula:
            yield from (at + n for n in range(start, end))


@lru_cache(4096)
def _script(c: str) -> str:
    """Return the script of a letter; "" for an ordinary Latin one."""
    same = _same(c)
    name, kind = unicodedata.name(same, ""), unicodedata.category(same)
    if name.startswith("LATIN "):
        is_common = same.lower() < _FEW or same.lower() == _SCHWA
        return "latin" if is_common or unicodedata.normalize("NFD", same) != same else "rare"
    if name.startswith("GREEK "):
        return "greek"
    if kind in ("Lu", "Ll", "Lt") and not same.isascii():
        return "other"
    return "uncased" if kind[0] in "LN" else ""


def _is_alike(word: str) -> bool:
    """Return whether somebody would read it as a word of ASCII letters."""
    return all(map(_is_like_ascii, word))


@lru_cache(4096)
def _is_like_ascii(c: str) -> bool:
    return c.isascii() or (c != _DOTLESS and not _letters().isdisjoint((c, _same(c))))


def _same(c: str) -> str:
    """Return a letter without marks that only change how it is drawn."""
    return unicodedata.normalize("NFKC", c)[0]


@cache
def _letters() -> frozenset[str]:
    return frozenset(_TABLE)
