"""The field's other algorithms, by name: the entry points of `surepick.policies` give these."""

from surepick.policies.options import PolicySpec, features, nothing

MEANS_NEURAL_RULE = PolicySpec(
    "surepick_bench.policies.means_control:MeansNeuralRule",
    nothing,
    "Algorithm 2's counts and threshold on plain means: a control beside neural-embedding",
    paper={"constants": "paper"},
)
ACTION_ELIMINATION = PolicySpec(
    "surepick_bench.policies.means:ActionElimination",
    nothing,
    "action elimination: features are ignored, one interval per arm",
    paper={"growth": 0.02},
)
XY_STATIC = PolicySpec(
    "surepick_bench.policies.xy:XYStatic",
    features,
    "XY-static (Soare et al. 2014): rewards exactly linear in the features, one fixed design",
    paper={"constants": "paper"},
)
XY_ADAPTIVE = PolicySpec(
    "surepick_bench.policies.xy:XYAdaptive",
    features,
    "XY-adaptive (Soare et al. 2014): rewards exactly linear in the features, phases that drop arms",
    paper={"constants": "paper", "shrinkage": 0.1, "stopping": "phases"},
)
LINGAPE = PolicySpec(
    "surepick_bench.policies.lingame:LinGapE",
    features,
    "LinGapE (Xu et al. 2018): rewards exactly linear, of bounded norm; the leader against its closest rival",
    paper={"selection": "greedy", "radius": "dimension"},
)
LINGAME = PolicySpec(
    "surepick_bench.policies.lingame:LinGame",
    features,
    "LinGame (Degenne et al. 2020): rewards exactly linear, of bounded norm; weights from a game",
    paper={"play": "learner", "threshold": "stylised"},
)
LUCB = PolicySpec(
    "surepick_bench.policies.means:LUCB",
    nothing,
    "LUCB1 (Kalyanakrishnan et al. 2012): features are ignored, the leader and its strongest rival are pulled",
    paper={"growth": 0.0},
)
SEQUENTIAL_HALVING = PolicySpec(
    "surepick_bench.policies.sequential_halving:SequentialHalving",
    nothing,
    "sequential halving (Karnin et al. 2013): features are ignored, a fixed budget; its verdict is heuristic",
)
LUCB_TOP = PolicySpec(
    "surepick_bench.policies.means:LUCBTop",
    nothing,
    "LUCB for the m best (Kalyanakrishnan et al. 2012): the two most doubtful arms at the cut are pulled",
    paper={"growth": 0.0},
    questions=("top",),
)
ST2 = PolicySpec(
    "surepick_bench.policies.lists:ST2",
    nothing,
    "(ST)^2 (Mason et al. 2020): all within epsilon of the best; the best arm and the most doubtful are pulled",
    paper={"growth": 0.0},
    questions=("all-good",),
)
APT = PolicySpec(
    "surepick_bench.policies.means:APT",
    nothing,
    "APT (Locatelli et al. 2016): which are above a threshold; those nearest to it are pulled",
    paper={"growth": 0.0},
    questions=("above",),
)
UNIFORM_LISTS = PolicySpec(
    "surepick_bench.policies.lists:UniformLists",
    nothing,
    "any question whose answer is lists: every arm is pulled equally often",
    questions=("above", "top", "all-good"),
)
