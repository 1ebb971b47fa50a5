"""`surepick serve`: studies over HTTP, for a team. Imported by that command only; needs the extra `serve`.

access/   who may do what: roles, tokens, the audit trail
api/      routes under /api/v1
web/      limits, headers, errors: what holds for all routes
pages/    pages for people
"""
