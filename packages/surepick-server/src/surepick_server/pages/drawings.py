"""The report's pictures of the closed plans of a study, on its page."""

import json
from typing import Any

from markupsafe import Markup

from surepick.linalg.rows import one_thread
from surepick.reports.study import facts as written
from surepick.reports.study.charts import effort, gaps, narrowing
from surepick.reports.study.lists import standings
from surepick.reports.study.page import report_document, report_environment
from surepick.studies.readings import shown_readings
from surepick.studies.study import Study
from surepick_server.api import documents
from surepick_server.web.auth import ServerState

Drawings = list[tuple[str, str, Markup]]  # (key, heading, HTML) of each


def drawings_of(server: ServerState, name: str) -> Drawings:
    """The report's pictures of the closed rounds of a study that is not too large."""

    def make(study: Study) -> bytes:
        with one_thread():
            return json.dumps([*map(list, report_drawings(study))]).encode()

    found = json.loads(documents.of_its_state(server, name, ("drawings",), make))
    return [(key, heading, Markup(drawing)) for key, heading, drawing in found]


def report_drawings(study: Study) -> Drawings:
    """Those of a study, for a page that has `report.css`."""
    document = report_document(study)
    facts = written.facts_of(document)
    drawn: dict[str, Any] = {"narrowing": narrowing(facts), "gaps": gaps(facts), "standings": standings(facts)}
    drawn |= {"effort": effort(facts), "readings": shown_readings(study)}
    lists = facts.lists is not None
    two = facts.list_names is None or bool(facts.list_names.second)
    narrows = drawn["narrowing"] is not None and not facts.shortens and two
    shown = (
        ("readings", "Up to where the answer stands", bool(drawn["readings"])),
        ("narrowing", "How the lists filled" if lists else "How the field narrowed", narrows),
        ("gap", "How close to the best", drawn["gaps"] is not None),
        ("standings", "Where the candidates stand", bool(drawn["standings"])),
        ("effort", "Where the measurements went", drawn["effort"] is not None),
    )
    environment = report_environment(written.users_words(facts))
    values = {"study": facts, "document": document, **drawn}
    there = [(key, heading) for key, heading, is_there in shown if is_there]
    return [(key, heading, Markup(environment.get_template(f"{key}.html").render(values))) for key, heading in there]
