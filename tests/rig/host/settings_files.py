"""Settings files as people and programs write them, for tests that edit them."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from bellboard.agents.installing.settings_file import without_comments

EVENTS = ("Stop", "PreToolUse", "SessionStart", "StopFailure", "Unheard Of", "é✓")
WORDS = st.sampled_from(
    ["", "*", "Bash", "Edit|Write", "emit", "bellboard", "a\u2028b", "\ud83d", "x"]
)
TEXTS = st.text(alphabet="ab \"'\\/\n\t{}[]:,#$é✓\u2028\x7f", max_size=8)
COMMANDS = st.one_of(
    st.sampled_from(
        [
            "/opt/bellboard/hooks/emit Stop",
            '"/opt/other/hooks/emit" Stop "$PPID"',
            '[ -r "$HOME/.x/emit" ] && { set -- Stop "$PPID"; . "$HOME/.x/emit"; }; exit 0',
            "echo 'bellboard' && say \"$HOME\"",
            "'unfinished",
            "/x\0y Stop $PPID",
            "/x\ud800y Stop $PPID",
        ]
    ),
    TEXTS,
)
HANDLERS = st.one_of(
    st.fixed_dictionaries(
        {"type": st.just("command"), "command": COMMANDS},
        optional={"timeout": st.integers(0, 900), "async": st.booleans()},
    ),
    st.fixed_dictionaries({"type": st.just("http"), "url": TEXTS}),
)
GROUPS = st.fixed_dictionaries(
    {"hooks": st.lists(HANDLERS, max_size=3)}, optional={"matcher": WORDS}
)
HOOKS = st.dictionaries(st.sampled_from(EVENTS), st.lists(GROUPS, max_size=3), max_size=4)
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), WORDS
)
ODD = st.recursive(
    LEAVES,
    lambda more: st.lists(more, max_size=3) | st.dictionaries(WORDS, more, max_size=3),
    max_leaves=6,
)
OTHERS = st.dictionaries(
    st.sampled_from(["model", "env", "permissions", "é", "a b"]), ODD, max_size=4
)
BLANK = st.sampled_from(["", " ", "\n", "\r\n", "\ufeff", "\ufeff\n", "{}", "{ }", "{\n}\n"])
COMMENTS = st.sampled_from(["// a note", '/* "hooks": {} */', "/* two\n lines */", "//", "/**/"])


@st.composite
def values(draw: st.DrawFn, hooks: st.SearchStrategy[Any] = HOOKS) -> dict[str, Any]:
    """Settings with hooks anywhere in them."""
    members = list(draw(OTHERS).items())
    if draw(st.booleans()):
        members.insert(draw(st.integers(0, len(members))), ("hooks", draw(hooks)))
    return dict(members)


@st.composite
def texts(draw: st.DrawFn, told: st.SearchStrategy[Any] | None = None) -> str:
    """A value as JSON in any layout."""
    value = draw(values() if told is None else told)
    line = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    ascii_ = draw(st.booleans())
    how = draw(st.sampled_from(["lines", "one line", "tight", "wild"]))
    if how == "lines":
        indent = draw(st.sampled_from(["  ", "\t", "    ", "", " "]))
        text = json.dumps(value, indent=indent, ensure_ascii=ascii_).replace("\n", line)
    elif how == "one line":
        text = json.dumps(value, ensure_ascii=ascii_)
    elif how == "tight":
        text = json.dumps(value, ensure_ascii=ascii_, separators=(",", ":"))
    else:
        text = _wild(draw, value, ascii_)
    end = draw(st.sampled_from(["", line, line * 2, " "]))
    return draw(st.sampled_from(["", "\ufeff"])) + text + end


def _wild(draw: st.DrawFn, value: Any, ascii_: bool) -> str:
    """Return JSON with any whitespace where it is allowed."""
    gaps = draw(st.lists(st.sampled_from(["", " ", "\n", "\r\n\t", "  "]), min_size=1, max_size=7))
    count = 0

    def gap() -> str:
        nonlocal count
        count += 1
        return gaps[count % len(gaps)]

    def written(told: Any) -> str:
        if isinstance(told, dict):
            pairs = (f"{written(key)}{gap()}:{gap()}{written(item)}" for key, item in told.items())
            return "{" + ",".join(f"{gap()}{pair}{gap()}" for pair in pairs) + gap() + "}"
        if isinstance(told, list):
            return "[" + ",".join(f"{gap()}{written(each)}{gap()}" for each in told) + gap() + "]"
        return json.dumps(told, ensure_ascii=ascii_)

    return gap() + written(value)


@st.composite
def with_comments(draw: st.DrawFn, text: str) -> str:
    """The text with comments wherever JSON allows whitespace."""
    ends = [0, *(n for n, c in enumerate(text) if c in "{}[],:" and _in_no_string(text, n))]
    for at in sorted(draw(st.lists(st.sampled_from(ends), max_size=4)), reverse=True):
        comment = draw(COMMENTS)
        line = "\n" if comment.startswith("//") or draw(st.booleans()) else ""
        head = at + (at > 0 and draw(st.booleans()))
        text = f"{text[:head]} {comment}{line}{text[head:]}" if head else text
    return text


def _in_no_string(text: str, at: int) -> bool:
    quotes = text[:at].replace("\\\\", "").replace('\\"', "").count('"')
    return quotes % 2 == 0


#: A text, or None for a file that does not exist.
ANY = st.one_of(st.none(), BLANK, texts(), texts().flatmap(with_comments))


def comments_in(text: str | None) -> list[str]:
    text = text or ""
    return [text[start:end] for start, end in without_comments(text)[1]]


def settings_in(text: str | None) -> Any:
    plain = without_comments(text or "")[0].removeprefix("\ufeff").strip()
    return json.loads(plain or "{}")


def looked(home: Path) -> dict[str, tuple[object, ...]]:
    """Return all that is in a home but for our state: links, modes, owners and bytes."""
    found: dict[str, tuple[object, ...]] = {}
    for path in home.rglob("*"):
        if "board" not in path.relative_to(home).parts:
            status = path.lstat()
            leads = path.readlink() if path.is_symlink() else None
            is_small = stat.S_ISREG(status.st_mode) and status.st_size < 1 << 24
            told = path.read_bytes() if is_small else None
            found[str(path)] = (status.st_mode, status.st_uid, status.st_gid, leads, told)
    return found
