"""`surepick mcp`: studies as tools of an agent."""

from importlib.util import find_spec

from surepick.cli.open_study import UrlArgument
from surepick.errors import InvalidInput


def mcp(url: UrlArgument) -> None:
    """Offer studies to an agent as tools, by the Model Context Protocol.

    It speaks on standard input and output, and ends with its input: an agent's program starts it. Nobody is told a
    value of an open round.
    """
    if find_spec("mcp") is None:
        raise InvalidInput('tools of an agent need the package mcp, which is absent: pip install "surepick[mcp]".')
    from surepick.cli.commands.agent import agent_server  # noqa: PLC0415 (an extra)

    agent_server(url).run()
