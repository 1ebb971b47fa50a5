"""`surepick token`: who may use a server, and for what."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from surepick.cli import options
from surepick.cli.app import Suggesting
from surepick.cli.open_study import given_database
from surepick.cli.output import picked, print_json, print_table, say
from surepick.studies.logs.base import format_time, parse_duration

if TYPE_CHECKING:
    from surepick_server.access.tokens import Tokens

ABOUT = "Tokens: who may use a server, and for what."
token = typer.Typer(name="token", cls=Suggesting, help=ABOUT, no_args_is_help=True, add_completion=False)
UrlArgument = Annotated[str, Argument(metavar="URL", help="The database.", callback=given_database, show_default=False)]
OutputOption = Annotated[options.Format, Option("--format", help="text or json.")]


@token.command("create")
def create_token(
    url: UrlArgument,
    name: Annotated[str, Argument(metavar="NAME", help="Who uses it, and reports.", show_default=False)],
    *,
    role: Annotated[
        str, Option(help="viewer (see), measurer (lease and tell), owner (make and end studies), admin (tokens).")
    ] = "measurer",
    study: Annotated[str | None, Option(help="The only study that it is for; none: all.")] = None,
    identity: Annotated[
        str | None,
        Option(
            help="What they are called where they log in: an address of e-mail, ISSUER#SUBJECT of an identity "
            "provider, or the name that a proxy gives."
        ),
    ] = None,
    lasts: Annotated[str, Option(help="How long: 12h, 30d; at most a year.")] = "90d",
    output: OutputOption = options.Format.text,
) -> None:
    """Make a token. It is shown this once: the database keeps its hash."""
    from surepick_server.access.tokens import read_role  # noqa: PLC0415 (an extra)

    text, made = _tokens(url).make(name, read_role(role), study=study, seconds=parse_duration(lasts), identity=identity)
    if output is options.Format.json:
        known = {"name": made.name, "role": made.role.name, "study": study, "identities": made.identities}
        print_json({**known, "token": text, "until": made.expires_at})
        return
    where = "" if study is None else f" of study {study}"
    article = "an" if made.role.name[0] in "ao" else "a"
    say(f"{made.name} is {article} {made.role.name}{where} until {format_time(made.expires_at)}, with this token:")
    say((text, "bold"))
    say("It is not shown again. Give it to them over a channel that you trust.")
    if made.identities:
        say(f"{made.name} logs in to the pages as {made.identities[0]}, without it: it is for commands and programs.")


@token.command("bind")
def bind_token(
    url: UrlArgument,
    name: Annotated[str, Argument(metavar="NAME", help="Whose token there is.", show_default=False)],
    identity: Annotated[
        str, Argument(metavar="IDENTITY", help="What they are called where they log in.", show_default=False)
    ],
) -> None:
    """Let somebody who has a token log in by an identity provider, or through a proxy, too."""
    bound = _tokens(url).bind(name, identity)
    say(f"{bound.name} logs in as {bound.identities[0]} until {format_time(bound.expires_at)}.")


@token.command("list")
def list_tokens(url: UrlArgument, output: OutputOption = options.Format.text) -> None:
    """List the tokens, without what they are."""
    found = _tokens(url).list()
    now = datetime.now(UTC).timestamp()
    if output is options.Format.json:
        print_json(
            {"tokens": [picked(one, "name", "study", "identities", "expires_at", "revoked_at") for one in found]}
        )
        return
    if not found:
        say("There is no token yet.")
        return
    rows = []
    for one in found:
        over = "revoked" if one.revoked_at is not None else "expired" if one.expires_at <= now else ""
        until = over or f"until {format_time(one.expires_at)}"
        rows.append((one.name, one.role.name, one.study or "all", ", ".join(one.identities), until))
    titles = ("name", "role", "studies", "logs in as", "")
    print_table(titles, rows, left=titles)


@token.command("revoke")
def revoke_token(
    url: UrlArgument, name: Annotated[str, Argument(metavar="NAME", help="Whose.", show_default=False)]
) -> None:
    """Make a token worthless from now on, with all sessions that it opened."""
    revoked = _tokens(url).revoke(name)
    say(f"The token of {revoked.name} is worth nothing any more.")


def _tokens(url: str) -> Tokens:
    from surepick.studies.database import Database  # noqa: PLC0415
    from surepick_server.access.schema import make_tables  # noqa: PLC0415 (only where it is needed)
    from surepick_server.access.tokens import Tokens  # noqa: PLC0415

    database = Database(url, create=True)
    database.prepare()
    make_tables(database.engine, secrets.token_urlsafe(32))
    return Tokens(database.engine)
