"""`surepick migrate`: the tables of a database at the schema of this version."""

from __future__ import annotations

from surepick.cli import options
from surepick.cli.open_study import DatabaseArgument
from surepick.cli.output import print_json, say


def migrate(url: DatabaseArgument, output: options.FormatOption = options.Format.text) -> None:
    """Bring a database to the schema of this version; copy it first."""
    from surepick.studies.database import migrate_studies  # noqa: PLC0415 (an extra; the address is checked first)

    before, now = migrate_studies(url)
    if output is options.Format.json:
        print_json({"before": before, "now": now})
    elif before == now:
        say(f"The schema is {now} already; nothing was changed.")
    else:
        say(f"Schema {before} is now {now}.")
