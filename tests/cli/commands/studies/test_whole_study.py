"""Durable studies from the command line: from create to the certificate."""

import pytest
from study_commands import FORMATS, IDS, NOISE, Lab, by_hand, read_rows, surepick, write_rows


def whole_study(lab: Lab, kind: str) -> None:
    """From create to the certificate, every file of this kind."""
    said = lab.create()
    assert "5 candidates, policy certified-independent" in said
    assert "Asked: one within 0.8 of the best, wrong with probability at most 0.05." in said
    code, output, _ = lab("certificate")
    assert (code, "No round is complete, so there is no answer yet." in output) == (3, True)
    for _ in range(100):
        asked = lab.json("ask")
        if asked["stopped"]:
            break
        assert all(row.keys() == {"id", "pulls", "described"} for row in asked["table"])
        assert sum(row["pulls"] for row in asked["table"]) == asked["pulls"]
        path = lab.filled(f"todo.{kind}")
        receipt = lab.json("tell", path)
        assert (receipt["counted"], receipt["closed"]) == (asked["pulls"], True)
    assert lab.json("tell", path)["repeated"] == receipt["counted"]  # the same file again counts nothing
    assert asked["table"] == []
    certificate = lab.json("certificate")
    assert certificate == by_hand(certificate["study_id"])
    assert lab.json("recommend")["best_arm"] == "a b"
    assert lab.json("status")["verdict"] == "certified"
    code, output, _ = lab("recommend")
    assert (code, output.startswith("a b   certified: with 95% confidence at most 0.")) == (0, True)
    assert "Recommended: a b   certified" in lab.done("certificate")
    assert "a b is the answer, certified: with 95% confidence at most 0." in lab.done("status")
    assert lab.done("ask").startswith("Nothing to measure. paint: done after ")


FIRST = [  # csv is tried on PostgreSQL, and others tell rows of jsonl
    pytest.param(kind, marks=() if kind == "parquet" else pytest.mark.slow) for kind in FORMATS
]


@pytest.mark.parametrize("kind", FIRST)
def test_a_whole_study(lab, kind):
    whole_study(lab, kind)


def test_a_whole_study_on_postgresql(postgres_url, tmp_path):
    whole_study(Lab(postgres_url, tmp_path), "csv")


def test_minimise(lab):
    lab.create("--minimize")
    while not lab.json("ask")["stopped"]:
        lab.done("tell", lab.filled())
    answer = lab.json("certificate")
    assert (answer["best_arm"], answer["minimize"]) == ("é/ü", True)
    assert "smallest" in lab.done("certificate")


def test_composite_ids(lab):
    rows = [{"colour": colour, "size": size} for colour in ("red", "a,b") for size in ("01", "2.50")]
    arms = write_rows(lab.folder / "grid.csv", rows)
    lab.done("create", "--arms", arms, "--id", "colour,size", "--noise", NOISE, "--epsilon", 0.1)
    asked = [row["id"] for row in lab.json("ask")["table"]]
    assert asked == ["red/01", "red/2.50", "a,b/01", "a,b/2.50"]
    results = write_rows(lab.folder / "grid-results.csv", [row | {"gloss": 0.5} for row in rows])
    assert lab.json("tell", results, "--id", "colour,size", "--reward", "gloss")["counted"] == 4
    joined = lab.filled(rewards=dict.fromkeys(asked, 0.5))  # as ask has them
    assert lab.json("tell", joined)["counted"] == len(read_rows(joined))


def test_an_option_of_the_policy(lab, refused):
    arms = write_rows(lab.folder / "arms.csv", [{"sku": name, "x": 1} for name in IDS])
    words = ("--arms", arms, "--id", "sku", "--noise", NOISE, "--epsilon", 0.1)
    answer = lab.json("create", *words, "--option", "largest_batch=5")
    assert answer["policy"]["largest_batch"] == 5
    wrong = ("create", lab.url, "other", *words, "--option")
    assert (
        "has no option 'largest_bath'; it knows any_gap, batch_cost, batch_size, block_size, blocks, budget, by, "
        in refused(*wrong, "largest_bath=5")
    )
    assert "write NAME=VALUE" in refused(*wrong, "largest_batch")
    assert "taken" in refused(*wrong, "largest_batch=many") or "number" in refused(*wrong, "largest_batch=many")
    assert surepick("list", lab.url)[1].count("certified-independent") == 1  # nothing was half made


def test_plates(lab, refused):
    arms = write_rows(lab.folder / "arms.csv", [{"sku": name, "x": 1} for name in IDS])
    words = ("--arms", arms, "--id", "sku", "--noise", NOISE, "--epsilon", "0.8")
    answer = lab.json("create", *words, "--batch-size", 12, "--max-batches", 2)
    assert (answer["policy"]["batch_size"], answer["policy"]["max_batches"], answer["next"]) == (12, 2, 12)
    for number in (1, 2):
        assert lab.json("ask")["pulls"] == 12
        lab.done("tell", lab.filled(f"plate{number}.csv", rewards=dict.fromkeys(IDS, 0.5)))
    assert lab.json("ask")["stopped"]
    assert lab.json("status")["verdict"] == "budget-exhausted"
    assert "not certified within the batches that were allowed" in lab.done("status")
    assert "All that the study was allowed to measure is measured" in lab("certificate")[1]
    other = ("create", lab.url, "other", *words)
    assert "1 value" not in refused(*other, "--batch-size", "1,2")
    assert "--batch-size has no meaning for lucb" in refused(*other, "--policy", "lucb", "--batch-size", 12)
