"""`surepick shortlist`: from a long list that is short now to the study of the short one."""

from __future__ import annotations

from typing import Annotated

from typer import Argument

from surepick.cli import options
from surepick.cli.open_study import DatabaseArgument, NameArgument, command_line, opened
from surepick.cli.output import print_json, say
from surepick.policies.base import spec_of
from surepick.studies.opening import create_study


def shortlist(
    url: DatabaseArgument,
    name: NameArgument,
    new: Annotated[str, Argument(metavar="NEW", help="The name of the study to make.", show_default=False)],
    output: options.FormatOption = options.Format.text,
) -> None:
    """Start the study of a short list, once the study of a long list in files has found it.

    It goes through the files once. What the new study certifies holds for the long list.
    """
    from surepick.studies.short_list import short_list_policy  # noqa: PLC0415 (numpy: `--help` needs none)

    long_list = opened(url, name)
    policy = short_list_policy(long_list)
    study = create_study(url, new, policy, minimize=long_list.minimize)
    total = long_list.progress().shortens
    if output is options.Format.json:
        found = {"study": new, "candidates": len(study.ids), "long_list": total, "policy": spec_of(policy)}
        print_json({**found, "next": study.progress().asked, "registration": study.registration})
        return
    say(f"Study {new!r}: the {len(study.ids):,} candidates on the short list of {total:,}.")
    say(f"{new}: {study.progress()}")
    say(f"Registration code: {study.registration}.")
    say(f"Next: {command_line('ask', url, new)}")
