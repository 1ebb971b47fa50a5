from . import embeddings, environments, errors, testing
from .analysis.finished import analyze, check_analysis
from .certificates.document import write_certificate
from .certificates.signature import sign_certificate
from .certificates.verify import verify_certificate
from .core.arms import Arms
from .core.certificate import Certificate
from .core.observations import Observations
from .core.plans import Design, Embedding, Plan, Step
from .designs import allocate, round_design, solve_design
from .embeddings import GaussianKernel, IndependentEmbedding, KernelEmbedding, LinearEmbedding
from .errors import InvalidInput, OutOfTurn, StorageError, SurepickError
from .fastest import benchmark
from .find_best import confirm, find_best, find_best_async, short_list_policy
from .forecasts import forecast
from .items import Items
from .noise import Bernoulli, Bounded, Normal, PilotGaussian, SubGaussian, parse_noise
from .policies.base import Claim, Policy, Problem, Traits
from .policies.registry import make_policy, paper_settings, policy_names
from .reports.study.page import write_report
from .simulation import simulate, simulate_many
from .studies.closed_loop import Result
from .studies.ledger import Batch
from .studies.opening import create_study, list_studies, open_study
from .studies.study import Study
from .tables import read_arms
from .tuning.kernel import choose_kernel
from .tuning.noise_pilot import pilot_noise

__version__: str

__all__ = [
    "Arms",
    "Batch",
    "Bernoulli",
    "Bounded",
    "Certificate",
    "Claim",
    "Design",
    "Embedding",
    "GaussianKernel",
    "IndependentEmbedding",
    "InvalidInput",
    "Items",
    "KernelEmbedding",
    "LinearEmbedding",
    "Normal",
    "Observations",
    "OutOfTurn",
    "PilotGaussian",
    "Plan",
    "Policy",
    "Problem",
    "Result",
    "Step",
    "StorageError",
    "Study",
    "SubGaussian",
    "SurepickError",
    "Traits",
    "allocate",
    "analyze",
    "benchmark",
    "check_analysis",
    "choose_kernel",
    "confirm",
    "create_study",
    "embeddings",
    "environments",
    "errors",
    "find_best",
    "find_best_async",
    "forecast",
    "list_studies",
    "make_policy",
    "open_study",
    "paper_settings",
    "parse_noise",
    "pilot_noise",
    "policy_names",
    "read_arms",
    "round_design",
    "short_list_policy",
    "sign_certificate",
    "simulate",
    "simulate_many",
    "solve_design",
    "testing",
    "verify_certificate",
    "write_certificate",
    "write_report",
]
