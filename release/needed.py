"""What the three distributions need, as their pyproject.toml files say it: one requirement a line, without our own.

    python release/needed.py | uv pip compile --quiet --resolution lowest-direct --python-version 3.11 \
        --no-annotate --no-header --output-file release/oldest.txt -
"""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
LEFT_OUT = {  # extra -> why make oldest does without it
    "neural": "the oldest builds of torch in the index are for graphics cards, and take 3 GB",
    "inspect": "it pins the newest version",
    "dask": "tests/bench has it, with the newest version",
    "mcp": "it needs a newer uvicorn than a server does",
    **dict.fromkeys(("optuna", "ray", "gest-api"), "the tests of adapters have the newest version"),
    "all": "a sum of others",
    "dev": "tools",
}


def requirements() -> set[str]:
    """The direct requirements of all distributions and of their extras but those that are left out."""
    found = set()
    for file in sorted(ROOT.glob("packages/*/pyproject.toml")):
        project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
        extras = (lines for name, lines in project["optional-dependencies"].items() if name not in LEFT_OUT)
        found |= {line for lines in (project["dependencies"], *extras) for line in lines}
    return {line for line in found if not line.startswith("surepick")}


if __name__ == "__main__":
    print("\n".join(sorted(requirements())))
