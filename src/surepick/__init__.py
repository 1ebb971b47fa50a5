"""surepick: find the best of many candidates from noisy measurements, with a certificate.

import surepick as sp

arms = sp.read_arms("arms.csv", id="sku")
policy = sp.make_policy("certified-linear", arms, epsilon=0.1, delta=0.05, noise=sp.Bernoulli(), norm_bound=1.0)
study = sp.Study(arms, policy)
while (plan := study.ask()) is not None:
    ids, rewards = measure(plan.table())          # yours
    study.tell(ids, rewards)
print(study.certificate())
"""

import importlib
import importlib.util
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from surepick import bench as bench
    from surepick import environments
    from surepick import theory as theory
    from surepick.certificates.document import write_certificate
    from surepick.certificates.signature import sign_certificate
    from surepick.certificates.verify import verify_certificate
    from surepick.core.arms import Arms
    from surepick.core.certificate import Certificate
    from surepick.core.design import Allocation, Design, Embedding
    from surepick.core.json import from_json, to_json
    from surepick.core.observations import Observations
    from surepick.core.plan import Plan
    from surepick.core.step import RoundRecord, Step
    from surepick.designs import allocate, design_value, round_design, solve_design
    from surepick.embeddings import (
        FourierExpansion,
        GaussianKernel,
        HermiteExpansion,
        IndependentEmbedding,
        KernelEmbedding,
        LinearEmbedding,
        MaternKernel,
        MercerEmbedding,
        NeuralTangentKernel,
        PolynomialKernel,
        ProductExpansion,
        SineExpansion,
    )
    from surepick.errors import (
        ContractError,
        DatasetMissing,
        InvalidInput,
        NotConverged,
        OutOfTurn,
        StorageError,
        SurepickError,
    )
    from surepick.forecasts import Forecast, forecast
    from surepick.noise import Bernoulli, Bounded, Noise, PilotGaussian, SubGaussian, parse_noise, pilot_noise
    from surepick.policies.base import Claim, Policy, Problem, Traits
    from surepick.policies.dimension import effective_dimension
    from surepick.policies.registry import make_policy, paper_settings, policy_names
    from surepick.simulation import Run, simulate
    from surepick.studies import Study
    from surepick.studies.batch import Batch
    from surepick.studies.closed_loop import Result, find_best
    from surepick.studies.registration import registration_code
    from surepick.tables import read_arms
    from surepick.tuning.kernel import choose_kernel

__version__ = "0.1.0"

HOMES = {  # module -> public names in it: resolved on first use, so that a command loads what it needs
    "surepick.core.json": (
        "from_json",
        "to_json",
    ),
    "surepick.policies.dimension": ("effective_dimension",),
    "surepick.tuning.kernel": ("choose_kernel",),
    "surepick.designs": (
        "allocate",
        "design_value",
        "round_design",
        "solve_design",
    ),
    "surepick.embeddings": (
        "FourierExpansion",
        "GaussianKernel",
        "HermiteExpansion",
        "IndependentEmbedding",
        "KernelEmbedding",
        "LinearEmbedding",
        "MaternKernel",
        "MercerEmbedding",
        "NeuralTangentKernel",
        "PolynomialKernel",
        "ProductExpansion",
        "SineExpansion",
    ),
    "surepick.errors": (
        "ContractError",
        "DatasetMissing",
        "InvalidInput",
        "NotConverged",
        "OutOfTurn",
        "StorageError",
        "SurepickError",
    ),
    "surepick.simulation": ("Run", "simulate"),
    "surepick.forecasts": (
        "Forecast",
        "forecast",
    ),
    "surepick.noise": (
        "Bernoulli",
        "Bounded",
        "Noise",
        "PilotGaussian",
        "SubGaussian",
        "parse_noise",
        "pilot_noise",
    ),
    "surepick.policies.base": ("Claim", "Policy", "Problem", "Traits"),
    "surepick.policies.registry": (
        "make_policy",
        "paper_settings",
        "policy_names",
    ),
    "surepick.core.arms": ("Arms",),
    "surepick.core.certificate": ("Certificate",),
    "surepick.core.design": ("Allocation", "Design", "Embedding"),
    "surepick.core.observations": ("Observations",),
    "surepick.core.plan": ("Plan",),
    "surepick.core.step": ("RoundRecord", "Step"),
    "surepick.studies": ("Study",),
    "surepick.studies.batch": ("Batch",),
    "surepick.studies.closed_loop": ("Result", "find_best"),
    "surepick.certificates.document": ("write_certificate",),
    "surepick.studies.registration": ("registration_code",),
    "surepick.certificates.signature": ("sign_certificate",),
    "surepick.certificates.verify": ("verify_certificate",),
    "surepick.tables": ("read_arms",),
}
NEED_EXTRAS = {  # name -> (module, package that it needs, extra)
    "Network": ("surepick.embeddings.neural.network", "torch", "neural"),
    "create_study": ("surepick.studies.database", "sqlalchemy", "studies"),
    "list_studies": ("surepick.studies.database", "sqlalchemy", "studies"),
    "open_study": ("surepick.studies.database", "sqlalchemy", "studies"),
    "write_report": ("surepick.reports.study.page", "jinja2", "reports"),
}
PARTS = ("bench", "environments", "theory")  # whose names are used as sp.environments.sphere; the second one is public
MODULE_OF = {name: module for module, names in HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    """The public names, resolved on first use; some need an extra."""
    if name in PARTS:
        return importlib.import_module(f"surepick.{name}")
    if name in NEED_EXTRAS:
        module, package, extra = NEED_EXTRAS[name]
        if importlib.util.find_spec(package) is None:
            from surepick.errors import InvalidInput  # noqa: PLC0415

            raise InvalidInput(f'{name} needs {package}, which is absent: pip install "surepick[{extra}]".')
        return getattr(importlib.import_module(module), name)
    if name not in MODULE_OF:
        raise AttributeError(f"module 'surepick' has no attribute {name!r}")
    found = getattr(importlib.import_module(MODULE_OF[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *NEED_EXTRAS})


__all__ = [
    "Allocation",
    "Arms",
    "Batch",
    "Bernoulli",
    "Bounded",
    "Certificate",
    "Claim",
    "ContractError",
    "DatasetMissing",
    "Design",
    "Embedding",
    "Forecast",
    "FourierExpansion",
    "GaussianKernel",
    "HermiteExpansion",
    "IndependentEmbedding",
    "InvalidInput",
    "KernelEmbedding",
    "LinearEmbedding",
    "MaternKernel",
    "MercerEmbedding",
    "NeuralTangentKernel",
    "Noise",
    "NotConverged",
    "Observations",
    "OutOfTurn",
    "PilotGaussian",
    "Plan",
    "Policy",
    "PolynomialKernel",
    "Problem",
    "ProductExpansion",
    "Result",
    "RoundRecord",
    "Run",
    "SineExpansion",
    "Step",
    "StorageError",
    "Study",
    "SubGaussian",
    "SurepickError",
    "Traits",
    "allocate",
    "choose_kernel",
    "design_value",
    "effective_dimension",
    "environments",
    "find_best",
    "forecast",
    "from_json",
    "make_policy",
    "paper_settings",
    "parse_noise",
    "pilot_noise",
    "policy_names",
    "read_arms",
    "registration_code",
    "round_design",
    "sign_certificate",
    "simulate",
    "solve_design",
    "to_json",
    "verify_certificate",
    "write_certificate",
]
