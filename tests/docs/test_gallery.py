"""Each script of docs/examples prints what docs/examples/index.md shows, started as its reader starts it.

What they print now is written into the page by

    OPENBLAS_CORETYPE=Haswell PYTHONPATH=tests/helpers python tests/docs/test_gallery.py
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INDEX = ROOT / "docs/examples/index.md"
SHARED_DATA = ROOT.parent / "shared" / "data"
SCRIPTS = sorted(path.name for path in (ROOT / "docs/examples").glob("*.py"))
SHOWN = re.compile(
    r"^```sh\npython docs/examples/(\w+\.py)([^\n]*)\n```\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
DATA = {"AgNP_dataset.csv": "pvlab/AgNP_dataset.csv", "livecodebench": "livecodebench"}
LONG = ("hyperparameters.py",)  # ten seconds: in full by `make prove`, with a larger epsilon by `make test`


def shown() -> dict[str, tuple[list[str], str]]:
    """Script -> (arguments, what the page says that it prints)."""
    found = SHOWN.findall(INDEX.read_text(encoding="utf-8"))
    return {name: (arguments.partition("#")[0].split(), text) for name, arguments, text in found}


def printed(name: str, arguments: list[str]) -> str:
    """What a script prints; a warning is an error."""
    given = [str(SHARED_DATA / DATA[word]) if word in DATA else word for word in arguments]
    script = f"docs/examples/{name}"
    done = subprocess.run(
        [sys.executable, "-W", "error", script, *given],
        cwd=ROOT,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())


def check(name: str, request: pytest.FixtureRequest) -> None:
    arguments, text = shown()[name]
    if DATA.keys() & set(arguments):
        request.getfixturevalue("shared_data")
    assert printed(name, arguments).splitlines() == text.splitlines()


def test_the_page_shows_every_script():
    assert sorted(shown()) == SCRIPTS
    assert len(SCRIPTS) >= 5


@pytest.mark.parametrize("name", [name for name in SCRIPTS if name not in LONG])
def test_the_script_prints_what_the_page_shows(name, request):
    check(name, request)


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_the_long_script_prints_what_the_page_shows(name, request):
    check(name, request)


def test_the_long_script_with_a_larger_epsilon():
    text = printed("hyperparameters.py", ["0.2"])
    trained = [int(number.replace(",", "")) for number in re.findall(r"^ *([\d,]+) models trained", text, re.MULTILINE)]
    assert trained == sorted(trained)
    assert 30 * 5 < trained[-1] < 3000
    assert "certified: Its mean is within 0.2 of the largest of all" in text
    assert float(re.search(r"fresh trials of it: ([\d.]+)% right", text)[1]) > 75  # the best settings have about 95


@pytest.mark.parametrize("name", ["recipes.py", "language_models.py"])
def test_a_script_that_needs_data_says_so(name):
    done = subprocess.run(
        [sys.executable, f"docs/examples/{name}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert f"    python docs/examples/{name} " in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_short_and_tells_its_story(name):
    source = (ROOT / "docs/examples" / name).read_text(encoding="utf-8")
    story = source.split('"""')[1]
    assert "Promised: " in story
    assert "Assumed: " in story or "What is assumed" in story
    assert f"python docs/examples/{name}" in story
    assert len(source.splitlines()) <= 110
    assert not re.search(r"\bbandit|\barm\b|\bpull\b", story)


def rewrite() -> None:
    """Replace what the page shows by what the scripts print."""
    page = INDEX.read_text(encoding="utf-8")
    for name, (arguments, text) in shown().items():
        page = page.replace(f"```text\n{text}```", f"```text\n{printed(name, arguments)}```")
    INDEX.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    rewrite()
