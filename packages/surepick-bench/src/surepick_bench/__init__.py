"""Many studies against many environments: specs, runner, results, summaries. The names load on first use."""

import lazy_loader

__version__ = "0.3.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
