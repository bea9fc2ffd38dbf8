"""The names, commands and options whose value is a secret."""

from __future__ import annotations

from typing import Final, NamedTuple

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
