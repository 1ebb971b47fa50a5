"""Reports of studies, real and made up, and what stands in them."""

import re
from html.parser import HTMLParser

import numpy as np

import surepick as sp
from surepick.core.random_streams import stream
from surepick.reports.study import page as study_report
from surepick.reports.study.charts import Foreseen
from surepick.reports.study.facts import History, KeptPulls
from surepick.studies.logs.memory import MemoryLog

VOID = {"meta", "link", "br", "col", "path", "rect", "line", "circle"}


NO_LOG = History((KeptPulls(1, 0.0, 0.0, 0, (), ()),), (), (), durable=True)


NO_FORECAST = Foreseen(None, "never-stops")


class Page(HTMLParser):
    """A page as elements: (tag, attributes), the text, and what stands in each kind of element."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.source = source
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: dict[str, list[str]] = {}
        self.open: list[str] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)
            self.texts.setdefault(tag, []).append("")

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        for tag in set(self.open):
            self.texts[tag][-1] += data

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def words(self) -> str:
        """What people read."""
        everything = " ".join(" ".join(self.texts.get(tag, [])) for tag in ("header", "main", "footer"))
        return re.sub(r" (?=[.,;:)])", "", re.sub(r"[ \n]+", " ", everything))  # as a browser breaks lines


def finished(name="certified-independent", num_arms=5, *, minimize=False, most_plans=10**6, ids=None, **options):
    """(a study in memory, its clock still, told normal rewards until it stops or so many plans are closed)."""
    rng = stream(3, "report", name, num_arms)
    features = rng.normal(size=(num_arms, 2))
    arms = sp.Arms(features, ids)
    given = {"epsilon": 0.5, "delta": 0.05, "noise": sp.SubGaussian(0.5)} | options
    log = MemoryLog(clock=lambda: 1_750_000_000.0)
    study = sp.Study(arms, sp.make_policy(name, arms, **given), minimize=minimize, log=log, study_id="report")
    means = features @ [1.0, -0.5]
    while most_plans > 0 and (plan := study.ask()) is not None:
        ids_told = [one for one, pulls in plan.table() for _ in range(pulls)]
        order = [study.ids.index(one) for one in ids_told]
        study.tell(ids_told, means[order] + rng.normal(0.0, 0.5, len(order)), worker="ann")
        most_plans -= 1
    return study


def page_of(study, tmp_path, **options) -> Page:
    path = study_report.write_report(study, tmp_path / "report.html", **({"forecast_up_to": 0} | options))
    return Page(path.read_text(encoding="utf-8"))


def made_up(num_arms=4, *, verdict="certified", ids=None, **changes) -> dict:
    """A certificate of a study that never was: arm 0 is recommended, arm i is worse by i / 10, one batch."""
    everybody = list(range(num_arms))
    widths = [0.3 + 0.001 * (arm % 7) for arm in everybody]
    leads = [arm / 10 for arm in everybody]
    margins = [0.2 + lead - width for lead, width in zip(leads, widths, strict=True)]
    open_ones = [margin < 0 for margin in margins]
    told = {"arms": everybody, "pulls": [2] * num_arms, "sums": [1.0] * num_arms, "squares": None}
    look = {
        "plan": 1,
        "look": 1,
        "looks": 1,
        "asked": {"arms": everybody, "pulls": [2] * num_arms},
        "told": told,
        "surplus": False,
        "repeated": 0,
        "abandoned": [],
        "withdrawn": [],
        "added": [],
        "leader": "0",
        "candidate": "0",
        "active": 1 + sum(open_ones[1:]),
        "certified_gap": None,
        "left": {"number": sum(not one for one in open_ones[1:])},
        "joined": [],
    }
    entry = {"round": 1, "total_pulls": 2 * num_arms, "active": look["active"], "alarms": [], "looks": [look]}
    return {
        "study": "made up",
        "made_by": "surepick test",
        "best_arm": "0" if ids is None else ids[0],
        "epsilon": 0.2,
        "delta": 0.05,
        "pulls": 2 * num_arms,
        "verdict": verdict,
        "promise": "A promise.",
        "reason": "A reason.",
        "certified_gap": 0.2 if verdict == "certified" else None,
        "minimize": False,
        "assumptions": ["Given what was measured before, each measurement is an independent draw."],
        "checks": ["The results are no farther from the embedding than its noise allows."],
        "policy": {"name": "certified-linear", "noise": "bounded:0:1"},
        "algorithm": "certified-linear",
        "traits": {"uses_features": True, "certifies": "candidate"},
        "arms": {"number": num_arms, "ids": ids, "features": [], "columns": ["x"], "sha256": "b" * 64},
        "registration": "sp1-aaaa-bbbb-cccc-dddd-eeee-ffff-gggg",
        "ended": None,
        "rounds": [entry],
        "intervals": {
            "plans": [1] * num_arms,
            "witnesses": [-1] + [0] * (num_arms - 1),
            "leads": [None, *leads[1:]],
            "widths": [None, *widths[1:]],
            "margins": [None, *margins[1:]],
            "allowed": [None] + [0.2] * (num_arms - 1),
        },
        "candidates": {
            "pulls": [2] * num_arms,
            "means": [0.5] * num_arms,
            "fates": ["recommended", *("possible" if one else "left" for one in open_ones[1:])],
        },
        "sha256": "a" * 64,
    } | changes


def rendered(document, features=None, history=NO_LOG, expected=NO_FORECAST) -> Page:
    given = np.zeros((document["arms"]["number"], 0)) if features is None else features
    return Page(study_report.report_page(document, history=history, features=given, expected=expected))


POLICIES = {
    "certified-independent": {},
    "certified-linear": {"norm_bound": 1.5},
    "linear-embedding": {"norm_bound": 1.5},
    "action-elimination": {},
    "rage": {},
    "lucb": {},
}
