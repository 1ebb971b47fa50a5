"""`surepick serve` and `surepick token`: studies over HTTP, for a team."""

from __future__ import annotations

import importlib.util
import secrets
import socket
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from surepick.cli import options
from surepick.cli.open_study import DatabaseArgument, given_database
from surepick.cli.output import note, picked, print_json, print_table, say
from surepick.errors import InvalidInput
from surepick.studies.logs.leases import format_time, parse_duration

if TYPE_CHECKING:
    from surepick.serve.access.tokens import Tokens

LOOPBACK = ("127.0.0.1", "localhost", "::1")
NEEDED = ("fastapi", "uvicorn", "jinja2", "itsdangerous", "multipart", "prometheus_client", "sqlalchemy", "httpx")


def serve(
    url: DatabaseArgument,
    *,
    host: Annotated[str, Option(help="The address that it listens to; another than this machine's takes a token.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, Option(min=0, max=65535, help="0: any that is free.")] = 8421,
    root_path: Annotated[str, Option(help="Where a proxy serves it, e.g. /surepick.")] = "",
    largest_body: Annotated[int, Option(min=1, help="Bytes of a request, in MiB.")] = 32,
    requests_a_minute: Annotated[int, Option(min=1, help="Of one token.")] = 1_200,
) -> None:
    """Serve the studies of a database: pages for people, and an API for programs.

    Without a token it listens to this machine alone, and whoever reaches it may do everything. surepick token create
    makes tokens. Encryption is a proxy's work: see docs/serve.md.
    """
    _check_extra()
    import uvicorn  # noqa: PLC0415 (an extra)

    from surepick.serve.app import make_app  # noqa: PLC0415
    from surepick.serve.settings import MIB, Settings  # noqa: PLC0415
    from surepick.serve.web.delivering import delivering  # noqa: PLC0415
    from surepick.serve.web.watching import log_lines  # noqa: PLC0415

    if root_path and (not root_path.startswith("/") or root_path.endswith("/")):
        raise InvalidInput(f"--root-path is {root_path!r}; it begins with a slash and ends without one: /surepick.")
    settings = Settings(
        url,
        root_path=root_path,
        largest_body=largest_body * MIB,
        requests_a_minute=requests_a_minute,
        local=host in LOOPBACK,
    )
    log_lines()
    app = make_app(settings)
    if not settings.local and not app.state.server.tokens.any():
        raise InvalidInput(
            f"--host {host} lets others in, and there is no token yet, so nobody could be told from anybody. Make one "
            "first: surepick token create URL NAME --role admin."
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # with its protocol, by which asyncio knows that answers are not to wait for acknowledgements
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except (OSError, UnicodeError) as error:
        listening.close()
        why = getattr(error, "strerror", None) or error
        raise InvalidInput(f"{host} port {port} cannot be listened to: {why}. Choose another.") from None
    shown = f"[{host}]" if ":" in host else host
    say(f"Serving on http://{shown}:{listening.getsockname()[1]}{root_path}/ (Ctrl-C ends it; what was stored stays).")
    if app.state.server.is_local():
        note("there is no token yet: whoever uses this machine may do everything. surepick token create makes one.")
    config = uvicorn.Config(
        app,
        log_config=None,
        server_header=False,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=10,
        h11_max_incomplete_event_size=65536,
        lifespan="off",
    )
    with delivering(app.state.server):
        uvicorn.Server(config).run(sockets=[listening])
    app.state.server.trail.close()


token = typer.Typer(
    name="token", help="Tokens: who may use a server, and for what.", no_args_is_help=True, add_completion=False
)


@token.command("create")
def create_token(
    url: Annotated[str, Argument(metavar="URL", help="The database.", callback=given_database, show_default=False)],
    name: Annotated[str, Argument(metavar="NAME", help="Who uses it, and reports.", show_default=False)],
    *,
    role: Annotated[
        str, Option(help="viewer (see), measurer (lease and tell), owner (make and end studies), admin (tokens).")
    ] = "measurer",
    study: Annotated[str | None, Option(help="The only study that it is for; none: all.")] = None,
    lasts: Annotated[str, Option(help="How long: 12h, 30d; at most a year.")] = "90d",
    output: Annotated[options.Format, Option("--format", help="text or json.")] = options.Format.text,
) -> None:
    """Make a token. It is shown this once: the database keeps its hash."""
    _check_extra()
    from surepick.serve.access.roles import read_role  # noqa: PLC0415 (an extra)

    text, made = _tokens(url).make(name, read_role(role), study=study, seconds=parse_duration(lasts))
    if output is options.Format.json:
        print_json({"name": made.name, "role": made.role.name, "study": study, "token": text, "until": made.expires_at})
        return
    where = "" if study is None else f" of study {study}"
    say(f"{made.name} is a {made.role.name}{where} until {format_time(made.expires_at)}, with this token:")
    say((text, "bold"))
    say("It is not shown again. Give it to them over a channel that you trust.")


@token.command("list")
def list_tokens(
    url: Annotated[str, Argument(metavar="URL", help="The database.", callback=given_database, show_default=False)],
    output: Annotated[options.Format, Option("--format", help="text or json.")] = options.Format.text,
) -> None:
    """List the tokens, without what they are."""
    _check_extra()
    found = _tokens(url).list()
    now = datetime.now(UTC).timestamp()
    if output is options.Format.json:
        print_json({"tokens": [picked(one, "name", "study", "expires_at", "revoked_at") for one in found]})
        return
    if not found:
        say("There is no token yet.")
        return
    rows = []
    for one in found:
        over = "revoked" if one.revoked_at is not None else "expired" if one.expires_at <= now else ""
        rows.append((one.name, one.role.name, one.study or "all", over or f"until {format_time(one.expires_at)}"))
    print_table(("name", "role", "studies", ""), rows, left=("name", "role", "studies", ""))


@token.command("revoke")
def revoke_token(
    url: Annotated[str, Argument(metavar="URL", help="The database.", callback=given_database, show_default=False)],
    name: Annotated[str, Argument(metavar="NAME", help="Whose.", show_default=False)],
) -> None:
    """Make a token worthless from now on, with all sessions that it opened."""
    _check_extra()
    revoked = _tokens(url).revoke(name)
    say(f"The token of {revoked.name} is worth nothing any more.")


def _tokens(url: str) -> Tokens:
    from surepick.serve.access.schema import make_tables  # noqa: PLC0415 (an extra)
    from surepick.serve.access.tokens import Tokens  # noqa: PLC0415
    from surepick.studies.database import Database  # noqa: PLC0415

    database = Database(url, create=True)
    database.prepare()
    make_tables(database.engine, secrets.token_urlsafe(32))
    return Tokens(database.engine)


def _check_extra() -> None:
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise InvalidInput(f'a server needs {missing[0]}, which is absent: pip install "surepick[serve]".')
