"""The pictures of the closed rounds of a study, for its pages."""

import json

from markupsafe import Markup

from surepick.drawings import html, sentences
from surepick.drawings.numbers import number, with_unit
from surepick.linalg.rows import one_thread
from surepick.reports.study import facts as written
from surepick.reports.study.page import report_document, report_environment
from surepick.studies.candidates import words_of
from surepick.studies.readings import shown_readings
from surepick.studies.study import Study
from surepick_server.api import documents
from surepick_server.web.auth import ServerState

RAIL = 160  # pixels: the height of a drawing beside the work
MOST_DRAWN = 50_000  # candidates of a study whose pictures are drawn; the results are a table in any case
MOST_READ = 5_000  # candidates of a study whose readings are drawn here; the report has those of larger ones


def drawings_of(server: ServerState, name: str, results: str) -> dict[str, Markup]:
    """The pictures of the closed rounds of a study, and what they say; made once for each of its states."""

    def make(study: Study) -> bytes:
        with one_thread():
            return json.dumps(drawn(study, results)).encode()

    found = json.loads(documents.of_its_state(server, name, ("drawings", results), make))
    return {key: Markup(text) for key, text in found.items()}


def closeness_of(server: ServerState, name: str) -> dict[str, Markup]:
    """How the gap closed so far, small enough to stand beside the work."""

    def make(study: Study) -> bytes:
        with one_thread():
            found = study.candidates()
        chart = html.gap_chart(found.trace, found.decimals, named="closeness", height=RAIL, most_ticks=3, start=9.0)
        said = html.text(sentences.gap_said(found.trace, found.decimals, unit=study.scale.unit))
        return json.dumps({"chart": chart, "said": said}).encode()

    found = json.loads(documents.of_its_state(server, name, ("closeness",), make))
    return {key: Markup(text) for key, text in found.items()}


def drawn(study: Study, results: str) -> dict[str, str]:
    """The pieces of the answer page, all of them HTML: what somebody typed is escaped."""
    found, unit = study.candidates(), study.scale.unit
    words = words_of(study, results=results)
    best, trace = found.recommended, found.trace
    few = len(study.ids) <= MOST_READ
    mean = "" if best is None or best.mean is None else with_unit(number(best.mean, found.decimals), unit)
    return {
        "promise": html.text(sentences.promise(found, unit=unit)),
        "mean": html.text(mean),
        "times": "" if best is None else f"{best.times:,}",
        "heading": html.text(sentences.means_heading(found)),
        "key": html.key(found),
        "means": html.means_table(found, words),
        "note": html.means_note(found, words),
        "who": html.who_table(found, words),
        "who_said": html.text(sentences.who_said(found, unit=unit)),
        "gap": html.gap_chart(trace, found.decimals),
        "gap_said": html.text(sentences.gap_said(trace, found.decimals, unit=unit)),
        "field": html.field_chart(trace),
        "readings": readings_of(study) if few and shown_readings(study) else "",
        "promised": "yes" if found.promised and found.verdict != "heuristic" else "",
    }


def readings_of(study: Study) -> str:
    """Up to where the answer stands, under assumptions about the means."""
    document = report_document(study)
    facts = written.facts_of(document)
    environment = report_environment(written.users_words(facts))
    values = {"study": facts, "document": document, "readings": shown_readings(study)}
    return environment.get_template("readings.html").render(values)
