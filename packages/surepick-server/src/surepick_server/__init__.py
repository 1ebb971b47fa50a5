"""Studies over HTTP, for a team: the command `surepick serve`, and its client.

access/    who may do what: roles, tokens, the audit trail
api/       routes under /api/v1
client/    studies on a server, with the methods of `Study`
commands/  what the command line gets: serve, token
pages/     pages for people
web/       limits, headers, errors: what holds for all routes
"""

__version__ = "0.3.0"
