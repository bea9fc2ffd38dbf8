"""Replace passwords, tokens and keys in commands and messages by ***.

`SHAPES` describes what is a secret in any context; `shellwords.py` finds those that follow a name
or a command option.  If in doubt, hide: showing too little of a command does no harm.

Takes time linear in the length of the text.  Hiding a second time changes nothing.  This file does
no I/O.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final, NamedTuple

from .flags import COMMANDS, HIDDEN, NAMED, NAMES, WEAK

__all__ = ["HIDDEN", "SHAPES", "hide"]


class Shape(NamedTuple):
    """What a secret looks like; the first group of the pattern is kept."""

    name: str
    needs: str  # in lower case; a text without it has no such secret
    hints: tuple[str, ...]  # a text with none of these has no such secret either
    pattern: str


def _shape(name: str, needs: str, hints: str, pattern: str) -> Shape:
    return Shape(name, needs, tuple(hints.split()) or (needs,), pattern)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern when a text first needs it: all of them take longer than a command."""
    return re.compile(pattern, re.IGNORECASE | re.VERBOSE)


SHAPES: Final = (
    _shape(
        "private key",
        "private key",
        "",
        r"""()-----BEGIN\ [A-Z0-9\ ]{0,40}PRIVATE\ KEY
            (?: (?! -----END ) [\s\S] )* (?: -----END [A-Z0-9\ ]* -{0,5} )?""",
    ),
    _shape(
        "token that begins with a word and a bar",
        "_",
        "sk_ rk_ ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glsa_ npm_ hf_ dop_v1_ whsec_ shpat_ shpss_ "
        "shpca_ gsk_ dckr_pat_ lin_api_ figd_ sbp_",
        r"""()\b (?: [sr]k_(?:live|test)_\w{8,} | gh[pousr]_\w{8,} | github_pat_\w{8,}
          | (?:npm|hf|gsk|sbp|shpat|shpss|shpca|lin_api|dop_v1)_\w{16,} | whsec_[\w+/=]{8,}
          | (?:dckr_pat|figd|glsa)_[\w-]{8,} )""",
    ),
    _shape(
        "token that begins with a word and a dash",
        "-",
        "sk- glpat- gldt- glrt- glcbt- glptt- glft- glsoat- glimt- glagent- xox xapp- pypi- "
        "age-secret tskey- xai- nvapi-",
        r"""()\b (?: sk-(?:[a-z]\w{1,8}-){0,3}\w{8}[\w-]*
          | gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|imt)-[\w-]{8,} | xox[a-z](?:\.xox[a-z])?-[\w-]{8,}
          | (?:xapp|tskey)-[\w-]{8,} | (?:pypi|nvapi|xai)-[\w-]{16,} | age-secret-key-\w{8,} )""",
    ),
    _shape(
        "token that begins with letters",
        "",
        "akia asia aiza atatt3 ya29. hvs. sg.",
        r"""()\b (?: A(?:KIA|SIA)[0-9A-Z]{12,} | AIza[\w-]{20,} | ATATT3[\w=-]{16,}
          | ya29\.[\w.-]{10,} | hvs\.[\w-]{10,} | SG\.[\w-]{10,}\.[\w-]{10,} )""",
    ),
    _shape(
        "JSON web token",
        "eyj",
        "",
        # what is long is hidden whatever follows: to look for a dot first takes quadratic time
        r"()\beyJ (?: [\w-]{16,} (?: \.[\w=-]+ ){0,4} | [\w-]{8,15} (?: \.[\w=-]+ ){1,4} )",
    ),
    _shape(
        "webhook of Slack",
        "hooks.slack.com",
        "",
        r"(hooks\.slack\.com/(?:services|workflows)/)[\w/]+",
    ),
    _shape(
        "password in a URL",
        "://",
        "@",
        r"""(:// [^\s/:@"'`]{0,200} : )
            (?! \d{1,5} (?: [/?\#\s"'`] | $ ) ) (?: [^\s/]+ | [^\s"'`]{1,200} ) (?= @ )""",
    ),
    _shape("token in a URL", "://", "@", r"(https?://)[^\s/:@\"'`]{16,200}(?=@)"),
    _shape(
        "value in a query",
        "=",
        "? &",
        rf"""( [?&] (?:amp;)? [\w.%\[\]-]{{0,60}}? (?: {NAMES} | {WEAK} | (?<= [?&;] ) key ) = )
             [^&\s"'`\#<>\\]+""",
    ),
    _shape(
        "bearer",
        "bearer",
        "",
        r"""( \b bearer (?: \s | %20 | \+ | \\*["'] ){1,9} )
            (?! (?: tokens? | auth | authenticat\w+ | authoriz\w+ | headers? | schemes? | formats?
              | is | of | and | or | for | in | to | as | with | from | the | a ) \b )
            [^\s"'`\\,;)}]+""",
    ),
)

#: The end of a member's name in an object: `"token": `, `['token'] = `, `\"token\":`.
_MEMBER: Final = r"""\\{0,7}["'`]\]?\s{0,9}(?::|=>?)(?!=)\s{0,9}"""
_VALUE: Final = r"""(?P<quote> \\{0,7} ["'`] )
        (?: (?! (?<! \\ ) (?P=quote) ) (?: ' \\{0,7} " ' \\{0,7} " ' | \\ [\s\S] | [\s\S] ) )*
        (?: (?P=quote) )?
      | (?! (?: true | false | null | none ) \b ) [^\s,;&{}\[\])"'`\\]+"""
_LONGEST_NAME: Final = 80


#: In lower case; a text with none of these has no secret, and most texts have none.
_SIGNS: Final = tuple(
    dict.fromkeys(
        sign
        for signs in (*((s.needs,) if s.needs else s.hints for s in SHAPES), NAMED, ("-",))
        for sign in signs
    )
)


def hide(text: str) -> str:
    """Return the text with each secret replaced."""
    lowered = text.lower()
    if not _holds(lowered, _SIGNS):
        return text
    for _, needs, hints, pattern in SHAPES:
        if needs in lowered and _holds(lowered, hints):
            text = _compiled(pattern).sub(rf"\g<1>{HIDDEN}", text)
    is_named = _holds(lowered, NAMED)
    if is_named or ("-" in lowered and _holds(lowered, COMMANDS)):
        from .shellwords import Reader

        return Reader().read(_members(text) if is_named else text)
    return text


def _holds(text: str, parts: tuple[str, ...]) -> bool:
    for part in parts:  # noqa: SIM110 - twice as fast as `any`, and called for every line shown
        if part in text:
            return True
    return False


def _members(text: str) -> str:
    """Hide members of objects, in JSON and in code, whose names stand for secrets."""
    from .shellwords import names

    shown: list[str] = []
    at = 0
    for found in _compiled(_MEMBER).finditer(text):
        begin, end = found.span()
        if begin < at or not names(text[max(at, begin - _LONGEST_NAME) : begin]):
            continue
        if (value := _compiled(_VALUE).match(text, end)) is not None:
            shown += (text[at:end], HIDDEN)
            at = value.end()
    return "".join((*shown, text[at:]))
