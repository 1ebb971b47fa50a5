"""`surepick serve`: studies over HTTP, for a team."""

import os
import socket
from typing import Annotated

from typer import Option

from surepick.cli.open_study import DatabaseArgument
from surepick.cli.output import note, say
from surepick.errors import InvalidInput

LOOPBACK = ("127.0.0.1", "localhost", "::1")


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
    oidc_issuer: Annotated[
        str, Option(metavar="URL", help="An identity provider that people log in by, as it writes its own address.")
    ] = "",
    oidc_client_id: Annotated[
        str, Option(metavar="ID", help="What this server is called there. Its secret: SUREPICK_OIDC_SECRET.")
    ] = "",
    oidc_name: Annotated[
        str, Option(metavar="NAME", help="What it is called on the button of the login; none: its host.")
    ] = "",
    trusted_proxy: Annotated[
        list[str] | None,
        Option(metavar="ADDRESS", help="A proxy, or a network of them, whose headers are believed; repeatable."),
    ] = None,
    trusted_header: Annotated[
        str, Option(metavar="NAME", help="In which it says who is asking, e.g. X-Forwarded-User.")
    ] = "",
) -> None:
    """Serve the studies of a database: pages for people, and an API for programs.

    Without a token it listens to this machine alone, and whoever reaches it may do everything. surepick token create
    makes tokens. Encryption is a proxy's work: see docs/serve.md. Those whom an identity provider or a proxy knows get
    in if an admin has entered them (surepick token create --identity).
    """
    import uvicorn  # noqa: PLC0415 (only where it is needed)

    from surepick_server.app import make_app  # noqa: PLC0415
    from surepick_server.settings import MIB, Settings, networks, read_header, read_provider  # noqa: PLC0415
    from surepick_server.web.connections import configuration  # noqa: PLC0415
    from surepick_server.web.open_studies import log_lines  # noqa: PLC0415
    from surepick_server.web.webhook_worker import delivering  # noqa: PLC0415

    if root_path and (not root_path.startswith("/") or root_path.endswith("/")):
        raise InvalidInput(f"--root-path is {root_path!r}; it begins with a slash and ends without one: /surepick.")
    settings = Settings(
        url,
        root_path=root_path,
        largest_body=largest_body * MIB,
        requests_a_minute=requests_a_minute,
        local=host in LOOPBACK,
        trusted_proxies=tuple(str(one) for one in networks(tuple(trusted_proxy or ()))),
        trusted_header=read_header(trusted_header, proxies=bool(trusted_proxy)),
        openid=read_provider(oidc_issuer, oidc_client_id, oidc_name, os.environ.get("SUREPICK_OIDC_SECRET", "")),
    )
    log_lines()
    app = make_app(settings)
    if not settings.alone and not app.state.server.tokens.any():
        how = (
            "--oidc-issuer" if settings.openid else "--trusted-proxy" if settings.trusted_proxies else f"--host {host}"
        )
        raise InvalidInput(
            f"{how} lets others in, and there is no token yet, so nobody could be told from anybody. Make one "
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
    try:
        with delivering(app.state.server):
            uvicorn.Server(configuration(app, settings)).run(sockets=[listening])
    finally:
        app.state.server.close()
