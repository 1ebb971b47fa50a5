"""surepick: find the best of many candidates from noisy measurements, with a certificate.

import surepick as sp

arms = sp.read_arms("arms.csv", id="sku")
found = sp.find_best(arms, measure, epsilon=0.1, noise=sp.Bernoulli(), norm_bound=1.0)
print(found.certificate)

`measure(ids)` is yours: one reward for each id. The public names are in __init__.pyi, and load on first use.
"""

import lazy_loader

__version__ = "0.3.0"  # changes whenever a design can come out otherwise: certificates say who wrote them

EXTRAS = {  # package -> the extra that installs it
    "sqlalchemy": "studies",
    "alembic": "studies",
    "jinja2": "reports",
    "cryptography": "sign",
    "torch": "neural",
    "joblib": "parallel",
}

ELSEWHERE = {  # what surepick-bench has: its module, and the name there ("": the module itself)
    "bench": ("surepick_bench", ""),
    "theory": ("surepick_bench.theory", ""),
    "MercerEmbedding": ("surepick_bench.mercer", "MercerEmbedding"),
}

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    try:
        return _elsewhere(*ELSEWHERE[name]) if name in ELSEWHERE else _load(name)
    except ModuleNotFoundError as error:
        extra, needed = EXTRAS.get(error.name or ""), error.name
        if extra is None and name in ELSEWHERE and f"{ELSEWHERE[name][0]}.".startswith(f"{error.name}."):
            extra, needed = "bench", "another package"
        if extra is None:
            raise
        from surepick.errors import InvalidInput  # noqa: PLC0415

        message = f'{name} needs {needed}, which is absent: pip install "surepick[{extra}]".'
        raise InvalidInput(message) from error


def _elsewhere(module: str, name: str) -> object:
    from importlib import import_module  # noqa: PLC0415

    found = import_module(module)
    return getattr(found, name) if name else found
