"""What the README shows, done in an empty environment with what `make dist` built.

    python release/rehearse.py [FOLDER] [--python PYTHON]

FOLDER (dist) has the wheels. A virtual environment is made in a temporary folder, `pip install` of the README installs
them by name, and every command and program of the README runs there, in an empty folder: what it prints must be what
the README says. Commands of a clone (`make`) are looked up in the Makefile. Other packages come from the index.
"""

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(sh|text|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SESSION = re.compile(r"^\$ ([^\n]*)\n(.*)", re.DOTALL)
IN_WORDS = re.compile(r"`(surepick [^`\n]*)`")  # a command inside a sentence
PRINTED = re.compile(r"^print\(.*\)  # (.*)$", re.MULTILINE)


def steps(readme: str) -> Iterator[tuple[str, str, str | None]]:
    """("sh" or "python", what is done, what it prints or None), from top to bottom."""
    end = 0
    for block in BLOCK.finditer(readme):
        for command in IN_WORDS.findall(readme[end : block.start()]):
            yield "sh", command, None
        end = block.end()
        kind, text = block.groups()
        if kind == "python":
            yield kind, text, "\n".join(PRINTED.findall(text))
        elif kind == "sh":
            yield from (("sh", line.partition("  #")[0].strip(), None) for line in text.splitlines() if line.strip())
        elif session := SESSION.match(text):
            yield "sh", session[1], session[2]


def words_of(kind: str, text: str, binaries: Path) -> list[str]:
    """The program that does a step, and its arguments."""
    if kind == "python":
        return [str(binaries / "python"), "-c", text]
    name, *words = shlex.split(text)
    return ["make", "-n", "-C", str(ROOT), *words] if name == "make" else [str(binaries / name), *words]


def rehearse(wheels: Path, python: str) -> int:
    """Do all steps; how many were done. The program ends where one fails or prints something else."""
    done = 0
    with tempfile.TemporaryDirectory() as folder:
        environment, empty = Path(folder, "environment"), Path(folder, "empty")
        subprocess.run([python, "-m", "venv", str(environment)], check=True)
        empty.mkdir()
        known = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PIP_CONSTRAINT")}
        links = " ".join(filter(None, (str(wheels.resolve()), known.get("PIP_FIND_LINKS"))))
        known |= {"PIP_FIND_LINKS": links, "COLUMNS": "80", "TERM": "dumb"}
        for kind, text, shown in steps((ROOT / "README.md").read_text(encoding="utf-8")):
            print(f"$ {text.splitlines()[0] if kind == 'sh' else 'python: ' + text.splitlines()[0]}", flush=True)
            words = words_of(kind, text, environment / ("Scripts" if os.name == "nt" else "bin"))
            ended = subprocess.run(words, cwd=empty, env=known, capture_output=True, text=True, check=False)
            if ended.returncode:
                sys.exit(f"It ends with {ended.returncode}:\n{ended.stdout}{ended.stderr}")
            if shown is not None and lines(ended.stdout) != lines(shown):
                sys.exit(f"It prints:\n{ended.stdout}\nand the README says:\n{shown}")
            done += 1
    return done


def lines(text: str) -> list[str]:
    """The lines without what stands at their ends, and without empty ones."""
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "dist")
    parser.add_argument("--python", default=sys.executable, help="the Python of the empty environment")
    given = parser.parse_args()
    print(f"{rehearse(given.folder, given.python)} steps of the README done as it says.")


if __name__ == "__main__":
    main()
