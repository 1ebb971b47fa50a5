"""Names of other packages in help: looked up only where help is shown."""

POLICIES, QUESTIONS = "{policies}", "{questions}"  # stand in the help of options


def with_plugins(text: str) -> str:
    """Help with the names that are installed."""
    if POLICIES in text:
        from surepick.policies.registry import policy_names  # noqa: PLC0415 (where help is shown)

        names = policy_names()
        others = ", ".join(name for name in policy_names(None) if name not in names)
        text = text.replace(POLICIES, ", ".join(names) + (f"; with --question {others}" if others else ""))
    if QUESTIONS in text:
        from surepick.questions import question_names  # noqa: PLC0415

        text = text.replace(QUESTIONS, ", ".join(question_names()))
    return text
