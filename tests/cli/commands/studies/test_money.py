"""What measurements cost, on the command line: from the table of candidates to the report."""

import csv
import json

import pytest
from study_commands import surepick

from surepick.text import money

ARMS = "id,x,y,price\na,1,0,2.5\nb,0,1,10\nc,0.6,0.6,0.1\nd,-0.4,0.3,1\n"
MEANS = {"a": 0.9, "b": 0.2, "c": 0.66, "d": -0.3}
COSTS = {"a": 2.5, "b": 10.0, "c": 0.1, "d": 1.0}
GOAL = ("--noise", "subgaussian:0.2", "--epsilon", "0.2")


@pytest.fixture
def arms(write):
    return write(ARMS)


def create(url, arms, *options):
    return surepick("create", url, "dear", "--arms", arms, "--id", "id", "--cost", "price", *GOAL, *options)


def answer(*words, code=0) -> dict:
    found, output, errors = surepick(*words, "--format", "json")
    assert found == code, output + errors
    return json.loads(output)


def paid(table) -> float:
    return round(sum(COSTS[row["id"]] * row["pulls"] for row in table), 6)


def test_a_study_in_money(stored_at, arms, tmp_path):
    code, output, _ = create(stored_at, arms, "--batch-cost", "4", "--norm-bound", "2")
    assert code == 0
    assert "(this batch costs " in output
    spent, batches = 0.0, 0
    while not (asked := answer("ask", stored_at, "dear"))["stopped"]:
        assert asked["cost"] == pytest.approx(paid(asked["table"]) + 4.0)
        known = answer("status", stored_at, "dear")
        assert (known["cost"], known["plan_cost"]) == (pytest.approx(spent), asked["cost"])
        _, shown, _ = surepick("ask", stored_at, "dear")
        assert "measurements, which cost " in shown
        plan = tmp_path / "plan.csv"
        surepick("ask", stored_at, "dear", "--worker", "anna", "--out", plan)
        rows = list(csv.DictReader(plan.read_text().splitlines()))
        for place, row in enumerate(rows):
            row["reward"] = MEANS[row["id"]] + 0.1 * (-1) ** place
        told = tmp_path / "told.jsonl"
        told.write_text("".join(json.dumps(row) + "\n" for row in rows))
        plan.unlink()
        surepick("tell", stored_at, "dear", told, "--worker", "anna")
        spent, batches = spent + asked["cost"], batches + 1
    known = answer("status", stored_at, "dear")
    assert known["cost"] == answer("recommend", stored_at, "dear")["cost"] == pytest.approx(spent)
    assert "plan_cost" not in known
    _, output, _ = surepick("certificate", stored_at, "dear", "--out", tmp_path / "c.json")
    assert f"Money spent: {spent:,.2f}".removesuffix(".00") in output
    document = json.loads((tmp_path / "c.json").read_text("utf-8"))
    assert document["arms"]["costs"] == list(COSTS.values())
    assert surepick("verify", tmp_path / "c.json")[0] == 0
    surepick("export", stored_at, "dear", "--out", tmp_path / "rows.csv")
    rows = list(csv.DictReader((tmp_path / "rows.csv").read_text().splitlines()))
    assert sum(float(row["cost"]) for row in rows) + 4.0 * batches == pytest.approx(spent)
    surepick("report", stored_at, "dear", "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "They cost " in page
    assert "Most of it went to" in page
    assert "at a cost of " in page


def test_without_costs_nothing_is_said_of_them(sqlite_url, arms, tmp_path):
    assert surepick("create", sqlite_url, "dear", "--arms", arms, "--id", "id", "--features", "x,y", *GOAL)[0] == 0
    for command in ("status", "ask"):
        assert "cost" not in json.dumps(answer(command, sqlite_url, "dear"))
        assert "cost" not in surepick(command, sqlite_url, "dear")[1].replace(sqlite_url, "")
    surepick("report", sqlite_url, "dear", "--out", tmp_path / "page.html")
    assert "cost" not in (tmp_path / "page.html").read_text("utf-8").partition("<body>")[2]


def test_a_loop_with_a_budget_in_money(sqlite_url, arms, tmp_path):
    create(sqlite_url, arms, "--policy", "certified-independent")
    program = tmp_path / "measure.py"
    program.write_text(f"import sys\nfor line in sys.stdin:\n    print({MEANS!r}[line.strip()])\n")
    words = ("run-study", sqlite_url, "dear", "--measure-batch", f"python {program}")
    first = answer("status", sqlite_url, "dear")["plan_cost"]
    code, output, _ = surepick(*words, "--max-cost", first)
    assert code == 3
    assert f"The next round would have passed --max-cost {money(first)}; the same command with more goes on." in output
    assert answer("status", sqlite_url, "dear")["cost"] == first
    assert answer(*words)["cost"] > first


def test_rehearsals_and_forecasts_in_money(write, refused):
    rows = "".join(
        f"{name},{price},{MEANS[name] + step:.2f}\n" for name, price in COSTS.items() for step in (-0.2, 0.2)
    )
    table = write(f"id,price,reward\n{rows}", "runs.csv")
    words = (table, "--id", "id", "--cost", "price", "--reward", "reward", *GOAL)
    whole = answer("run", *words)
    assert whole["cost"] > 0.0
    assert answer("run", *words, "--max-cost", whole["cost"]) | {"seconds": 0} == whole | {"seconds": 0}
    less = answer("run", *words, "--max-cost", whole["cost"] - 0.05, code=3)
    assert (less["verdict"], less["cost"] < whole["cost"]) == ("budget-exhausted", True)
    pilot = answer("run", *words[:-4], "--noise", "pilot:8", "--epsilon", "0.1", "--max-cost", "1e6")
    assert pilot["cost"] > 0.0
    words_of_pilot = (*words[:-4], "--noise", "pilot:8", "--epsilon", "0.1", "--max-cost", "0.1")
    assert "the pilot costs" in refused("run", *words_of_pilot)
    forecast = answer("forecast", *words, "--rehearsals", 2, "--batch-cost", "0,50")
    cheap, dear = (row["guess"] for row in forecast["rows"])
    assert cheap["lowest_cost"] <= cheap["cost"] <= cheap["highest_cost"]
    assert dear["cost"] >= 50.0 * dear["fewest_batches"]
    _, output, _ = surepick("forecast", *words, "--rehearsals", 2)
    assert "money" in output.splitlines()[2]
    assert "in money if your guess is right" in " ".join(output.split())


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (("--batch-cost", "dear"), "--batch-cost is 'dear'; give a number"),
        (("--batch-cost", "-1"), "batch_cost is -1"),
        (("--batch-cost", "1", "--policy", "lucb"), "--batch-cost has no meaning for lucb"),
        (("--batch-cost", "1,2"), "--batch-cost has 2 values"),
        (("--cost", "prize"), "has no column 'prize'"),
    ],
)
def test_what_has_no_meaning_is_refused(sqlite_url, arms, refused, wrong, said):
    words = ("create", sqlite_url, "dear", "--arms", arms, "--id", "id", "--cost", "price", *GOAL)
    assert said in refused(*words, *wrong)


def test_a_price_that_is_none_and_a_budget_without_prices_are_refused(sqlite_url, arms, write, refused):
    bad = write(ARMS.replace("10", "ten"), "bad.csv")
    words = ("create", sqlite_url, "dear", "--id", "id", "--cost", "price", *GOAL)
    assert "row 3: the cost of candidate 'b' in column 'price' is 'ten'" in refused(*words, "--arms", bad)
    surepick("create", sqlite_url, "plain", "--arms", arms, "--id", "id", *GOAL)
    words = ("run-study", sqlite_url, "plain", "--measure", "true {id}", "--max-cost", "5")
    assert "nothing says what a measurement costs" in refused(*words)
    assert "is a built-in example" in refused("forecast", "two-clusters", "--cost", "price")
