"""Keep secrets off the screen: by their shapes, and by their places in a command line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple

# The names, commands and options whose value is a secret.


HIDDEN: Final = "***"

#: How the name of a secret ends: `GITHUB_TOKEN`, `db-password`, `accessKey`.
NAMES: Final = r"""
    (?: password | passwd | passphrase | passcode | secret | token | api[_.-]?key | authorization
      | sshpass | secret[_.-]key[_.-]base | (?<= [a-z0-9] [_.-] ) pat
      | (?: access | secret | private | account | auth | encryption | signing | master | shared )
        [_.-]? key
      | (?<= [a-z0-9] [_.-] ) (?<! primary. ) (?<! foreign. ) (?<! public. ) (?<! cache. )
        (?<! partition. ) (?<! sort. ) (?<! group. ) (?<! hash. ) (?<! range. ) (?<! row. )
        (?<! unique. ) (?<! index. ) (?<! host. ) (?<! apt. ) key
      | (?<= [_.-] ) (?: pass | pwd | pw | auth )
      | (?-i: (?<= [a-z] ) (?: Pass | Pwd | Auth ) )
    ) (?! [\w-] )"""
#: Names that count only before an equals sign.
WEAK: Final = (
    r"(?: (?<! [a-z] ) (?: pass | pw | auth | sig | signature | credentials? ) (?! [\w-] ) )"
)


class Flag(NamedTuple):
    """The one-letter options of a command that take a secret."""

    letters: str
    apart: bool = True  # the secret may be the next word, not only joined to the letter
    sign: str = ""  # what the value must contain, as in `name:password`


LOGIN: Final = "login"
#: Command → its options that take a secret; long options are recognized by their names.
FLAGS: Final = {
    **dict.fromkeys(("sshpass", LOGIN, "cqlsh", "rabbitmqadmin", "influx"), Flag("p")),
    **dict.fromkeys(("mongo", "mongosh", "mongodump", "mongorestore", "mongoexport"), Flag("p")),
    **dict.fromkeys(
        (
            *("mysql", "mysqldump", "mysqladmin", "mysqlimport", "mysqlshow", "mysqlcheck"),
            *("mysqlpump", "mariadb", "mariadb-dump", "mariadb-admin", "mycli"),
            *("7z", "7za", "7zr", "7zz", "rar", "unrar"),
        ),
        Flag("p", apart=False),
    ),
    **dict.fromkeys(("redis-cli", "valkey-cli"), Flag("a")),
    **dict.fromkeys(("zip", "unzip", "sqlcmd", "bcp", "mosquitto_pub", "mosquitto_sub"), Flag("P")),
    **dict.fromkeys(("ldapsearch", "ldapmodify", "ldapadd", "ldapwhoami", "ldappasswd"), Flag("w")),
    **dict.fromkeys(("http", "https", "httpie", "xh"), Flag("a", sign=":")),
    **dict.fromkeys(("smbclient", "rpcclient", "smbmap"), Flag("U", sign="%")),
    "curl": Flag("uU", sign=":"),
    "lftp": Flag("u", sign=","),
}
#: Commands whose `login` takes a password with -p.
REGISTRIES: Final = frozenset(
    (
        *("docker", "podman", "nerdctl", "buildah", "skopeo", "helm", "oras", "crane"),
        *("regctl", "oc", "az", "cf"),
        *("ibmcloud", "argocd"),
    )
)
#: Commands that may follow one of FLAGS and use the same letters for something else.
OTHERS: Final = frozenset(
    (
        *("ssh", "scp", "sftp", "rsync", "mkdir", "cp", "tar", "ps", "psql", "git"),
        *("install", "sort", "sudo"),
    )
)
#: Long options that take `name:password` if the short one does.
PAIRS: Final = frozenset(("--user", "--proxy-user", "--auth", "--cert"))
#: Long options that take a secret and do not match NAMES.
LONG: Final = frozenset(("--pass", "--pw", "--oauth2-bearer", "-storepass", "-keypass"))
#: Options that take `pass:secret`.
TAGGED: Final = frozenset(("-pass", "-passin", "-passout"))
#: What reads a secret from a pipe, and the commands that write one there.
FED: Final = frozenset(("--password-stdin", "--with-token", "--passphrase-fd", "chpasswd"))
SAYS: Final = frozenset(("echo", "printf"))
SCHEMES: Final = frozenset(
    (
        *("bearer", "basic", "token", "digest", "negotiate", "apikey", "oauth", "hawk", "ntlm"),
        *("ssws", "key", "aws4-hmac-sha256"),
    )
)

#: In lower case; a text without any of these has no name of a secret.
NAMED: Final = (
    *("pass", "secret", "token", "key", "auth", "cookie", "pwd", "pw", "sig", "sudo"),
    *("credential", "_pat", "-pat", ".pat"),
)
#: A text with none of these has no command that takes a secret as an option.
COMMANDS: Final = (*(command for command in FLAGS if command != LOGIN), *REGISTRIES)


# Find secrets by the words before them: names, command options, input from a pipe.
#
# Texts are read word by word as a shell reads them, including what is quoted; prose comes
# through unchanged. This file does no I/O, and takes time in proportion to the text.


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
    """Reads a command line word by word; each word decides how to read the next."""

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
        """Return the shown form of a word that may be a secret; "" to read it as any other."""
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
        """Return the shown form of a secret; if its quotes never close, hide all that follows."""
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


# Replace passwords, tokens and keys in commands and messages by ***.
#
# `SHAPES` describes what is a secret in any context; `Reader` finds those that follow a
# name or a command option. If in doubt, hide: showing too little of a command does no harm.
#
# Takes time linear in the length of the text. Hiding a second time changes nothing. This file
# does no I/O.


__all__ = ["HIDDEN", "SHAPES", "hide"]


class Shape(NamedTuple):
    """The shape of a secret; the first group of the pattern is kept."""

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
        return Reader().read(_members(text) if is_named else text)
    return text


def _holds(text: str, parts: tuple[str, ...]) -> bool:
    for part in parts:  # noqa: SIM110 - twice as fast as `any`, and called for every line shown
        if part in text:
            return True
    return False


def _members(text: str) -> str:
    """Hide members of objects, in JSON and in code, whose names stand for secrets."""

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
