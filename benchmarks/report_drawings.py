"""The report's two largest charts drawn in three ways: bytes, labels, script, colour schemes, print, lines.

    pip install vl-convert-python    and    npm pack vega@5 vega-lite@5 vega-embed@6
    python benchmarks/report_drawings.py --scripts FOLDER --out PAGES

FOLDER holds vega.min.js, vega-lite.min.js and vega-embed.min.js. PAGES gets one page a way, for a look with a browser.
The figures stand in docs/decisions/0018-drawings.md.
"""

from __future__ import annotations

import argparse
import gzip
import inspect
import io
import json
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import surepick as sp
from surepick.certificates.document import certificate_document
from surepick.core.random_streams import stream
from surepick.reports.study import lists
from surepick.reports.study.page import TEMPLATES, write_report

SHARED = (lists.Frame, lists.Scale, lists.nice_step, lists.spread_labels, lists.place)  # where marks lie, in all charts
FATES = {"recommended": "#0069ad", "possible": "#c24e00", "left": "#848b94"}
NUM_ARMS = 200


def finished_study() -> sp.Study:
    """A study of 200 candidates with six features, judged so often that some bars are long and some short."""
    features = stream(0, "drawings", "features").normal(size=(NUM_ARMS, 6))
    arms = sp.Arms(features, [f"candidate-{place:03d}" for place in range(NUM_ARMS)])
    study = sp.Study(
        arms,
        sp.make_policy("certified-linear", arms, epsilon=0.5, delta=0.05, noise=sp.SubGaussian(1.0), norm_bound=2.0),
    )
    means, rng = features @ [1.0, -0.5, 0.2, 0.0, 0.0, 0.0], stream(0, "drawings", "noise")
    for _ in range(3):
        plan = study.ask()
        ids = [name for name, pulls in plan.table() for _ in range(pulls)]
        study.tell(ids, means[[study.ids.index(name) for name in ids]] + rng.normal(size=len(ids)))
    return study


def bars_of(document: dict) -> list[dict]:
    """The 30 candidates that are hardest to rule out: name, fate, where the bar starts and ends."""
    found, fates = document["intervals"], document["candidates"]["fates"]
    known = [
        place for place, margin in enumerate(found["margins"]) if margin is not None and fates[place] != "recommended"
    ]
    hardest = sorted(known, key=lambda place: found["margins"][place])[:30]
    return [
        {
            "name": f"candidate-{place:03d}",
            "fate": fates[place],
            "start": -found["leads"][place],
            "end": found["widths"][place] - found["leads"][place],
        }
        for place in hardest
    ]


def points_of(study: sp.Study, document: dict) -> list[dict]:
    """Every candidate's place along the two directions in which the features differ most."""
    features = study.arms.features
    unit = (features - features.mean(axis=0)) / features.std(axis=0)
    places = unit @ np.linalg.svd(unit, full_matrices=False)[2][:2].T
    fates = document["candidates"]["fates"]
    return [
        {"name": name, "fate": fate, "x": x, "y": y}
        for name, fate, (x, y) in zip(study.ids, fates, places.tolist(), strict=True)
    ]


def with_matplotlib(bars: list[dict], points: list[dict], limit: float) -> list[str]:
    from matplotlib import rc_context  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    first = Figure(figsize=(6.7, 8.0), layout="constrained")
    axes = first.add_subplot()
    for height, bar in enumerate(bars):
        colour = FATES[bar["fate"]]
        (line,) = axes.plot([bar["start"], bar["end"]], [height] * 2, color=colour)
        line.set_gid(f"bar-{bar['name']}")
        axes.plot(bar["start"], height, "o", color=colour, markersize=5)
        axes.plot(bar["end"], height, "|", color=colour)
    axes.axvline(limit, color="#1b1f24")
    axes.set_yticks(range(len(bars)), [bar["name"] for bar in bars])
    axes.invert_yaxis()
    axes.set_xlabel("can be better by (unit of the rewards)")
    axes.grid(axis="x", alpha=0.3)
    second = Figure(figsize=(6.7, 4.4), layout="constrained")
    axes = second.add_subplot()
    for fate, marker in {"left": "o", "possible": "D", "recommended": "*"}.items():
        here = [point for point in points if point["fate"] == fate]
        axes.scatter([one["x"] for one in here], [one["y"] for one in here], marker=marker, c=FATES[fate], label=fate)
    axes.set_xlabel("first direction")
    axes.set_ylabel("second direction")
    axes.legend()
    drawn = []
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "surepick"}):
        for figure in (first, second):
            file = io.StringIO()
            figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
            drawn.append(file.getvalue()[file.getvalue().index("<svg") :])
    return drawn


def vega_specifications(bars: list[dict], points: list[dict], limit: float) -> list[dict]:
    colour = {"field": "fate", "scale": {"domain": list(FATES), "range": [f"var(--{fate})" for fate in FATES]}}
    row = {"field": "name", "type": "nominal", "sort": None, "axis": {"title": "candidate"}}
    across = {"type": "quantitative", "title": "can be better by (unit of the rewards)"}
    ink = {"axis": {"labelColor": "var(--quiet)", "titleColor": "var(--quiet)", "gridColor": "var(--rule)"}}
    look = {"config": {"background": None, **ink}, "width": 480}
    bar = {
        "data": {"values": bars},
        **look,
        "height": {"step": 26},
        "encoding": {"y": row, "color": colour | {"type": "nominal"}},
        "layer": [
            {"mark": "rule", "encoding": {"x": {"field": "start", **across}, "x2": {"field": "end"}}},
            {"mark": {"type": "point", "filled": True}, "encoding": {"x": {"field": "start", **across}}},
            {"mark": "tick", "encoding": {"x": {"field": "end", **across}}},
            {
                "mark": {"type": "rule", "color": "var(--ink)"},
                "data": {"values": [{"limit": limit}]},
                "encoding": {"y": None, "color": None, "x": {"field": "limit", **across}},
            },
        ],
    }
    plane = {
        "data": {"values": points},
        **look,
        "height": 400,
        "mark": {"type": "point", "filled": True},
        "encoding": {
            "x": {"field": "x", "type": "quantitative", "title": "first direction"},
            "y": {"field": "y", "type": "quantitative", "title": "second direction"},
            "shape": {"field": "fate", "type": "nominal"},
            "color": colour | {"type": "nominal"},
            "description": {"field": "name", "type": "nominal"},
        },
    }
    for chart in bar["layer"][:3]:
        chart["encoding"]["description"] = {"field": "name", "type": "nominal"}
    return [bar, plane]


def with_vega_on_the_server(bars: list[dict], points: list[dict], limit: float) -> list[str]:
    import vl_convert  # noqa: PLC0415

    return [vl_convert.vegalite_to_svg(one) for one in vega_specifications(bars, points, limit)]


def with_vega_in_the_page(bars: list[dict], points: list[dict], limit: float) -> list[str]:
    calls = []
    for place, one in enumerate(vega_specifications(bars, points, limit)):
        call = f'vegaEmbed("#chart-{place}", {json.dumps(one)}, {{renderer: "svg", ast: true}});'
        calls.append(f'<div id="chart-{place}"></div><script>{call}</script>')
    return calls


WAYS = (with_matplotlib, with_vega_on_the_server, with_vega_in_the_page)


def figures_of(page: str) -> list[str]:
    """The report's own two charts: the bars and the map, as they stand in the page."""
    figures = re.findall(r"<figure.*?</figure>", page, re.S)
    return [next(one for one in figures if key in one) for key in ("chart-intervals", "chart-map")]


def lines_of_ours() -> tuple[int, int]:
    """(lines that all charts share, lines that draw these two)."""
    shared = sum(len(inspect.getsource(part).splitlines()) for part in SHARED)
    shared += len((TEMPLATES / "marks.html").read_text("utf-8").splitlines())
    texts = [(TEMPLATES / f"{name}.html").read_text("utf-8") for name in ("intervals", "map")]
    charts = [re.search(r"{% call draw.chart.*?{% endcall %}", text, re.S)[0] for text in texts]
    return shared, sum(len(chart.splitlines()) for chart in charts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scripts", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    study = finished_study()
    document = certificate_document(study)
    shown = bars_of(document), points_of(study, document), document["epsilon"]
    with tempfile.TemporaryDirectory() as folder:
        page = write_report(study, Path(folder) / "r.html", forecast_up_to=0).read_text("utf-8")
    style = re.search(r"<style>.*?</style>", page, re.S)[0]
    names = ("vega.min.js", "vega-lite.min.js", "vega-embed.min.js")
    scripts = "".join(f"<script>{(given.scripts / name).read_text('utf-8')}</script>" for name in names)
    ours_for = {each: len(inspect.getsource(each).splitlines()) for each in (vega_specifications, *WAYS)}
    ways: dict[str, tuple[Callable[..., list[str]], str, object]] = {
        "ours": (lambda *_: figures_of(page), "", lines_of_ours()),
        "matplotlib": (with_matplotlib, "", ours_for[with_matplotlib]),
        "vega-server": (with_vega_on_the_server, "", ours_for[vega_specifications] + ours_for[with_vega_on_the_server]),
        "vega-page": (with_vega_in_the_page, scripts, ours_for[vega_specifications] + ours_for[with_vega_in_the_page]),
    }
    for way, (draw, head, written) in ways.items():
        draw(*shown)  # what is imported is not timed
        began = time.perf_counter()
        bars, plane = draw(*shown)
        seconds = time.perf_counter() - began
        both = head + bars + plane
        (given.out / f"{way}.html").write_text(f"<!DOCTYPE html><html lang=en>{style}<body>{both}</html>", "utf-8")
        labels = [len(re.findall("aria-label=|<title>", chart)) for chart in (bars, plane)]
        print(
            f"{way:12} bytes {len(both.encode()):>9,}  compressed {len(gzip.compress(both.encode())):>8,}  "
            f"labels {labels}  scripts {both.count('<script'):>2}  style attributes {both.count(' style='):>5}  "
            f"fixed colours {len(re.findall('#[0-9a-f]{6}', bars + plane)):>4}  {seconds:.3f} s  lines {written}"
        )


if __name__ == "__main__":
    main()
