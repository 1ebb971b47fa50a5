"""Pages for people: forms that do what the API does, and work without scripts. Live updates need htmx, which is here.

layout.py   what all pages share: templates, forms, refusals as pages
templates/  the words; static/: styles, and htmx with its extension for server-sent events
"""
