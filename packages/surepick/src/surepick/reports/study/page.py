"""The report of a study: one static HTML file that can be read without knowing the field, and without a network."""

from __future__ import annotations

import base64
import hashlib
import operator
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surepick.assumptions import Reading, shown
from surepick.certificates.document import certificate_document
from surepick.core.files import as_path, write_whole
from surepick.core.records import FloatArray
from surepick.drawings import cards, html, sentences
from surepick.drawings.records import Candidates
from surepick.errors import InvalidInput
from surepick.policies.prices import cost_of
from surepick.reports.study import facts as written
from surepick.reports.study.charts import Foreseen, comparisons, foreseen, spending
from surepick.reports.study.facts import Document, History
from surepick.reports.study.lists import arrow, candidate_map, place, standings, star
from surepick.studies.logs.base import INDEPENDENT_OF_VALUE
from surepick.studies.progress import confidence_of, times
from surepick.studies.readings import shown_readings
from surepick.studies.study import Study
from surepick.text import about, money, percent, quoted

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


# --- Templates as all pages of surepick have them: nothing is unescaped or undefined, and numbers are written alike.


def environment_of(folder: Path) -> Environment:
    """The templates of a folder."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 (an extra)

    tidy: dict[str, Any] = {"trim_blocks": True, "lstrip_blocks": True, "keep_trailing_newline": True}
    found = Environment(loader=FileSystemLoader(folder), autoescape=True, undefined=StrictUndefined, **tidy)
    found.filters |= {"about": about, "money": money, "percent": percent, "times": times}
    found.filters["confidence"] = lambda delta: percent(confidence_of(delta))
    return found


FORECAST_UP_TO = 1_000  # candidates; a forecast of more takes longer than the rest of the report
TIME = re.compile(r"\d{4}-\d\d-\d\d[ \xa0]\d\d:\d\d[ \xa0]UTC")
TEMPLATES = Path(__file__).with_name("templates")


def write_report(
    study: Study, path: str | Path, *, name: str | None = None, source: str = "", forecast_up_to: int = FORECAST_UP_TO
) -> Path:
    """Write what a study found as one static HTML file: the answer in words, pictures, assumptions, and the log.

    Nothing of an open plan is in it, and equal studies give equal files. It needs no network and no other file.

    Args:
        study: a study, stopped or not.
        path: the file, replaced if it exists.
        name: what the study is called in it; its title is the question otherwise.
        source: what its candidates were read from, for the line above the title.
        forecast_up_to: with more candidates the spending is not compared with a forecast, which would take longer to
            compute than all the rest; 0: never.

    Returns:
        The path.

    Raises:
        InvalidInput: jinja2 is absent, or the file cannot be written.

    Cost: a few seconds for 10,000 candidates, and the time of `forecast`.
    """
    target = as_path(path, meaning="there the report is written.")
    if not isinstance(study, Study):
        raise InvalidInput(
            f"study is {quoted(study)}, a {type(study).__name__}; give a Study, e.g. the .study of a Result."
        )
    if study.elsewhere is not None:
        write_whole(target, study.elsewhere.report(name, forecast_up_to), what="the report")
        return target
    check_jinja()
    document = report_document(study, name)
    judged = max((look["plan"] for entry in document["rounds"] for look in entry["looks"]), default=0)
    page = report_page(
        document,
        history=written.history_of(study.log, judged),
        features=study.arms.features,
        expected=foreseen(study.policy, most_arms=forecast_up_to),
        readings=shown_readings(study),
        candidates=study.candidates(),
        source=source,
    )
    write_whole(target, page.encode("utf-8", "replace"), what="the report")  # names may hold what UTF-8 cannot
    return target


def check_jinja() -> None:
    """Refuse to go on without what reports need."""
    try:
        import jinja2  # noqa: F401, PLC0415 (an extra)
    except ImportError as error:
        raise InvalidInput('reports need jinja2, which is absent: pip install "surepick[reports]".') from error


def report_page(
    document: Document,
    *,
    history: History,
    features: FloatArray,
    expected: Foreseen,
    readings: tuple[Reading, ...] = (),
    candidates: Candidates | None = None,
    source: str = "",
) -> str:
    """The report as HTML: what each section draws and says, handed to the templates, which hold the words."""
    study = written.facts_of(document)
    environment = report_environment(written.users_words(study))
    own, script = (f"\n{(TEMPLATES / name).read_text('utf-8').strip()}\n" for name in ("report.css", "report.js"))
    style = f"{own}{html.style()}\n"
    return environment.get_template("report.html").render(
        study=study,
        document=document,
        answer=written.answer_section(study),
        promise="" if candidates is None else sentences.promise(candidates),
        pictures="" if candidates is None else pictures_of(candidates),
        comparisons=comparisons(study),
        standings=standings(study),
        map=candidate_map(study, features),
        spending=spending(study, expected),
        expected=expected,
        readings=readings,
        kept=history,
        source=source,
        batches=written.batches(study, history),
        style=style,
        script=script,
        policy_of_page=f"default-src 'none'; style-src '{_source(style)}'; script-src '{_source(script)}'",
    )


def pictures_of(found: Candidates) -> Markup:
    """The candidates by mean with their bounds, how the gap closed and how the field narrowed, as sections."""
    from markupsafe import Markup  # noqa: PLC0415 (comes with jinja2)

    if not found.trace.rounds:
        return Markup("")
    means = cards.means_section(found, bounds=any(row.better_at_most is not None for row in found.rows))
    gap = "" if found.listed or found.gap is None else cards.gap_section(found.trace, found.decimals)
    beside = [part for part in (gap, "" if found.listed else cards.field_section(found.trace)) if part]
    return Markup(means + (f'<div class="halves gap-above">{"".join(beside)}</div>' if beside else ""))


def report_document(study: Study, name: str | None = None) -> Document:
    """The certificate with what became of all candidates and what they cost, and what the policy says of itself."""
    document, prices = certificate_document(study, name, every_candidate=True), study.prices
    candidates, traits = document["candidates"], study.policy.traits
    if written.is_empty(document):  # before anything was measured none of them leads
        candidates["fates"] = ["possible" if fate == "recommended" else fate for fate in candidates["fates"]]
    if prices is not None:
        rows = zip(prices.each(len(study.ids)).tolist(), candidates["pulls"], strict=True)
        candidates["costs"] = [cost_of(price, pulls) for price, pulls in rows]
        document["batch_cost"] = prices.batch
    document["arms"]["ids"] = list(study.ids)
    said = {name: getattr(traits, name) for name in ("uses_features", "certifies", "eliminates")}
    return document | {"traits": said}


def report_environment(own: list[str]) -> Environment:
    """Templates with what they need to write numbers, names, times and places."""
    environment = environment_of(TEMPLATES)
    environment.filters |= {
        "column": written.column,
        "date": lambda seconds: _dated(written.time(seconds)),
        "dated": _dated,
        "listed": written.listed_words,
        "negative": operator.neg,
        "number": written.number_text,
        "plain": lambda sentence: written.plain_words(sentence, own),
        "shortened": written.shortened_id,
        "signed": written.signed_column,
    }
    environment.globals |= {
        "arrow": arrow,
        "at": _places,
        "edges": written.EDGES,
        "independent": INDEPENDENT_OF_VALUE,
        "most_rows": written.MOST_ROWS,
        "nobody": written.NOBODY,
        "claims": shown,
        "star": star,
    }
    return environment


def _places(**given: float) -> Markup:
    """Attributes of a mark: its places on the drawing."""
    from markupsafe import Markup  # noqa: PLC0415 (comes with jinja2)

    return Markup(" ".join(f'{name}="{place(value)}"' for name, value in given.items()))


def _dated(text: str) -> Markup:
    """Text in which no time is broken over two lines."""
    from markupsafe import Markup, escape  # noqa: PLC0415 (comes with jinja2)

    return Markup(TIME.sub(r'<span class="date">\g<0></span>', str(escape(text))))


def _source(text: str) -> str:
    """A hash for the page's security policy: only these bytes are style or script."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
