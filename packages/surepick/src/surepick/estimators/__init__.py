"""Observations -> estimates with widths."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)  # each file when a name of it is used
