"""Pages for people: forms that do what the API does, and work without scripts. Live updates need htmx, which is here.

shell.py    what all pages share; forms.py: what a form brings; errors.py: refusals as pages
templates/  the words; static/: styles, and htmx with its extension for server-sent events
"""
