"""surepick: find the best of many candidates from noisy measurements, with a certificate.

import surepick as sp

arms = sp.read_arms("arms.csv", id="sku")
found = sp.find_best(arms, measure, epsilon=0.1, noise=sp.Bernoulli(), norm_bound=1.0)
print(found.certificate)

`measure(ids)` is yours: one reward for each id. The public names are in __init__.pyi, and load on first use.
"""

import lazy_loader

__version__ = "0.2.0"  # changes whenever a design can come out otherwise: certificates say who wrote them

EXTRAS = {  # package -> the extra that installs it
    "sqlalchemy": "studies",
    "alembic": "studies",
    "jinja2": "reports",
    "cryptography": "sign",
    "torch": "neural",
    "joblib": "bench",
}

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    try:
        return _load(name)
    except ModuleNotFoundError as error:
        if error.name not in EXTRAS:
            raise
        from surepick.errors import InvalidInput  # noqa: PLC0415

        extra = EXTRAS[error.name]
        message = f'{name} needs {error.name}, which is absent: pip install "surepick[{extra}]".'
        raise InvalidInput(message) from error
