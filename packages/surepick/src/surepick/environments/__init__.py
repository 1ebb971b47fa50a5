"""The hidden truth: synthetic instances and data sets that can be pulled. No policy sees them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
