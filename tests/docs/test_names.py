"""The files, modules and names of the code that the documents speak of are there."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from built_site import DOCS, PAGES, ROOT, read

from surepick.core.plugins import COMMANDS, EMBEDDINGS, POLICIES, QUESTIONS

FOLDERS = ("packages", "tests", "benchmarks", "docs")
AS_OF_THEN = {page for page in (DOCS / "decisions").glob("*.md") if page.name < "0043"}  # they say so, see below
DOCUMENTS = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
DOCUMENTS += [page for page in PAGES if page not in AS_OF_THEN]
SPAN = re.compile(r"`([^`\n]+)`")
FILE = re.compile(r"([\w/.-]+\.pyi?)(?:::([\w.]+))?")
FOLDER = re.compile(r"(?:[\w.-]+/)+")
WORD = re.compile(r"[A-Za-z_]\w*")
DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
MADE = re.compile(r"^`([\w/-]+\.py)`:$", re.MULTILINE)  # files that a reader makes
ROOTS = ("sp", "surepick", "surepick_server", "surepick_bench")
GROUPS = (COMMANDS, EMBEDDINGS, POLICIES, QUESTIONS)  # of entry points: "surepick.policies"
OTHERS = {"auth_request", "lab__large", "Score"}  # of nginx; a model of a reader's; of inspect_ai


@cache
def files() -> tuple[Path, ...]:
    """The files of the repository that documents may name."""
    found = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file())
    return tuple(path for path in found if "__pycache__" not in path.parts)


@cache
def places(name: str) -> tuple[Path, ...]:
    """The files whose path ends so, whole names of folders."""
    return tuple(path for path in files() if f"/{path.relative_to(ROOT).as_posix()}".endswith(f"/{name}"))


@cache
def defined(path: Path) -> frozenset[str]:
    """What a module defines: functions, classes, fields and attributes, and the arguments of its functions."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
            case ast.arg(arg=name) | ast.Attribute(attr=name, ctx=ast.Store()):
                found.add(name)
    return frozenset(found)


@cache
def words() -> frozenset[str]:
    """All words of the code, those of messages and columns among them."""
    code = (path for path in files() if path.suffix in (".py", ".pyi", ".json", ".html", ".mako", ".toml"))
    said = (path.read_text(encoding="utf-8") for path in code if path != Path(__file__))
    return frozenset(word for text in said for word in WORD.findall(text)) | {path.stem for path in files()}


@cache
def modules() -> dict[str, tuple[Path, ...]]:
    """The name of a module, or of a folder of modules -> its files in the packages."""
    found: dict[str, tuple[Path, ...]] = {}
    for path in our_modules():
        for name in {path.stem, path.parent.name} - {"__init__"}:
            found[name] = (*found.get(name, ()), path)
    return found


@cache
def our_modules() -> tuple[Path, ...]:
    """The modules of the three packages."""
    return tuple(path for path in files() if path.suffix == ".py" and "packages" in path.parts)


def missing_file(span: str, page: Path) -> bool:
    """Whether a span names a file that is not there, or a name that the file does not define."""
    found = FILE.fullmatch(span)
    if not found:
        return False
    file, names = found.groups()
    there = places(file)
    if not there:
        return file not in MADE.findall(read(page))
    return bool(names) and not any(set(names.split(".")) <= defined(path) for path in there)


def missing_folder(span: str) -> bool:
    """Whether a span that ends with a slash names no folder of the repository."""
    if not FOLDER.fullmatch(span) or not places_of_folder(f"{span.partition('/')[0]}/"):
        return False
    return not places_of_folder(span)


@cache
def places_of_folder(span: str) -> tuple[Path, ...]:
    """The files in a folder that is named so, whole names of folders."""
    return tuple(path for path in files() if f"/{span}" in f"/{path.relative_to(ROOT).as_posix()}")


def resolves(parts: list[str]) -> bool:
    """Whether a dotted name from one of our packages leads to something."""
    here: object = import_module("surepick" if parts[0] == "sp" else parts[0])
    for number, part in enumerate(parts[1:], 2):
        if hasattr(here, part):
            here = getattr(here, part)
            continue
        if part in getattr(here, "__annotations__", {}):  # a field without a default
            return True
        try:
            here = import_module(".".join(["surepick" if parts[0] == "sp" else parts[0], *parts[1:number]]))
        except ModuleNotFoundError:
            return False
    return True


def missing_name(span: str) -> bool:
    """Whether a span is a name in the style of code that the code does not have."""
    span = span.removesuffix("()")
    if re.fullmatch(r"[a-z]\w*_\w+|[A-Z][a-z]+[A-Z]\w*", span):
        return span not in words() | OTHERS
    if not DOTTED.fullmatch(span):
        return False
    parts = span.split(".")
    if parts[0] in ROOTS:
        return span not in GROUPS and parts[-1] != "NAME" and not resolves(parts)
    of_folder = len(parts) > 2 and any(path.parent.name == parts[0] for path in modules().get(parts[0], ()))
    if of_folder or (
        parts[0].islower() and re.match(r"_|[A-Z][a-z]", parts[1])
    ):  # linalg.rows.SingleRows, pricing.Longest
        first = next(
            (place for place, part in enumerate(parts) if not part[0].islower() or part not in modules()), len(parts)
        )
        within = [set(modules()[part]) for part in parts[:first]]
        return not within or not any(set(parts[first:]) <= defined(path) for path in set.intersection(*within))
    if re.match(r"[A-Z][a-z]", parts[0]):  # Study.tell
        return parts[0] not in OTHERS and not any(set(parts[:2]) <= defined(path) for path in our_modules())
    return False


def stale(page: Path, text: str) -> Iterator[str]:
    """What a text calls by a name that the code does not have."""
    for span in SPAN.findall(re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)):
        if missing_file(span, page) or missing_folder(span) or missing_name(span):
            yield span


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: page.stem)
def test_what_a_page_names_is_there(page):
    assert list(stale(page, read(page))) == []


@pytest.mark.parametrize(
    "span",
    [
        "studies/no_such_file.py",
        "policies/dimension.py::no_such_name",
        "policies/paper/arm_elimination.py::ArmElimination.no_such_method",
        "policies/no_such_wing/",
        "no_such_function",
        "NoSuchRecord",
        "Study.no_such_method",
        "sp.no_such_part",
        "surepick.studies.no_such_file.Study",
        "pricing.NoSuchRecord",
        "linalg.no_such_file.whitened",
    ],
)
def test_a_stale_name_is_found(span):
    good = "`policies/dimension.py::worst_gap`, `sp.environments.digits`, `Study.tell`, `tests/docs/`"
    good = f"{good}, `pricing.ReducedCosts._nearly`, `linalg.factorisations.whitened`, `surepick.policies`, `study.run`"
    assert list(stale(DOCS / "concepts.md", good)) == []
    assert list(stale(DOCS / "concepts.md", f"{good} and `{span}`")) == [span]


def test_the_files_that_docstrings_name_are_there():
    """As `routing.py`; `file.py` of users, which measure for them, stand in messages."""
    named = re.compile(r"(?<![\w*/{}.'-])((?:\w+/)*\w+\.(?:py|md))\b")
    found = {
        f"{path.relative_to(ROOT).as_posix()}: {name}"
        for path in our_modules()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node))
        for name in named.findall(text)
        if not places(name)
    }
    assert found == set()


def test_an_older_decision_says_that_its_names_are_of_then():
    assert len(AS_OF_THEN) == 42
    said = "*Names of files and of code are as of then.*"
    assert [page.name for page in sorted(AS_OF_THEN) if read(page).splitlines()[2:3] != [said]] == []
