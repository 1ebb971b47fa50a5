"""The report's pictures of the closed plans of a study, on its page."""

import json
from typing import Any

from markupsafe import Markup

from surepick.linalg.rows import one_thread
from surepick.reports.study import facts as written
from surepick.reports.study.lists import standings
from surepick.reports.study.page import pictures_of, report_document, report_environment
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
    """Those of a study, for a page that has `report.css` and `drawings.css`."""
    document = report_document(study)
    facts = written.facts_of(document)
    drawn: dict[str, Any] = {"standings": standings(facts), "readings": shown_readings(study)}
    shown = (("readings", "Up to where the answer stands"), ("standings", "Where the candidates stand"))
    environment = report_environment(written.users_words(facts))
    values = {"study": facts, "document": document, **drawn}
    pictures = Markup('<div class="surepick">{}</div>').format(pictures_of(study.candidates()))
    own = [
        (key, title, Markup(environment.get_template(f"{key}.html").render(values)))
        for key, title in shown
        if drawn[key]
    ]
    return [("candidates", "What was measured", pictures), *own]
