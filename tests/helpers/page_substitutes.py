"""What is done in place of what a page says: too long, or another machine."""

from dataclasses import dataclass

import test_study_documents
from page_blocks import ROOT

ON_A_SERVER = (
    "surepick create postgresql+psycopg://ann@dbhost/studies headlines --arms headlines.csv --id sku --noise bernoulli "
    "--epsilon 0.1"
)


HEADLINES = "surepick create sqlite:///lab.db headlines --arms headlines.csv --id sku --noise bernoulli --epsilon 0.2"


SMALL_BENCH = "surepick bench run high-dimensional --policies rage --runs 1 --jobs 1 --out "


LONG_BENCH = "surepick bench run {} --runs 1 --jobs 2 --data DATA --out {}"


@dataclass(frozen=True)
class Instead:
    """What is done in place of a command; `slow`: by `make prove`, None for the same."""

    why: str
    quick: tuple[str, ...] = ()
    slow: tuple[str, ...] | None = None


INSTEAD = {
    "surepick bench run paper --runs 50 --out paper.parquet": Instead(
        "a quarter of an hour", (f"{SMALL_BENCH}paper.parquet",), (LONG_BENCH.format("paper", "paper.parquet"),)
    ),
    "surepick bench figures paper.parquet --out figures": Instead(
        "seconds; test_add_a_policy draws some", (), ("surepick bench figures paper.parquet --out figures",)
    ),
    "surepick bench run peers --runs 5 --out peers.parquet": Instead(
        "minutes", (), (LONG_BENCH.format("peers", "peers.parquet"),)
    ),
    "surepick bench run error-rate --runs 200 --out errors.parquet": Instead(
        "minutes", (), (LONG_BENCH.format("error-rate", "errors.parquet"),)
    ),
    "python benchmarks/reproduction.py paper.parquet peers.parquet errors.parquet": Instead(
        "it would write into the page",
        ("python benchmarks/reproduction.py paper.parquet peers.parquet errors.parquet --document page.md",),
    ),
    "surepick run-study URL NAME --measure 'python measure.py {id} {pulls}' --workers 4 --timeout 10m --retries 3": (
        Instead(
            "URL and NAME stand for those of a study",
            (
                HEADLINES,
                "surepick run-study sqlite:///lab.db headlines --measure 'python measure.py {id} {pulls}' "
                "--workers 4 --timeout 10m --retries 3",
            ),
        )
    ),
    "surepick run-study URL NAME --measure-batch 'python measure_batch.py' --batch 1000": (
        Instead(
            "URL and NAME stand for those of a study",
            (
                HEADLINES.replace(" headlines ", " batches "),
                "surepick run-study sqlite:///lab.db batches --measure-batch 'python measure_batch.py' --batch 1000",
            ),
        )
    ),
    "surepick tell sqlite:///lab.db growth plates.csv": Instead(
        "the results are filled in first", ("python fill_plates.py", "surepick tell sqlite:///lab.db growth plates.csv")
    ),
    "surepick serve sqlite:///lab.db": Instead("it serves until somebody ends it; page_reader.py serves the same"),
    "surepick serve sqlite:///team.db": Instead("it serves: tests/cli/commands/test_serve.py starts the same"),
    "surepick serve sqlite:///lab.db --oidc-issuer https://login.example.org/realms/lab --oidc-client-id surepick "
    '--oidc-name "Example House"': Instead("it serves: tests/cli/commands/test_serve.py starts the same"),
    "surepick serve sqlite:///lab.db --trusted-proxy 127.0.0.1 --trusted-header X-Forwarded-User": Instead(
        "it serves: tests/cli/commands/test_serve.py starts the same"
    ),
    "createdb studies": Instead("needs a server: test_the_lines_for_a_server"),
    ON_A_SERVER: Instead("needs a server: test_the_lines_for_a_server"),
    "pg_dump --format=custom studies > studies.dump": Instead("needs a server: test_the_lines_for_a_server"),
    """sqlite3 lab.db "VACUUM INTO 'backup/lab-2026-11-22.db'\"""": Instead(
        "and the copy is looked at",
        (
            """sqlite3 lab.db "VACUUM INTO 'backup/lab-2026-11-22.db'\"""",
            "surepick certificate sqlite:///backup/lab-2026-11-22.db headlines",
        ),
    ),
}


PAINT = "sku,red,blue,gloss\n" + "".join(
    f"p{number},{number % 4 / 3:.4f},{number // 4 / 4:.2f},{1 + number % 4 * 0.3 + number // 4 * 0.1 + shift:.2f}\n"
    for number in range(20)
    for shift in (-0.2, 0.0, 0.2)
)


MEDIA = "medium,sugar,salt,yeast\n" + "".join(
    f"M{number:03},{number % 10 / 10},{number // 10 % 5 / 5},{number // 50 / 3}\n" for number in range(150)
)


SUMS = next((ROOT / "tests/fixtures/lm_eval/whole/lab__small").iterdir())


FILES = {  # what a page supposes that the reader has
    "docs/tuning.md": {"paint.csv": PAINT},
    "docs/model-evaluation.md": {
        "models.csv": "id\nlab/large\nlab/medium\nlab/small\n",
        f"documents/{SUMS.name}": SUMS.read_text(encoding="utf-8"),
    },
    "docs/budget.md": {
        "docs/examples/coffee.csv": (ROOT / "docs/examples/coffee.csv").read_text(encoding="utf-8"),
        "recipes.csv": "recipe\n" + "".join(f"{name}\n" for name in "abcdefg"),
    },
    "docs/plates.md": {"media.csv": MEDIA},
    "docs/blocks.md": {
        "media.csv": MEDIA,
        "fill_plates.py": "import csv\nrows = list(csv.DictReader(open('plates.csv')))\n"
        "with open('plates.csv', 'w', newline='') as file:\n"
        "    out = csv.DictWriter(file, list(rows[0]))\n    out.writeheader()\n"
        "    out.writerows({**row, 'reward': number % 7 / 10} for number, row in enumerate(rows))\n",
    },
    "docs/reproduction.md": {"page.md": (ROOT / "docs/reproduction.md").read_text(encoding="utf-8")},
    "docs/serve.md": {"headlines.csv": test_study_documents.tables()[0]},
    "docs/studies.md": {
        "measure.py": test_study_documents.CLICK,
        "measure_batch.py": "import sys\nfor line in sys.stdin:\n    print(int(line.strip() == 'B'))\n",
        "backup/here.txt": "",
    },
}


NAMES = {  # what the programs of a page suppose: made by this program
    "docs/tuning.md": """
import numpy as np
import surepick as sp
rng = np.random.default_rng(0)
arms, noise = sp.Arms(rng.uniform(size=(30, 2))), sp.SubGaussian(0.3)
counts = np.full(30, 4)
sums = counts * np.sin(3 * arms.features[:, 0]) + rng.normal(0.0, 0.6, size=30)
"""
}
