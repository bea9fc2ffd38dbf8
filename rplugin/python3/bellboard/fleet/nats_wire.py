"""One connection to a NATS server, requests to JetStream, and failures in words.

A broken connection is never repaired: everything that uses it ends, and the caller connects again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import shlex
import socket
import ssl
import sys
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from importlib.util import find_spec
from typing import Any, Final

import msgspec

from ..core import words
from ..core.feed import SILENT_AFTER
from ..system.clock import clock
from ..system.failures import described
from . import subjects
from .member import Credentials, Joined

PATIENCE: Final = 10.0  # seconds for the server to answer
CONNECT: Final = 5.0  # seconds: a lost packet is sent again after 1, 3 and 7
CLOSING: Final = 1.0  # seconds to close a connection
LOOK: Final = 1.0  # seconds between two checks whether the connection is closed
BEAT: Final = 5  # seconds between two pings; the second missed one ends the connection
PENDING: Final = 1 << 20  # bytes waiting to be sent
WAITING: Final = 32 << 20  # bytes of messages that wait to be read
#: Bytes of an incomplete message: a list of 100,000 rows; members may send 128 kB.
LARGEST: Final = 16 << 20
WRONG_LAST: Final = 10071  # JetStream's code: somebody else wrote the key
NO_STREAM: Final = 10059
NOBODY: Final = 503  # code: nobody listens to the subject

#: A message as the server announces it.  Other white space may be part of a subject.
_MSG: Final = re.compile(
    rb"\AMSG[ \t]+([^ \t\r\n]+)[ \t]+(\d+)[ \t]+(([^ \t\r\n]+)[ \t]+)?(\d+)\r\n"
)
_HMSG: Final = re.compile(
    rb"\AHMSG[ \t]+([^ \t\r\n]+)[ \t]+(\d+)[ \t]+(([^ \t\r\n]+)[ \t]+)?(\d+)[ \t]+(\d+)\r\n"
)
_DENIED: Final = re.compile(r'permissions violation for (publish|subscription) to "([^"]*)"', re.I)


class Down(Exception):
    """The connection is of no use; the text says why and what to do."""


class NotPermitted(Exception):
    """The server does not permit an action."""


class ServerRefused(Exception):
    """JetStream refused; `code` is its error code."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


NatsMessage = Any  # nats.aio.msg.Msg: subject, reply, data, headers


class NatsWire:
    """A connection, from `open` until it breaks or is closed."""

    def __init__(
        self, joined: Joined, credentials: Credentials, deaf: Callable[[str], None]
    ) -> None:
        self._joined, self._credentials = joined, credentials
        self._deaf = deaf  # called with a subject that is forbidden to us
        self._client: Any = None
        self._error: Exception | None = None
        self._denied: dict[str, asyncio.Future[str]] = {}  # subject in lower case → waiting request
        self._may_miss: set[int] = set()  # subscriptions that can do without some messages
        self._broken: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def open(self) -> None:
        """Connect; raise `Down`."""
        import nats.aio.client

        _hush()
        self._client = nats.aio.client.Client()
        self._client._ps = _parser(self._client)
        self._client._process_headers = _headers
        j, c = self._joined, self._credentials
        how: dict[str, Any] = {}
        try:
            if j.url.startswith("tls:"):
                how["tls"] = ssl.create_default_context(cafile=j.ca or None)
            if c.seed:
                how |= _signing(c)
            connecting = self._client.connect(
                j.url,
                name=f"bellboard {j.machine}",
                error_cb=self._failed,
                closed_cb=self._closed,
                allow_reconnect=False,
                max_reconnect_attempts=1,
                reconnect_time_wait=0,
                connect_timeout=CONNECT,
                ping_interval=BEAT,
                max_outstanding_pings=2,
                pending_size=PENDING,
                inbox_prefix=subjects.inbox(c.member),
                **how,
            )
            await asyncio.wait_for(connecting, 2 * CONNECT)
        except (Exception, asyncio.CancelledError) as e:
            await self.close()
            if isinstance(e, asyncio.CancelledError):
                raise
            raise Down(server_trouble(self._error or e, self._joined)) from None

    async def breaks(self) -> None:
        """Wait until the connection breaks; raise `Down`."""
        while not self._broken.done():
            begun = clock()
            await asyncio.wait((self._broken,), timeout=LOOK)
            if clock() - begun > SILENT_AFTER:
                raise Down("this machine slept")
            if self._client.is_closed:  # nats-py does not report the failure of a last write
                await self._closed()
        raise Down(self._broken.result())

    async def close(self) -> None:
        """Disconnect."""
        await _ended(self._client.close())
        transport = getattr(self._client, "_transport", None)
        if transport is not None:  # nats-py leaves the transport open when the server went away
            with contextlib.suppress(Exception):
                transport.close()
            await _ended(transport.wait_closed())

    @property
    def url(self) -> str:
        return self._joined.url

    @property
    def member(self) -> str:
        return self._credentials.member

    @property
    def is_walled(self) -> bool:
        """Return whether we have an account of our own, in which only imported subjects exist."""
        return self._credentials.is_walled

    @property
    def most(self) -> int:
        """Return the most bytes of a message."""
        return int(self._client.max_payload)

    def inbox(self) -> str:
        return str(self._client.new_inbox())

    async def publish(self, subject: str, body: bytes, reply: str = "") -> None:
        try:
            await self._client.publish(subject, body, reply=reply)
        except Exception as e:
            raise Down(server_trouble(e, self._joined)) from None

    async def subscribe(
        self,
        subject: str,
        take: Callable[[NatsMessage], Awaitable[None]],
        most: int,
        may_miss: bool = False,
    ) -> Any:
        """Call `take` with each message, of which `most` may wait.

        With more waiting, the connection breaks, unless we `may_miss` them.
        """
        try:
            made = await self._client.subscribe(
                subject, cb=take, pending_msgs_limit=most, pending_bytes_limit=WAITING
            )
        except Exception as e:
            raise Down(server_trouble(e, self._joined)) from None
        if may_miss:
            self._may_miss.add(made._id)
        return made

    async def ask(
        self,
        subject: str,
        body: bytes,
        headers: Mapping[str, str] | None = None,
        patience: float = PATIENCE,
    ) -> NatsMessage:
        """Send a request; return the reply, or raise `NotPermitted`, `Down` or TimeoutError."""
        import nats.errors

        # Replaced by the next request for the same subject, which gets the same refusal.
        denied = self._denied[subject.lower()] = asyncio.get_running_loop().create_future()
        asking = asyncio.ensure_future(
            self._client.request(subject, body, timeout=patience, headers=headers)
        )
        try:
            await asyncio.wait((asking, denied), return_when=asyncio.FIRST_COMPLETED)
            if denied.done():
                raise NotPermitted(denied.result())
            return await asking
        except nats.errors.NoRespondersError:
            if self.is_walled:
                raise NotPermitted(f"not permitted: {words.plain(subject)}") from None
            raise ServerRefused(NOBODY, "nobody answers there") from None
        except (asyncio.TimeoutError, nats.errors.TimeoutError):
            raise TimeoutError(f"no answer within {patience:g} s") from None
        except nats.errors.Error as e:
            raise Down(server_trouble(e, self._joined)) from None
        finally:
            asking.cancel()
            if self._denied.get(subject.lower()) is denied:
                del self._denied[subject.lower()]

    async def call(self, subject: str, body: object = None) -> dict[str, Any]:
        """Call JetStream; return its reply, or raise `ServerRefused` as well."""
        raw = b"" if body is None else msgspec.json.encode(body)
        try:
            return _decoded((await self.ask(subject, raw)).data)
        except TimeoutError:
            raise Down(f"{self._joined.url} does not respond") from None
        except ServerRefused as e:
            if e.code == NOBODY and subject.startswith("$JS.API."):
                raise Down(f"{self._joined.url} runs without JetStream: start it with -js") from e
            raise

    def where(self, stream: str, subject: str) -> str:
        """Return the subject of a request for the last message of a subject."""
        ours = subjects.Subjects(self._joined.team).get(subject)
        return ours if self.is_walled else f"$JS.API.DIRECT.GET.{stream}.{subject}"

    async def info(self, stream: str, body: object = None) -> dict[str, Any]:
        """Return the server's information about a stream."""
        where = subjects.Subjects(self._joined.team).info(stream)
        return await self.call(where if self.is_walled else f"$JS.API.STREAM.INFO.{stream}", body)

    async def put(
        self,
        subject: str,
        body: bytes,
        headers: Mapping[str, str] | None = None,
        patience: float = PATIENCE,
    ) -> int:
        """Write to a stream; return the number of the message there."""
        try:
            reply = await self.ask(subject, body, headers, patience)
        except TimeoutError:
            raise Down(f"{self._joined.url} does not respond") from None
        return int(_decoded(reply.data).get("seq", 0))

    # ------------------------------------------------------------ what goes wrong

    async def _failed(self, error: Exception) -> None:
        import nats.errors

        if isinstance(error, nats.errors.SlowConsumerError):
            if not (error.sid in self._may_miss or self._broken.done()):
                self._broken.set_result("this machine does not keep up with the fleet")
            return
        found = _DENIED.search(str(error))
        if found is None:
            self._error = error
            return
        what, subject = found[1].lower(), found[2].lower()
        if what == "subscription":
            self._deaf(subject)
        elif (waiting := self._denied.get(subject)) is not None and not waiting.done():
            waiting.set_result(f"not permitted: {words.plain(subject)}")

    async def _closed(self) -> None:
        if not self._broken.done():
            last = getattr(self._client, "last_error", None)
            if last is None or _DENIED.search(str(last)):
                last = self._error or ConnectionResetError()
            self._broken.set_result(server_trouble(last, self._joined))


def _parser(client: Any) -> Any:
    """Return a parser with a limit: the parser of nats-py keeps noise, or half a message, forever.

    That parser also ends a subject where the server does not, and reads the rest as the number of
    a subscription: so a member could choose the reader and the apparent sender of its message.
    """
    import nats.errors
    from nats.protocol import parser

    parser.MSG_RE, parser.HMSG_RE = _MSG, _HMSG

    class Limited(parser.Parser):
        async def parse(self, data: bytes = b"") -> None:
            await super().parse(data)
            if len(self.buf) > LARGEST:
                self.reset()
                raise nats.errors.ProtocolError

    return Limited(client)


async def _headers(raw: bytes) -> dict[str, str]:
    """Return the headers of a message, whoever wrote them: nats-py hangs up at some headers.

    Headers of the server come last, and count.  Only the server sends a status, on its own.
    """
    first, *lines = bytes(raw or b"").decode("utf-8", "replace").split("\r\n")
    parts = (line.partition(":") for line in lines)
    found = {name: value.strip() for name, colon, value in parts if colon and name != "Status"}
    status = first.partition(" ")[2][:3]
    return {"Status": status} if status.isdigit() and lines == ["", ""] else found


def _hush() -> None:
    """Keep libraries from logging failures that health already reports."""
    logging.getLogger("nats").setLevel(logging.CRITICAL)
    logging.getLogger("asyncio").addFilter(_is_of_use)


def _is_of_use(record: logging.LogRecord) -> bool:
    said = str(record.msg)
    return not ("eof_received" in said or "/nats/aio/" in said)  # ends of nats-py's tasks


async def _ended(work: Coroutine[Any, Any, object]) -> None:
    """Wait for a while until work has ended, by success or failure."""
    ending = asyncio.ensure_future(work)
    await asyncio.wait((ending,), timeout=CLOSING)
    if not ending.done():
        ending.cancel()
    elif not ending.cancelled():
        ending.exception()


def _signing(c: Credentials) -> dict[str, Any]:
    """Return the function with which nats signs with our seed."""
    import base64

    import nkeys

    def sign(nonce: str) -> bytes:
        return base64.b64encode(nkeys.from_seed(bytearray(c.seed.encode())).sign(nonce.encode()))

    if c.jwt:
        return {"signature_cb": sign, "user_jwt_cb": lambda: bytearray(c.jwt.encode())}
    return {"nkeys_seed_str": c.seed}


def _decoded(raw: bytes) -> dict[str, Any]:
    try:
        reply = msgspec.json.decode(raw, type=dict[str, Any])
    except ValueError:  # not JSON, or not UTF-8
        raise ServerRefused(0, "the server's reply cannot be read") from None
    error = reply.get("error")
    if isinstance(error, dict):
        code = error.get("err_code") or error.get("code") or 0
        raise ServerRefused(int(code), words.plain(str(error.get("description", "")))[:200])
    return reply


# Failures of a NATS server in words, with advice.


NATS_PACKAGE: Final = "nats-py[nkeys]>=2.9"  # the extra `fleet` of pyproject.toml
HUNG_UP: Final = (ConnectionResetError, BrokenPipeError)


def without_nats() -> str:
    """Return how to install the packages of a fleet for this Python; with uv, there is no pip."""
    python = shlex.quote(sys.executable)
    has_pip = find_spec("pip") is not None
    how = f"{python} -m pip install" if has_pip else f"uv pip install --python {python}"
    return f"nats-py is missing; install it: {how} {shlex.quote(NATS_PACKAGE)}"


def server_trouble(e: BaseException, joined: Joined) -> str:
    """Return why the connection failed, and what to do."""
    url, creds = joined.url, joined.creds
    text = str(e)
    low = text.lower()
    if "authorization" in low or "authentication" in low or "revoked" in low:
        file = f"the credentials in {creds}" if creds else "us without credentials (--creds)"
        why = "they were revoked or belong to another server"
        return f"{url} refuses {file}: {why}; ask whoever set up the fleet, then join again"
    if isinstance(e, ssl.SSLCertVerificationError):
        if "not valid for" in e.verify_message:
            return f"{url}: {words.plain(e.verify_message)}; use a name or an address that is in it"
        ca = "is --ca FILE right?" if joined.ca else "give it with --ca FILE"
        return f"{url}: its certificate is not trusted: {words.plain(e.verify_message)}; {ca}"
    if isinstance(e, ssl.SSLError):
        said = words.plain(e.reason or text).replace("_", " ").lower()
        return f"{url}: TLS failed: {said}; does the server use TLS on this port?"
    if isinstance(e, FileNotFoundError) and joined.ca:
        return f"{joined.ca} cannot be read; give the certificate with --ca FILE"
    if isinstance(e, asyncio.TimeoutError) or "timeout" in low:
        return f"{url} does not respond; is the network up?"
    if isinstance(e, socket.gaierror):
        return f"{url} cannot be reached: {described(e)}; check its name"
    if isinstance(e, OSError) and e.errno and not isinstance(e, HUNG_UP):
        return f"{url} cannot be reached: {os.strerror(e.errno)}; {_advice(e, joined)}"
    if "stale" in low or "eof" in low or isinstance(e, HUNG_UP):
        return f"{url} went away; {_advice(e, joined)}"
    return f"{url}: {words.plain(text) or 'the connection failed'}"


def _advice(e: BaseException, joined: Joined) -> str:
    """Return advice if the server cannot be used; one that wants credentials hangs up."""
    if not (isinstance(e, HUNG_UP) or "eof" in str(e).lower()):
        return "is the server running?"
    if creds := joined.creds:
        return f"is the server running, and are the credentials in {creds} still valid?"
    return "does it ask for credentials? --creds FILE"


# Wait for tasks and events so that no cancellation is lost.
#
# Before Python 3.12 `asyncio.wait_for` swallows a cancellation that comes just as its wait ends:
# the task would go on, and whoever cancelled it would wait forever.


async def is_set(event: asyncio.Event, within: float) -> None:
    """Wait until an event is set, at most this many seconds."""
    waiting = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait((waiting,), timeout=within)
    finally:
        waiting.cancel()


async def together(tasks: list[asyncio.Future[Any]]) -> None:
    """Wait until a task fails, end the others, and raise its exception."""
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for task in tasks:  # only once: a second time would interrupt a task's cleanup
            task.cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
    for result in done:
        if isinstance(result, Exception):
            raise result
