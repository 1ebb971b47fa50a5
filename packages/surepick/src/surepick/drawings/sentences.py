"""What the pictures say in words: what is promised, what only describes. Each sentence is here once."""

from decimal import Decimal

from surepick.drawings.numbers import asked, in_points, number, upper, with_unit
from surepick.drawings.records import Candidates, Trace
from surepick.text import percent

NOTHING_YET = "Nothing is known before the first round is complete."
NOT_THE_PROMISE = "A description, not the promise."


def confidence(delta: float) -> str:
    """1 - delta in per cent, without the rounding of a float: "95"."""
    return percent(1 - Decimal(repr(float(delta))))


def gap_words(found: Candidates, *, unit: str = "") -> str:
    """How far the recommended one is from the best at most: "at most 4.8 points below the best"; "" of no bound."""
    if found.gap is None or found.verdict == "heuristic" or not found.promised:
        return ""
    side = "above" if found.minimize else "below"
    if found.gap <= 0:
        return "not worse than any other"
    return f"at most {with_unit(upper(found.gap, found.decimals), in_points(unit))} {side} the best"


def promise(found: Candidates, *, unit: str = "") -> str:
    """What is promised of the recommended one, in one sentence.

    Source: docs/certified-elimination.md, line 15.
    """
    best, near = found.recommended, gap_words(found, unit=unit)
    if found.listed:
        return ""
    if best is None:
        return NOTHING_YET
    whom = f"{'all' if found.whole else 'those that were left, of'} {len(found.rows):,}"
    sure = f"{confidence(found.delta)} % confidence"
    wanted = f"You asked for {with_unit(asked(found.tolerance), in_points(unit))}, at" if found.tolerance else "At"
    if not near:
        if found.verdict == "heuristic" or not found.promised:
            return "It looks best by the rule; that is a good guess, and nothing is promised."
        return f"Nothing is proved of it yet. {wanted} {sure}."
    return f"Its true mean is {near} of {whom}. {wanted} {sure}."


def means_said(found: Candidates) -> str:
    """What the picture of the means shows."""
    if found.estimated:
        dots = "Dots are estimates from all results of closed rounds and the columns, lines reach two standard errors"
    else:
        dots = "Dots are means of closed rounds, lines reach two standard errors"
    return f"{dots} to each side. A candidate that was measured seldom has a long line."


def why_not(found: Candidates, *, unit: str = "") -> tuple[str, str]:
    """(question, answer) where another one has the better mean; ("", "") where none has."""
    best, first = found.recommended, found.by_mean[0] if found.rows else None
    if best is None or first is None or best.mean is None or first.mean is None or first.id == best.id:
        return "", ""
    apart = abs(first.mean - best.mean)
    more = "lower" if found.minimize else "higher"
    kind = "estimate" if found.estimated else "mean"
    said = f"Its {kind} is {with_unit(number(apart, found.decimals), in_points(unit))} {more}"
    said += f", from {_times(first.times)} against {best.times:,}"
    if 0 < apart <= found.tolerance:
        return f"Why not {first.id}?", f"{said}; a difference that your tolerance does not care about."
    return f"Why not {first.id}?", f"{said}; the rule weighs all results, and not the mean alone."


def who_said(found: Candidates, *, unit: str = "") -> str:
    """What is promised of the candidates that are still possible, and what is not."""
    best = found.recommended
    if best is None:
        return ""
    rows = [row for row in found.rows if row.state == "possible" and row.better_at_most is not None]
    each = (
        "Each line speaks of its own candidate: if it is the best, it is better by no more than the end of the line. "
        "Those that end left of 0 are not the best."
    )
    if found.gap is None:
        return f"The best of all is among these {found.possible:,}. {each}" if rows else each
    most = with_unit(upper(found.gap, found.decimals), in_points(unit))
    return (
        f"The best of all is among these {found.possible:,}, and no candidate is better than {best.id} by more than "
        f"{most}. {each}"
    )


def gap_said(trace: Trace, decimals: int, *, unit: str = "") -> str:
    """How the gap closed: its first and last number."""
    known = [one for one in trace.rounds if one.gap is not None]
    if not known:
        spent = trace.rounds[-1].measurements if trace.rounds else 0
        return f"Nothing is proved after {_times(spent)}."
    first, last = known[0], known[-1]
    said = f"After {_times(first.measurements)} the best so far was {_at_most(first.gap, decimals, unit)}"
    return said + "." if first is last else f"{said}; after {last.measurements:,}, {_short(last.gap, decimals, unit)}."


def field_said(trace: Trace) -> str:
    """How the field narrowed, as numbers."""
    return f"Candidates still possible after each round: {', '.join(f'{one.possible:,}' for one in trace.rounds)}"


def others_said(left: list[tuple[str, int]], best_mean: str) -> tuple[str, str]:
    """("30 more", "all ruled out, best mean 67.5") of the candidates that have no row."""
    total = sum(count for _, count in left)
    kinds = f"all {left[0][0]}" if len(left) == 1 else ", ".join(f"{count:,} {kind}" for kind, count in left)
    return f"{total:,} more", f"{kinds}{f', best mean {best_mean}' if best_mean else ''}"


def _at_most(gap: float | None, decimals: int, unit: str) -> str:
    if gap is None or gap <= 0:
        return "not worse than any other"
    return f"at most {with_unit(upper(gap, decimals), in_points(unit))} worse than the best"


def _short(gap: float | None, decimals: int, unit: str) -> str:
    return "no worse" if gap is None or gap <= 0 else f"at most {with_unit(upper(gap, decimals), in_points(unit))}"


def _times(count: int) -> str:
    return f"{count:,} measurement" + "s" * (count != 1)


def means_heading(found: Candidates) -> str:
    """The heading of the picture of the means."""
    return f"The candidates, best {'estimate' if found.estimated else 'mean'} first"


def terminal_heading(found: Candidates) -> str:
    """The same in a line of a terminal, with what is not promised."""
    return f"Best {'estimate' if found.estimated else 'mean'} first. Lines (two standard errors) do not promise."


def with_bounds(found: Candidates, *, unit: str = "") -> str:
    """What stands beside the means where each row has its bound: what describes, and what is promised."""
    kind = "estimate" if found.estimated else "mean"
    near = ""
    if found.tolerance and not found.lines and not found.listed and found.recommended is not None:
        best = found.called["recommended"]
        whom = "the recommended one" if best == "recommended" else f"the {best}"
        near = f" Shaded: within {with_unit(asked(found.tolerance), in_points(unit))} of {whom}."
    said = f"Dots and lines ({kind}, two standard errors) describe and promise nothing."
    if not any(row.better_at_most is not None for row in found.rows):
        return f"{near} {said}".strip()
    if not found.promised or found.verdict == "heuristic":
        return f"{near} {said} The last column is the bound of the rule, if the candidate is the best.".strip()
    return (
        f"{near} {said} The last column is promised: if a candidate is the best, it is better by no more than that; "
        "below 0 it is not the best."
    ).strip()
