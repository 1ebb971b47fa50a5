"""Importing is cheap: no heavy package comes along, and the public names are what they say."""

import ast
import functools
import importlib.metadata
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from together import of_each

import surepick as sp

HEAVY = {"sklearn", "pandas", "torch", "matplotlib", "plotly", "jinja2", "pyarrow", "joblib", "sqlalchemy", "alembic"}
PROTOCOL = {
    f"surepick.policies.{name}" for name in ("base", "prices", "verdict", "questions", "questions.asked")
}  # what an algorithm is and says, and no algorithm


owners_of_modules = functools.cache(importlib.metadata.packages_distributions)  # it reads a list of every file there is


def needed_by(*distributions: str) -> set[str]:
    """Import names of the distributions and of everything that their installation requires."""
    names, left = set(), list(distributions)
    while left:
        name = left.pop().lower().replace("_", "-")
        if name in names:
            continue
        names.add(name)
        try:
            required = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:  # for another platform or version of Python
            continue
        left += [re.match(r"[\w.-]+", line)[0] for line in required if "extra ==" not in line]
    return {
        module
        for module, owner in owners_of_modules().items()
        if names & {name.lower().replace("_", "-") for name in owner}
    }


@functools.cache
def loaded_by(code: str, before: str = "import scipy.linalg") -> set[str]:
    """Modules that the code loads beyond `scipy.linalg`, or what is said, and what a bare interpreter has."""
    script = (
        f"import sys, json\n{before}\nbefore = set(sys.modules)\n"
        f"{code}\n"
        "print(json.dumps(sorted(set(sys.modules) - before)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(done.stderr.splitlines()[-1]))


def packages(modules: set[str]) -> set[str]:
    """The third-party packages among them, but for lazy_loader and numpy (a dependency of scipy.linalg)."""
    own = {"surepick", "surepick_server", "surepick_bench", "numpy", "lazy_loader"}
    return {name.partition(".")[0] for name in modules} - set(sys.stdlib_module_names) - own


NEED_EXTRAS = {"write_report"}
PARTS = ("embeddings", "environments", "testing")
ELSEWHERE = {"bench": "surepick_bench", "theory": "surepick_bench.theory"}  # parts of another distribution
LIGHT_NAMES = [name for name in sp.__all__ if name not in NEED_EXTRAS]


def test_importing_surepick_loads_numpy_and_scipy_linalg_only():
    modules = loaded_by(f"import surepick\nfor name in {LIGHT_NAMES!r}:\n    getattr(surepick, name)")
    assert {"surepick.studies.study", "surepick.simulation", "surepick.environments"} <= modules
    assert packages(modules) == set()


def test_the_stub_says_what_is_public():
    stub = ast.parse(Path(sp.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    (said,) = (node.value for node in stub.body if isinstance(node, ast.Assign))
    assert ast.literal_eval(said) == sp.__all__
    assert len(sp.__all__) <= 59
    assert sp.forecast.__module__ == "surepick.forecasts.forecast"


def test_a_name_whose_package_is_absent_says_how_to_install_it():
    for package, address, extra in (("sqlalchemy", "sqlite:///a.db", "studies"), ("httpx", "http://[::1]:1", "client")):
        script = f"import sys; sys.modules['{package}'] = None; import surepick; surepick.open_study('{address}', 'a')"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        needed = f'InvalidInput: open_study needs {package}, which is absent: pip install "surepick[{extra}]".'
        assert needed in done.stderr


def test_the_version_is_said_in_one_place():
    citation = (Path(__file__).parents[1] / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {sp.__version__}\n" in citation
    assert importlib.metadata.version("surepick") == sp.__version__


# What the help of a command loads is more than what the others do.
@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["--help"], marks=pytest.mark.slow),
        ["run", "--help"],
        pytest.param(["--version"], marks=pytest.mark.slow),
    ],
)
def test_help_loads_nothing_heavy(words):
    modules = loaded_by(
        f"sys.argv = ['surepick', *{words!r}]\n"
        "from surepick.cli import main\n"
        "try:\n    main()\nexcept SystemExit as stop:\n    assert not stop.code"
    )
    found = packages(modules)
    assert "typer" in found
    looked_for = {"attr", "linkify_it", "uc_micro"}  # by rich and markdown-it; other packages may bring them
    assert found <= needed_by("typer", "rich", "click") | looked_for
    assert not any(name.startswith("scipy") for name in modules)


def test_the_list_of_commands_loads_no_command():
    script = (
        "import sys\nsys.argv = ['surepick', '--help']\nfrom surepick.cli import main\n"
        "try:\n    main()\nexcept SystemExit as stop:\n    assert not stop.code\n"
        "assert 'surepick.cli.app' in sys.modules and 'numpy' not in sys.modules\n"
        "assert not [name for name in sys.modules if name.startswith('surepick.cli.commands')]"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


@pytest.fixture
def small_study(tmp_path):
    url = f"sqlite:///{tmp_path / 'lab.db'}"
    arms = sp.Arms([[1, 0], [0, 1], [1, 1]])
    sp.create_study(url, "s", arms, sp.make_policy("rage", arms, epsilon=0.1, delta=0.1, noise="bernoulli"))
    (tmp_path / "results.csv").write_text("id,reward\n0,1\n")
    return url, str(tmp_path / "results.csv")


def test_the_daily_work_on_a_study_loads_little(small_study):
    """All of it in one process: none of its commands loads more."""
    url, results = small_study
    modules = loaded_by(
        "from surepick.cli import main\n"
        f"for words in {[['ask', url, 's'], ['tell', url, 's', results], ['status', url, 's']]!r}:\n"
        "    sys.argv = ['surepick', *words]\n"
        "    try:\n        main()\n    except SystemExit as stop:\n        assert not stop.code"
    )
    found = packages(modules)
    assert "sqlalchemy" in found
    compiled = {name for name in found if name.startswith("_cython")}  # what compiled packages share
    assert found - compiled <= needed_by("typer", "rich", "click", "sqlalchemy")
    algorithms = {name for name in modules if name.startswith("surepick.policies.")} - PROTOCOL
    assert not algorithms
    assert not any(name.startswith(("scipy", "surepick.environments")) for name in modules)


def test_importing_surepick_loads_numpy_at_most():
    modules = loaded_by("import surepick", before="")
    assert packages(modules) == set()
    assert not {name for name in modules if name.startswith("surepick.")}


def test_a_run_without_features_loads_no_scipy_and_nothing_for_features():
    table = Path(__file__).parents[1] / "docs" / "examples" / "coffee.csv"
    words = ["run", str(table), "--id", "recipe", "--reward", "taste", "--noise", "subgaussian:0.8", "--epsilon", "0.8"]
    modules = loaded_by(
        f"sys.argv = ['surepick', *{words!r}]\n"
        "from surepick.cli import main\n"
        "try:\n    main()\nexcept SystemExit as stop:\n    assert not stop.code",
        before="",
    )
    assert {"surepick.cli.commands.run", "surepick.policies.carried.elimination"} <= modules
    features = [f"embeddings.{name}" for name in ("kernel", "kernel_functions", "linear", "network", "tangent_kernel")]
    features += ["designs.solve", "designs.star", "designs.long_lists", "chunks.passes", "chunks.moments"]
    others = ["forecasts", "certificates", "integrations", "reports", "policies.subset", "studies.logs.sql"]
    unneeded = ("scipy", *(f"surepick.{name}" for name in features + others))
    assert not [name for name in modules if name.startswith(unneeded)]


def test_a_whole_study_loads_nothing_more():
    """What is imported late, inside a function, is still numpy and scipy.linalg."""
    modules = loaded_by(
        "import surepick as sp\n"
        "arms = sp.Arms([[1, 0], [0, 1], [1, 1]])\n"
        "for name in ('action-elimination', 'fixed-linear', 'linear-embedding', 'rage'):\n"
        "    more = {'norm_bound': 1.0} if 'linear' in name else {}\n"
        "    policy = sp.make_policy(name, arms, epsilon=.5, delta=.1, noise='bernoulli', **more)\n"
        "    world = sp.environments.Environment(arms=arms, means=[.1, .2, .9], noise=sp.Bernoulli())\n"
        "    assert sp.simulate(policy, world).pulls > 0"
    )
    assert not packages(modules) & HEAVY
    assert not {name for name in modules if name.startswith(("scipy.stats", "scipy.optimize", "scipy.sparse"))}


def test_the_test_of_imports_would_notice():
    """The saboteur."""
    assert {"scipy", "rich"} <= packages(loaded_by("import surepick, scipy.optimize, rich"))


def test_the_public_names_are_sorted_and_exist():
    names = sp.__all__
    assert len(set(names)) == len(names)
    assert set(dir(sp)) >= set(names)
    capitals = [name for name in names if name.isupper()]
    classes = [name for name in names if name[0].isupper() and not name.isupper()]
    functions = [name for name in names if name[0].islower()]
    assert names == capitals + classes + functions
    assert all(part == sorted(part) for part in (capitals, classes, functions))


@of_each("name", sp.__all__)
def test_every_public_name_is_documented(name):
    thing = getattr(sp, name)
    assert inspect.getdoc(thing)
    assert not inspect.getdoc(thing).startswith(f"{name}(")  # the text that a dataclass writes by itself


def public_callables():
    for name in sp.__all__:
        thing = getattr(sp, name)
        if not inspect.isclass(thing):
            continue
        if issubclass(thing, Exception) or getattr(thing, "_is_protocol", False):
            continue
        for member, value in vars(thing).items():
            if not member.startswith("_") and callable(getattr(thing, member)) and inspect.isroutine(value):
                yield pytest.param(thing, member, id=f"{name}.{member}")


EMBEDDING_PROTOCOL = {"at", "misspecification"}  # documented in `ArmEmbedding`
KERNEL_PROTOCOL = {"gram", "diagonal"}  # documented in `Kernel`
EXPANSION_PROTOCOL = {"eigenvalues", "eigenfunctions", "diagonal", "tails"}  # documented in `Expansion`


@of_each(("thing", "member"), list(public_callables()))
def test_every_public_method_is_documented(thing, member):
    if hasattr(thing, "at") and member in EMBEDDING_PROTOCOL:
        return
    if hasattr(thing, "gram") and member in KERNEL_PROTOCOL:
        return
    if hasattr(thing, "eigenfunctions") and member in EXPANSION_PROTOCOL:
        return
    assert inspect.getdoc(getattr(thing, member))


def test_the_parts_are_there_at_once_and_documented():
    named = "\n".join(f"assert surepick.{part}.__all__" for part in PARTS)
    assert {getattr(sp, part).__name__ for part in PARTS} <= loaded_by(f"import surepick\n{named}")
    for part in PARTS:
        check_documented(part)


def check_documented(part: str) -> None:
    for name in getattr(sp, part).__all__:
        assert inspect.getdoc(getattr(getattr(sp, part), name))


def test_the_parts_of_the_experiments_load_when_they_are_named():
    modules = set(ELSEWHERE.values())
    assert not modules & loaded_by("import surepick\nassert surepick.__all__")
    named = "\n".join(f"assert surepick.{part}.__all__" for part in ELSEWHERE)
    assert modules <= loaded_by(f"import surepick\n{named}")
    for part, module in ELSEWHERE.items():
        assert getattr(sp, part).__name__ == module
        check_documented(part)
