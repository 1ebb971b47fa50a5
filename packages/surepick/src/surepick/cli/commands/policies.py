"""`surepick policies`: what `--policy` may name."""

from __future__ import annotations

from surepick.cli import options
from surepick.cli.output import print_json, print_table, say
from surepick.policies.registry import policy_names, policy_options, policy_summary


def policies(*, output: options.FormatOption = options.Format.text) -> None:
    """List the policies that `--policy` may name, each with a line about it, those of installed packages too."""
    names = policy_names(None)
    if output is options.Format.json:
        print_json({name: {"summary": policy_summary(name), "options": list(policy_options(name))} for name in names})
        return
    print_table(
        ("policy", "what it does"), [(name, policy_summary(name)) for name in names], left=("policy", "what it does")
    )
    say("Without --policy it is the certified one that your other options speak of. Settings: --option NAME=VALUE.")
