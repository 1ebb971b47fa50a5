"""What somebody may assume of the means after the data are in, and what carried evidence says under it."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
