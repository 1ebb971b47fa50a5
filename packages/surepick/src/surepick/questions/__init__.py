"""What is asked of the candidates, beside "which one is the best": one record a question.

Each question is answered by lists, and says in `problem` units what its answer promises. docs/questions.md has the
proofs. A policy's problem holds the question; None there asks for one epsilon-best arm.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
