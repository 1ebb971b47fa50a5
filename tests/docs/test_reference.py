"""The reference of the documentation lists every public name."""

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from operator import attrgetter
from pathlib import Path

from built_site import DOCS, body, plain, read

import surepick as sp
from surepick.policies.registry import ENTRIES, policy_names, policy_spec


def public_names() -> Iterator[str]:
    yield from (name for name in sp.__all__ if not inspect.ismodule(getattr(sp, name)))
    yield from sp.environments.__all__
    yield from sp.bench.datasets.__all__


def named_elsewhere() -> Iterator[tuple[str, str]]:
    """(name, where) of the second table of the reference: what is not at the top."""
    for row in re.findall(r"^\| \[.*?\| (.*?) \| `(s[\w.]+)` \|$", read(DOCS / "reference" / "index.md"), re.MULTILINE):
        yield from ((name, row[1]) for name in re.findall(r"`(\w+)`", row[0]))


def references(site: Path) -> dict[str, str]:
    """Public name -> its entry in the reference."""
    found = {}
    for page in (site / "reference").glob("*.html"):
        parts = re.split(r'<h2 id="(surepick[\w.]*)"', body(page))
        found |= {path.rpartition(".")[2]: text for path, text in zip(parts[1::2], parts[2::2], strict=True)}
    return found


def test_every_public_name_has_an_entry_in_the_reference(site):
    entries = references(site)
    specs = [policy_spec(name) for name in {*ENTRIES, *policy_names(None)}]
    classes = {spec.record().__name__ for spec in specs}
    rules = {spec.rule.__name__ for spec in specs if spec.rule}
    assert {*public_names(), *classes, *rules, *(name for name, _ in named_elsewhere())} == set(entries)
    for name, entry in entries.items():
        assert len(plain(entry)) > 2 * len(name), f"{name} has no text"


def test_the_reference_lists_every_public_name():
    listed = set(re.findall(r"`(\w+)`", read(DOCS / "reference" / "index.md")))
    assert set(public_names()) <= listed
    assert {name for name in vars(sp.errors) if name[0].isupper()} <= {*listed, "Any"}


def test_the_reference_says_where_a_name_is():
    elsewhere = list(named_elsewhere())
    assert len(elsewhere) > 40
    for name, where in elsewhere:
        public = where.startswith("sp.")
        place = attrgetter(where.removeprefix("sp."))(sp) if public else import_module(where)
        assert hasattr(place, name), f"{where}.{name}"


def test_docstrings_are_rendered_section_by_section(site):
    entries = references(site)
    elimination = entries["CarriedElimination"]
    assert "largest_batch:int|None=None" in plain(elimination)  # `@record` is known to make a dataclass
    assert re.search(r"<pre><span></span><code>.*?recommend c when every U_j", elimination, re.DOTALL)  # a formula
    assert "<strong>Source:</strong> ours, after Robbins" in elimination
    assert "<strong>Cost:</strong>" in entries["forecast"]
    proofs = plain(body(site / "reference" / "embeddings.html"))
    assert "G=[LR^(1/2)][LR^(1/2)]'," in proofs  # no link
    assert "h(x)-<psi_d(x),theta>=" in proofs  # no element of the page
