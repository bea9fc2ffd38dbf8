"""No secret is shown in any context, and other text is shown unchanged."""

from __future__ import annotations

import json
import shlex
import string
import time
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bellboard.core.secrets import FLAGS, HIDDEN, REGISTRIES, SHAPES, hide
from bellboard.core.text import line

Wrap = Callable[[str], str]

#: A word without blanks and quotes.
words = st.text(string.ascii_letters + string.digits + "_-.+/", min_size=8, max_size=40).map(
    lambda x: f"q{x}7"
)
#: Anything that a quoted word may contain.
texts = st.text(st.characters(min_codepoint=32, exclude_categories=["Cs"]), min_size=6, max_size=40)
secrets = texts.map(lambda x: f"{x}§{x[::-1]}" if len(x) < 30 else x).filter(lambda x: x[0] != "-")

#: Texts in which `{}`, quoted or not, is a secret.
SHELL = (
    "TOKEN={}",
    "export GITHUB_TOKEN={}",
    "env DB_PASSWORD={} make",
    "db_password={} make",
    "PGPASSWORD={} psql -h x -p 5432",
    "AWS_SECRET_ACCESS_KEY={} aws s3 ls",
    "MY_API_KEY={} ./run",
    "accessToken={}",
    "tool --token {} --verbose",
    "tool --token={}",
    "tool --password {}",
    "tool --password={}",
    "tool --db-password {} x",
    "tool --api-key {}",
    "tool --client-secret={}",
    "TOOL --PASSWORD {}",
    "tool -password {}",
    "mysql -h x -u root -p{} db",
    "mysqldump -p{}",
    "sudo mysql -uroot -p{} -e 'select 1'",
    "docker login -u me -p {} registry.example",
    "docker login -p{}",
    "docker login --password {}",
    "podman login --username=me --password={} x",
    "helm registry login x -u me -p {}",
    "sshpass -p {} ssh -p 22 host",
    "sshpass -p{} scp -P 22 a b",
    "/usr/bin/sshpass -p {} rsync a b",
    "redis-cli -h x -a {} ping",
    "mongosh -u me -p {}",
    "zip -r -P {} x.zip y",
    "7z a -p{} x.7z",
    "ldapsearch -D cn=me -w {}",
    "keytool -storepass {} -keypass {}",
    "echo {} | docker login --password-stdin",
    "printf {} | sudo -S id",
    "echo {} | gh auth login --with-token",
    "docker login --password-stdin <<< {}",
    "curl --oauth2-bearer {} x",
    "cd x && sshpass -p {} ssh y",
    "cd x;sshpass -p {} ssh y",
    "(sshpass -p {} ssh y)",
    "true | sshpass -p {} ssh y",
    "tool \\\n  --password \\\n  {}",
    "kubectl create secret generic x --from-literal=password={}",
    "aws --secret-access-key {} x",
)
#: Texts in which a word after another one is a secret.
PAIRED = (
    "curl -u {} https://example.org",
    "curl -sSu {} https://example.org",
    "curl --user {} x",
    "curl --proxy-user {} x",
    "http -a {} GET x",
)
HEADERS = (
    "Authorization: Bearer {}",
    "authorization: Basic {}",
    "AUTHORIZATION: token {}",
    "Proxy-Authorization: {}",
    "X-Api-Key: {}",
    "X-Auth-Token: {}",
    "PRIVATE-TOKEN: {}",
    "Cookie: session={}",
)


def raw(text: str) -> str:
    return text


def double(text: str) -> str:
    """Return a text in double quotes for a shell."""
    for c in '\\"$`':
        text = text.replace(c, f"\\{c}")
    return f'"{text}"'


def escaped(text: str) -> str:
    """Return a text with a backslash before each special character."""
    return "".join(c if c.isalnum() or c in "_-./" else f"\\{c}" for c in text)


quotings = st.sampled_from([shlex.quote, double, escaped])
outer: list[Wrap] = [
    raw,
    lambda x: f"bash -c {shlex.quote(x)}",
    lambda x: f"bash -c {double(x)} && echo 'it is done'",
    lambda x: f"ssh host {double(x)}",
    lambda x: f"({x})",
    lambda x: f"git status; {x}",
    lambda x: f"git status\n{x}\nls",
    lambda x: f"please run: {x}",
]
wraps = st.sampled_from(outer)


def gone(secret: str, text: str) -> None:
    """Check that no large part of the secret is left, and that hiding is idempotent."""
    shown = hide(text)
    assert secret not in shown, shown
    for n in range(len(secret) - 7):
        part = secret[n : n + 8]
        assert part not in shown or part in text.replace(secret, ""), shown
    assert hide(shown) == shown
    assert secret not in line(text, 4000)


@given(st.sampled_from(SHELL), words, wraps)
def test_an_unquoted_secret_is_hidden(form: str, secret: str, wrap: Wrap) -> None:
    """Everywhere a command takes one, in every nesting."""
    gone(secret, wrap(form.replace("{}", secret)))


@given(st.sampled_from(SHELL), secrets, quotings)
@example("TOKEN={}", 'it\'s a "bad" §one', shlex.quote)
def test_a_quoted_secret_is_hidden(form: str, secret: str, quote: Wrap) -> None:
    """With any content and any quoting."""
    text = form.replace("{}", quote(secret))
    shown = hide(text)
    assert secret not in shown
    assert quote(secret) not in shown
    assert "§" not in shown or "§" not in secret, shown
    assert hide(shown) == shown


@given(st.sampled_from(PAIRED), words, st.sampled_from([raw, shlex.quote, double]), wraps)
def test_a_password_after_a_name_and_a_colon_is_hidden(
    form: str, secret: str, quote: Wrap, wrap: Wrap
) -> None:
    """Curl takes passwords like that."""
    gone(secret, wrap(form.format(quote(f"me:{secret}"))))


@given(st.sampled_from(HEADERS), words, st.sampled_from([shlex.quote, double, escaped]), wraps)
def test_a_header_is_hidden(form: str, secret: str, quote: Wrap, wrap: Wrap) -> None:
    """However its words are quoted."""
    gone(secret, wrap(f"curl -H {quote(form.format(secret))} https://example.org"))


@given(st.sampled_from(HEADERS), words)
def test_a_header_by_itself_is_hidden(form: str, secret: str) -> None:
    gone(secret, form.format(secret))


NAMED = ("password", "token", "api_key", "clientSecret", "accessToken", "PRIVATE_KEY", "DB_PASS")


@given(st.sampled_from(NAMED), secrets, wraps, st.sampled_from([None, 2]))
def test_a_member_of_json_is_hidden(name: str, secret: str, wrap: Wrap, indent: int | None) -> None:
    """In a file, in a command, and in quotes of quotes."""
    text = json.dumps({"user": "me", name: secret, "file": "x"}, indent=indent, ensure_ascii=False)
    for given_ in (text, f"curl -d {shlex.quote(text)} x", f"curl -d {double(text)} x"):
        shown = hide(wrap(given_) if wrap is raw else f"bash -c {double(given_)}")
        assert secret not in shown
        assert "§" not in shown or "§" not in secret, shown


@given(words, wraps)
def test_a_secret_in_a_url_is_hidden(secret: str, wrap: Wrap) -> None:
    """Before the host and in the query; the rest of the URL is kept."""
    gone(secret, wrap(f"psql postgres://me:{secret}@host:5432/db"))
    gone(secret, wrap(f"redis-cli -u redis://:{secret}@host"))
    query = f"curl 'https://host:8080/x?a=1&access_token={secret}&b=2'"
    assert f"?a=1&access_token={HIDDEN}&b=2" in hide(query)
    gone(secret, wrap(query))


KNOWN = (
    *("ghp_", "gho_", "github_pat_", "glpat-", "sk-", "sk-ant-api03-", "sk-proj-", "xoxb-", "npm_"),
    *("sk_live_", "hf_", "pypi-", "AIzaSy", "xapp-", "dckr_pat_", "tskey-", "hvs.", "gsk_"),
)


@given(
    st.sampled_from(KNOWN),
    st.text(string.ascii_letters + string.digits, min_size=24, max_size=40),
    st.sampled_from(["{}", "say {} to it", "x={}", '"{}"', "'{}',", "({})", "https://h/{}?x"]),
)
def test_a_token_is_recognized_by_its_prefix(prefix: str, rest: str, place: str) -> None:
    """Its place does not matter."""
    gone(rest, place.format(prefix + rest))


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("AKIAIOSFODNN7EXAMPLE", "IOSFODNN7"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", "eyJzdWIi"),
        ("https://hooks.slack.com/services/T000/B000/xyzxyz", "xyzxyz"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", "MIIE"),
        ("echo '-----BEGIN OPENSSH PRIVATE KEY-----\\nMIIE", "MIIE"),
        ("the password is hunter2, you know", "hunter2"),
        ("don't forget the password: hunter", "hunter"),
        ("password hunter2", "hunter2"),
        ('TOKEN="of many words that never', "never"),
        ("docker login -p 'of many words that never", "never"),
        ('["docker","login","-p","hunter"]', "hunter"),
        ("npm config set //registry.npmjs.org/:_authToken hunter", "hunter"),
        ("aws configure set aws_secret_access_key aB3dE5gH", "aB3dE5gH"),
        ("headers = {'Authorization': 'Bearer hunter'}", "hunter"),
        ("fetch(u, {headers: {Authorization: `Bearer hunter`}})", "hunter"),
        ("smbclient -U 'me%hunter' //host/share", "hunter"),
        ("SSHPASS=hunter sshpass -e ssh host", "hunter"),
        ("export SECRET_KEY_BASE=hunter", "hunter"),
        ("GITHUB_PAT=hunter gh api x", "hunter"),
        ("CREDENTIALS=hunter ./deploy", "hunter"),
        ("openssl rsa -passin pass:hunter -in x", "hunter"),
        ("Server=x;Password=hunter;Encrypt=true", "hunter"),
        ("https://0123456789abcdef0123@sentry.example/1", "0123456789abcdef"),
        ("\x1b[1mTOK\u200bEN\x1b[0m=hunter", "hunter"),
        ("--pass\u200bword hunter", "hunter"),
    ],
)
def test_secrets_found_in_the_wild_are_hidden(text: str, secret: str) -> None:
    """Each was seen somewhere; also behind invisible characters."""
    assert secret not in line(text)


HARMLESS = """\
docker run -p 8080:80 -u 1000:1000 -e FOO=bar nginx
docker run -it --user root:root img sh
docker compose -p project up -d
docker login --password-stdin
docker login -u me registry.example
mkdir -p x/y && cp -p a b
tar -u -f x.tar y
ssh -p 22 me@host
scp -P 22 a me@host:b
rsync -avz -e 'ssh -p 2222' a b
curl -u
curl -u name https://host:8080/a
curl -sSL https://host:8080/path@v1 -o x
mysql -u root -p db
mysql -P 3306 -h localhost
psql -p 5432 -U me
git clone git@github.com:x/y.git
git clone ssh://git@host:22/x
git push --force-with-lease origin main
git commit -m "auth: fix login"
pytest -k token -p no:cacheprovider
python -m pytest -x tests/test_tokens.py
train --max-tokens 4096 --tokenizer x max_tokens=100
fix the token count in the parser
reset password form
feat(token): add refresh
the secret manager of the tokenizer
it's a token, isn't it
bearer token expired
Basic authentication is used
read -p "Password: " pw
read -sp 'Password:' pw; echo
npm token list
gh auth token
gh auth login --with-token < file
kubectl get secret foo -o yaml
vault token lookup
--- PASS: TestFoo (0.01s)
cd "$PWD" && OLDPWD=/x PWD=/y ls
def f(token: str, password: string) -> None:
token = lexer.next()
primary_key=id sort_key=name
cat keyboard.txt | grep key
ps -p 123 -o pid
zip -r x.zip y && unzip -p x.zip
7z x a.7z -oout
sort -u a:b
redis-cli -h x -p 6379
credentials: 'include'
secretName: foo
TOKEN_FILE=/run/x tool --password-file y
sudo -u postgres psql
echo hello | sudo tee x
SELECT password_hash FROM users
authored-by: me
tokens: 1234
https://example.org/a:b/c@d
nc -u host 53
{"command": "ls -la", "description": "List files"}
""".splitlines()


@pytest.mark.parametrize("text", HARMLESS)
def test_other_text_is_kept(text: str) -> None:
    assert text == hide(text) == line(text)


@given(
    st.text(max_size=300)
    | st.lists(
        st.sampled_from(
            [
                *HARMLESS,
                *SHELL,
                *PAIRED,
                *HEADERS,
                *"\"'\\=:|;&? \n{}[](),`$#@/*-_",
                "***",
                '\\"',
                "token",
            ]
        ),
        max_size=12,
    ).map("".join)
)
def test_hiding_twice_changes_nothing(text: str) -> None:
    """For any text."""
    once = hide(text)
    assert hide(once) == once


EVIL = (
    *("a", '"', "'", "\\", '\\"', "token", "token=", "token: ", '"token":', '"token":"', "://a:"),
    *("://a:b@", "?a", "&a", "?token=", "bearer ", "sk-", "eyJ", "-----BEGIN PRIVATE KEY", "curl "),
    *('echo "', "echo a | ", "sudo -S ", "mysql -p", "docker login -p ", "Authorization: Bearer "),
    *('"a",', "\n", "a_key", "=", "--token=", "'\"'\"'", "`token`:", "$(", "|", "0a", "don't "),
    "eyJ-",
)


@pytest.mark.parametrize("part", EVIL)
def test_the_time_is_linear(part: str) -> None:
    """16 times the text takes not much more than 16 times the time."""

    def seconds(length: int) -> float:
        text = "token curl ? & :// http " + part * (length // len(part))
        began = time.process_time()
        hide(text)
        return time.process_time() - began

    assert seconds(1 << 18) < 60 * max(0.002, min(seconds(1 << 14), seconds(1 << 14)))


def test_every_pattern_has_a_hint() -> None:
    """Otherwise the pattern would never be tried."""
    assert len({shape.name for shape in SHAPES}) == len(SHAPES)
    assert not REGISTRIES & FLAGS.keys()
