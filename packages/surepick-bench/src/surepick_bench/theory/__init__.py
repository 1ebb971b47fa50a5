"""The paper's theory: the complexity rho*, and its bounds on the pulls. Only experiments use it."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
