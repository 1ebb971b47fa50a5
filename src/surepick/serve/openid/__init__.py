"""Login by an identity provider (OpenID Connect, authorization code with PKCE). Needs the extra `oidc`.

fetching.py  what the provider answers, within a time and a size
id_token.py  what it says of a person, once it is known to be true
flow.py      one login, which belongs to one browser
provider.py  all of it together
"""
