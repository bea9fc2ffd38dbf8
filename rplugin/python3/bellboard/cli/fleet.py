"""`bellboard fleet`: share sessions with other machines over a NATS server."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from typing import TYPE_CHECKING

from .arguments import Args, Subcommands, WholeHelp, add, add_verbs, filled
from .home import Problem, absolute, here, opened, print_json, share

if TYPE_CHECKING:
    from pathlib import Path

    from ..fleet.member import Credentials, Joined
    from ..fleet.permits import Grant
    from ..hosting.host import Host

START = "start Neovim or `bellboard serve --fleet`"
CERTIFICATE = (
    "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3650"
    " -subj /CN=bellboard -addext subjectAltName={name}"
    " -keyout {folder}/server.key -out {folder}/server.pem"
)
RECENT = 200  # transitions to publish again; readers drop known ones
EXAMPLE = "alice=read,answer or dev=publish"
SETUP = """\
Write a file with credentials for each member, FOLDER/MEMBER.creds, and print a
configuration of nats-server; the steps that are left come on standard error.

roles of --member MEMBER=ROLES, with commas between them:
  publish   show the sessions of one machine, and take requests for it;
            publish:MACHINE if it has another name than the member
  read      see sessions, questions and terminals of all machines
  answer    everything that changes a session: answer, stop, label, snooze;
            whoever may answer has to read as well

The member admin is always there: it creates the streams, with --create."""


def add_to(commands: Subcommands) -> None:
    verbs = add_verbs(commands, "fleet", "share sessions with other machines over a NATS server")
    joining = add(verbs, "join", join, "publish this machine's sessions and follow those of others")
    joining.add_argument("url", metavar="URL", help="tls://HOST:4222")
    joining.add_argument(
        "--creds",
        metavar="FILE",
        type=filled,
        help="credentials from `fleet setup`, or a .creds file of NATS",
    )
    text = "name of the team (default: the one in the credentials, else `team`)"
    joining.add_argument("--team", type=filled, help=text)
    text = "name of this machine (default: the one in the credentials, else the host name)"
    joining.add_argument("--machine", metavar="NAME", type=filled, help=text)
    joining.add_argument("--ca", metavar="FILE", type=filled, help="CA certificate")
    only = (("--follow", "machine"), ("--agent", "agent"), ("--repository", "repository"))
    for name, what in only:
        text = f"follow only sessions of this {what}; repeatable"
        joining.add_argument(
            name, action="append", default=[], metavar=what.upper(), type=filled, help=text
        )
    joining.add_argument("--read-only", action="store_true", help="publish nothing")
    joining.add_argument("--publish-only", action="store_true", help="follow nobody")
    joining.add_argument("--unencrypted", action="store_true", help="allow nats:// over a network")
    add(verbs, "leave", leave_fleet, "stop publishing and following")
    shown = add(verbs, "status", status, "list the machines and report problems")
    shown.add_argument("--json", action="store_true", help="print JSON")
    add(verbs, "run", run, "publish and follow: a background process starts this by itself")
    made = add(
        verbs, "setup", setup, "write the members' credentials and print a server configuration"
    )
    made.description, made.formatter_class = SETUP, WholeHelp
    made.add_argument("folder", metavar="FOLDER", help="folder of the credentials")
    text = f"such as {EXAMPLE}; repeatable"
    made.add_argument("--member", action="append", default=[], metavar="MEMBER=ROLES", help=text)
    text = "name or IP address of the server, for the steps that are printed"
    made.add_argument("--host", default="HOST", type=filled, help=text)
    made.add_argument("--team", default="team", help="(default: team)")
    made.add_argument("--port", type=int, default=4222, help="(default: 4222)")
    made.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="MEMBER=MACHINE,...",
        help="limit what a member sees and asks to these machines; repeatable",
    )
    made.add_argument(
        "--create", default="", metavar="URL", help="create the team's streams on this server"
    )
    made.add_argument("--ca", default="", metavar="FILE", help="CA certificate")


# ---------------------------------------------------------------- join, leave


def join(args: Args) -> None:
    import asyncio

    import msgspec

    from ..fleet.member import Joined, UnusableSetting, check_settings, credentials, machine_name
    from ..fleet.team_reader import try_connection
    from ..storage.machines import OPTION

    if args.read_only and args.publish_only:
        raise Problem("--read-only and --publish-only exclude each other; give one of them")
    file = str(absolute(args.creds)) if args.creds else ""
    try:
        known = credentials(file)
        wanted = Joined(
            url=args.url,
            team=args.team or known.team or "team",
            machine=args.machine or known.machine or machine_name(),
            creds=file,
            ca=str(absolute(args.ca)) if args.ca else "",
            follow=tuple(args.follow) or known.only,
            agents=tuple(args.agent),
            repositories=tuple(args.repository),
            publishes=not args.read_only and (not known.may or "publish" in known.may),
            reads=not args.publish_only and (not known.may or "read" in known.may),
        )
        check_settings(wanted, unencrypted=args.unencrypted)
    except UnusableSetting as e:
        raise Problem(str(e)) from None
    _agree(wanted, known)
    _need_nats()
    why = asyncio.run(try_connection(wanted))
    with opened() as shared:
        share(shared, OPTION, msgspec.to_builtins(wanted))
        needs = "" if shared.spool.hosts.alive() else f"{START}, then "
    if why:
        raise Problem(
            f"{why} (saved; background processes keep trying until `bellboard fleet leave`)"
        )
    print(
        f"joined {wanted.team} as {known.member}; this machine is {wanted.machine}: {_does(wanted)}"
    )
    print(f"next: {needs}`bellboard fleet status`")


def _agree(wanted: Joined, known: Credentials) -> None:
    """Raise `Problem` for settings that the server would refuse to this member."""
    file = wanted.creds
    if not (wanted.publishes or wanted.reads):
        may = ", ".join(known.may) or "nothing"
        raise Problem(
            f"{file} permits {known.member} to {may}; leave out the options that exclude it"
        )
    if wanted.publishes and known.machine and wanted.machine != known.machine:
        raise Problem(
            f"{file} is for the machine {known.machine}, not {wanted.machine}; leave out --machine,"
            " or ask for a file for that machine"
        )
    if known.only and (others := [m for m in wanted.follow if m not in known.only]):
        raise Problem(
            f"{file} is for following {', '.join(known.only)}; leave out --follow {others[0]}"
        )
    if known.team and wanted.team != known.team:
        raise Problem(f"{file} is for the team {known.team}, not {wanted.team}; leave out --team")


def _does(j: Joined) -> str:
    """Return the part of a machine in its fleet, in words."""
    if not j.publishes:
        return "it follows others, and publishes nothing"
    return "it publishes its sessions" + (", and follows others" if j.reads else ", follows nobody")


def leave_fleet(args: Args) -> None:
    from ..storage.machines import OPTION

    if joined() is None:
        raise Problem("this machine is not in a fleet")
    with opened() as shared:
        share(shared, OPTION, None)
    print("left the fleet; other machines stop listing these sessions within 15 minutes")


def joined() -> Joined | None:
    """Return the settings of this machine's fleet, if it is in one."""
    from ..fleet.member import settings_in as known
    from ..storage.machines import OPTION

    with opened() as shared:
        return known(shared.store.option(OPTION))


def _need_nats() -> None:
    from importlib.util import find_spec

    from ..fleet.nats_wire import without_nats

    if not all(map(find_spec, ("nats", "nkeys"))):
        raise Problem(without_nats())


# ---------------------------------------------------------------- status


def status(args: Args) -> int | None:
    import asyncio

    from ..core.feed import QUIET
    from ..core.words import age
    from ..fleet.member import settings_in as known
    from ..fleet.team_reader import look_at_team, try_connection
    from ..storage.machines import OPTION

    with opened() as shared:
        j = known(shared.store.option(OPTION))
        hosts = shared.spool.hosts
        alive = hosts.alive()
        told = [hosts.notes_of(pid) for pid in alive]
    if j is None:
        raise Problem("this machine is not in a fleet; see `bellboard fleet join --help`")
    _need_nats()
    found, why = asyncio.run(look_at_team(j)) if j.reads else ({}, asyncio.run(try_connection(j)))
    about_one = f"{OPTION} machine "
    said = (
        f"{about.removeprefix(about_one)}: {note}" if about.startswith(about_one) else note
        for notes in told
        for about, note in notes.items()
        if about.startswith(OPTION)
    )
    notes = sorted({*said, why} - {""})
    if args.json:
        where = {"url": j.url, "team": j.team, "machine": j.machine}
        print_json({**where, "machines": found, "notes": notes})
    else:
        print(f"{j.team} at {j.url}; this machine is {j.machine}: {_does(j)}")
        for name, m in sorted(found.items()):
            counts = ", ".join(f"{n} {what}" for what, n in sorted(m["counts"].items()))
            heard = "" if m["age"] < QUIET else f"; last heard from {age(-m['age'], 0.0)} ago"
            print(f"  {name}: {counts or 'no sessions'}{heard}")
        if j.reads and not (found or why):
            print(
                "  no machine publishes yet; on each, run `bellboard fleet join` and start Neovim"
            )
        for note in notes:
            print(f"  {note}")
        if not alive:
            print(f"  no background process runs here, so nothing is shared: {START}")
    return 1 if why else None


# ---------------------------------------------------------------- run


def run(args: Args) -> None:
    """Take part in the fleet, and print a feed of its machines for the background process.

    The events of this machine come from its own feed, which runs in this process as well.
    """
    import hashlib

    from ..fleet.member import settings_in as known
    from ..fleet.program import ASKED, Program
    from ..hosting.feed_server import Feeding
    from ..hosting.hello import hello
    from ..storage.feed_position import position
    from ..storage.machines import OPTION, OURS, lock_of
    from ..system.clock import machine_id
    from .hosts import alone, ending, run_host
    from .hosts import leave_at_once as exit

    tell, home = alone(), here()
    with ending(tell, lambda: None):
        lock = lock_of(home, OURS)
        if lock.is_taken() and (pid := lock.holder()) != os.getppid():
            raise Problem(f"process {pid} takes part already: all requests would be done twice")
        lock.close()
        with opened() as shared:
            if (settings := shared.store.option(OPTION)) is None:
                raise Problem("this machine is not in a fleet; see `bellboard fleet join --help`")
            if (j := known(settings)) is None:
                raise Problem("its settings cannot be read; run `bellboard fleet join` again")
            at = position(shared.store, None, os.getpid(), time.time()).at
        by = hashlib.sha256(f"{machine_id()}\0{home}".encode()).hexdigest()[:16]
        asks, told = os.pipe(), os.pipe()
        since = at._replace(last=max(0, at.last - RECENT))
        feeding = Feeding(since, False, asks[0], told[1], ASKED)
        program = Program(j, by, (told[0], asks[1]), (0, tell))

        def begin(host: Host) -> None:
            program.begin(host.stop)
            feeding.begin(host, hello(home))

        run_host(feeding.push, {"links": False}, tell, begin, program.close)
        if why := feeding.why or program.why:
            raise Problem(why)
    exit()


# ---------------------------------------------------------------- setup


def setup(args: Args) -> None:
    import asyncio

    from ..fleet.member import Joined, UnusableSetting, key_of
    from ..fleet.permits import ADMIN, Grant, server_configuration
    from ..fleet.subjects import TEAM
    from ..fleet.team_reader import try_connection

    _need_nats()
    if not TEAM.fullmatch(args.team):
        raise Problem(f"--team {args.team}: use letters, digits, - and _")
    folder = absolute(args.folder)
    try:
        if args.create:
            creds = str(folder / f"{ADMIN}.creds")
            made = Joined(args.create, args.team, ADMIN, creds, args.ca)
            if why := asyncio.run(try_connection(made)):
                raise Problem(why)
            print(f"the streams of {args.team} exist")
            return
        grants = [_grant(spec, args.only) for spec in args.member]
        if not grants:
            raise Problem(f"name each member and what it may do, for example --member {EXAMPLE}")
        members = [grant.member for grant in grants]
        machines = [grant.machine for grant in grants if grant.machine]
        for said, names in (("are called", members), ("publish the machine", machines)):
            if name := _twice(names):
                raise Problem(f"two members {said} {name}: each needs a name of its own")
        if wrong := [x for x in args.only if x.partition("=")[0] not in members]:
            raise Problem(f"--only {wrong[0]} limits nobody: no --member has that name")
        grants.append(Grant(ADMIN, "", frozenset({ADMIN})))
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700, parents=True)
        keyed = [g._replace(key=key_of(folder, g, args.team)) for g in grants]
    except UnusableSetting as e:
        raise Problem(str(e)) from None
    print(server_configuration(args.team, keyed, str(folder), args.port), end="")
    _next(args, folder)


def _next(args: Args, folder: Path) -> None:
    """Print the steps that are left, on standard error."""
    has_own = (folder / "server.pem").exists()
    name, host = _named(args.host)
    certificate = CERTIFICATE.format(folder=folder, name=name)
    url = f"tls://{host}:{args.port}"
    steps = [
        f"send each MEMBER.creds in {folder} to its member over a secure channel",
        *([] if has_own else [f"make a certificate, for example a self-signed one: {certificate}"]),
        f"write what was printed to {folder}/server.conf, and: nats-server -c {folder}/server.conf"
        " (if it runs: restart it, so that new members get in)",
        f"bellboard fleet setup {folder} --team {args.team} --create {url}"
        f" --ca {folder}/server.pem",
        f"each member: bellboard fleet join {url} --creds MEMBER.creds --ca server.pem",
    ]
    if host == "HOST":
        steps.append("--host NAME or --host ADDRESS fills in HOST in these steps")
    for number, step in enumerate(steps, 1):
        print(f"{number}. {step}", file=sys.stderr)


def _named(host: str) -> tuple[str, str]:
    """Return the name of a host in a certificate, and in a URL."""
    from ipaddress import ip_address

    try:
        address = ip_address(host.strip("[]"))
    except ValueError:
        return f"DNS:{host}", host
    return f"IP:{address}", f"[{address}]" if address.version == 6 else str(address)


def _grant(spec: str, only: list[str]) -> Grant:
    """Read `alice=read,answer` or `dev=publish:dev`."""
    from ..core.far import MACHINE
    from ..fleet.permits import ADMIN, ROLES, Grant
    from ..fleet.subjects import MEMBER

    member, _, said = spec.partition("=")
    roles, machine = set(), ""
    for role in said.split(","):
        if role.startswith("publish") and not machine:
            role, _, machine = role.partition(":")
            machine = machine or member
        roles.add(role)
    limits = [x.partition("=")[2] for x in only if x.partition("=")[0] == member]
    seen = tuple(name for part in limits for name in part.split(","))
    names = [machine] * bool(machine) + list(seen)
    good = MEMBER.fullmatch(member) and member != ADMIN and roles <= {*ROLES}
    if not good or not all(map(MACHINE.fullmatch, names)):
        known = ", ".join(ROLES).replace("publish", "publish[:MACHINE]")
        raise Problem(f"{spec}: expected MEMBER=ROLES, with roles of {known}")
    if "answer" in roles and "read" not in roles:
        raise Problem(f"{spec}: whoever may answer has to read as well: {member}=read,{said}")
    return Grant(member, "", frozenset(roles), machine, seen)


def _twice(names: list[str]) -> str:
    """Return the first name that repeats an earlier one in upper or lower case, or "".

    Some file systems ignore case.
    """
    low = [name.lower() for name in names]
    return next((name for n, name in enumerate(names) if low[n] in low[:n]), "")
