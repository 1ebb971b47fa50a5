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

from surepick import environments
from surepick.codec import from_json, to_json
from surepick.complexity import effective_dimension
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
from surepick.experiments import Run, simulate
from surepick.forecast import Forecast, forecast
from surepick.noise import Bernoulli, Bounded, Noise, PilotGaussian, SubGaussian, parse_noise, pilot_noise
from surepick.policies import (
    LUCB,
    RAGE,
    ActionElimination,
    AdaptiveElimination,
    CertifiedElimination,
    FixedElimination,
    LinGame,
    LinGapE,
    MeansNeuralRule,
    Policy,
    SuccessiveHalving,
    UnknownMisspecificationElimination,
    XYAdaptive,
    XYStatic,
    make_policy,
    paper_settings,
    policy_names,
)
from surepick.records import (
    Allocation,
    Arms,
    Certificate,
    Design,
    Embedding,
    Observations,
    Plan,
    RoundRecord,
    Step,
)
from surepick.studies import Study
from surepick.tables import read_arms

__version__ = "0.1.0"

NEED_EXTRAS = {  # name -> (module, package that it needs, extra): resolved on first use, so that importing is light
    "CertifiedNeural": ("surepick.policies.certified_neural", "torch", "neural"),
    "Network": ("surepick.embeddings.neural", "torch", "neural"),
    "NeuralElimination": ("surepick.policies.neural_elimination", "torch", "neural"),
    "create_study": ("surepick.studies.durable", "sqlalchemy", "studies"),
    "list_studies": ("surepick.studies.durable", "sqlalchemy", "studies"),
    "open_study": ("surepick.studies.durable", "sqlalchemy", "studies"),
}


def __getattr__(name: str) -> object:
    """The names that need an extra, resolved on first use."""
    if name not in NEED_EXTRAS:
        raise AttributeError(f"module 'surepick' has no attribute {name!r}")
    module, package, extra = NEED_EXTRAS[name]
    if importlib.util.find_spec(package) is None:
        raise InvalidInput(f'{name} needs {package}, which is absent: pip install "surepick[{extra}]".')
    return getattr(importlib.import_module(module), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *NEED_EXTRAS})


__all__ = [
    "LUCB",
    "RAGE",
    "ActionElimination",
    "AdaptiveElimination",
    "Allocation",
    "Arms",
    "Bernoulli",
    "Bounded",
    "Certificate",
    "CertifiedElimination",
    "ContractError",
    "DatasetMissing",
    "Design",
    "Embedding",
    "FixedElimination",
    "Forecast",
    "FourierExpansion",
    "GaussianKernel",
    "HermiteExpansion",
    "IndependentEmbedding",
    "InvalidInput",
    "KernelEmbedding",
    "LinGame",
    "LinGapE",
    "LinearEmbedding",
    "MaternKernel",
    "MeansNeuralRule",
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
    "ProductExpansion",
    "RoundRecord",
    "Run",
    "SineExpansion",
    "Step",
    "StorageError",
    "Study",
    "SubGaussian",
    "SuccessiveHalving",
    "SurepickError",
    "UnknownMisspecificationElimination",
    "XYAdaptive",
    "XYStatic",
    "allocate",
    "design_value",
    "effective_dimension",
    "environments",
    "forecast",
    "from_json",
    "make_policy",
    "paper_settings",
    "parse_noise",
    "pilot_noise",
    "policy_names",
    "read_arms",
    "round_design",
    "simulate",
    "solve_design",
    "to_json",
]
