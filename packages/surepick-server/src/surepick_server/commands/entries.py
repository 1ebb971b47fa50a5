"""The commands of a server, by name: entry points of `surepick.commands` give these."""

from surepick.core.plugins import CommandSpec

SERVE = CommandSpec(
    "Team",
    "Serve the studies of a database: pages for people, and an API for programs.",
    "surepick_server.commands.serve:serve",
)
TOKEN = CommandSpec("Team", "Tokens: who may use a server, and for what.", "surepick_server.commands.token:token")
