"""`judge`: what is in is judged, and what comes later counts."""

from study_commands import IDS, MEANS


def rows(keys: list[dict]) -> list[dict]:
    return [row | {"reward": MEANS[row["id"]]} for row in keys]


def test_a_part_is_judged_and_the_rest_counts_later(lab):
    lab.create("--judge", "as-they-come", "--option", "evidence=carried")
    keys = lab.json("ask", "--worker", "ann")["measurements"]
    assert lab.told(rows(keys[:3]))["counted"] == 3
    assert "round 2; " in lab.done("interim")
    receipt = lab.told(rows(keys[3:]))
    assert (receipt["counted"], receipt["late"]) == (len(keys) - 3, 0)
    lab.done("interim")
    answer = lab.json("certificate", code=3)
    assert answer["pulls"] == len(keys)
    assert any("Results were judged in parts, as they came" in sentence for sentence in answer["assumptions"])


def test_nothing_to_judge_is_said(lab):
    lab.create("--judge", "as-they-come", "--option", "evidence=carried")
    code, _, noted = lab("interim")
    assert (code, "nothing came since the last judgement" in noted) == (0, True)
    assert lab.json("status")["plan"] == 1


def test_it_is_said_where_results_are_judged_as_they_come(lab):
    lab.create("--judge", "as-they-come", "--option", "evidence=carried")
    keys = lab.json("ask", "--worker", "ann")["measurements"]
    assert "results are judged as they come: `surepick interim` judges what is in" in lab.done("status")
    assert lab.json("status")["judge"] == "as they come"
    assert "surepick interim" not in lab.done("ask")
    lab.told(rows(keys[:3]))
    assert "To go on with the 3 results that came: surepick interim" in lab.done("ask")
    _, _, noted = lab("close")
    assert "3 results of the open round came and were not judged" in noted


def test_closed_rounds_are_the_default_and_go_without_saying(paint):
    assert "are judged" not in paint.done("status")
    assert paint.json("status")["judge"] == "closed rounds"
    paint.told([{"id": IDS[0], "reward": 0.5}])
    assert "not judged" not in paint("close")[2]


def test_a_study_of_closed_rounds_refuses(paint, refused):
    paint.told([{"id": IDS[0], "reward": 0.5}])
    assert "this study judges closed rounds" in refused("interim", paint.url, "paint")


def test_a_policy_that_judges_whole_rounds_refuses(lab, refused):
    table = lab.folder / "arms.csv"
    table.write_text("id,x\na,0\nb,1\n")
    words = ("--arms", table, "--id", "id", "--noise", "bernoulli", "--epsilon", 0.2, "--policy", "lucb")
    said = refused("create", lab.url, "paint", *words, "--judge", "as-they-come")
    assert "lucb judges whole rounds only" in said
