"""Studies on a server (`surepick serve`), with the methods of `Study`. `Server` needs the extra `client`.

server.py     a server: its studies, new ones, forecasts, certificates that it checks
study.py      a study on it
transport.py  requests: who we are, what is sent again, and errors as the library raises them
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from surepick_server.client.server import Server
    from surepick_server.client.study import RemoteStudy

__all__ = ["RemoteStudy", "Server"]


def __getattr__(name: str) -> object:
    from importlib import import_module  # noqa: PLC0415 (httpx is an extra: only who uses a server needs it)

    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{'server' if name == 'Server' else 'study'}"), name)
