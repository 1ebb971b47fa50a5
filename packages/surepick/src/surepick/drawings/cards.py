"""The pictures put together: a verdict, the candidates by mean, the gap over time, for notebooks and reports."""

from __future__ import annotations

from collections.abc import Sequence

from surepick.drawings import html, sentences
from surepick.drawings.html import PLAIN, Words, text
from surepick.drawings.records import Candidates, Trace

CHIPS = {  # verdict -> class, words
    "certified": ("certified", "✓ Certified"),
    "heuristic": ("guess", "≈ Good guess"),
    "not-yet": ("measuring", "… Not certified yet"),
    "budget-exhausted": ("measuring", "… Not certified, the budget is spent"),
    "closed": ("measuring", "× Closed early"),
    "contradicted": ("attention", "! Needs attention"),
}


def verdict_card(
    verdict: str, name: str, made_of: str, *sentences_of_it: str, of_whom: str = "", heading: str = "is"
) -> str:
    """The verdict, and of whom it is where that is not all; the name of the answer, and what is promised of it."""
    kind, words = CHIPS.get(verdict, ("", verdict))
    words += text(of_whom)
    made = f'<p class="made-of">{text(made_of)}</p>' if made_of else ""
    said = "".join(f"<p>{text(sentence)}</p>" for sentence in sentences_of_it if sentence)
    return (
        f'<section class="verdict {kind}" aria-labelledby="{heading}"><p><span class="chip {kind}">{words}</span></p>\n'
        f'<h2 id="{heading}" class="name">{text(name)}</h2>{made}{said}</section>'
    )


def standing_card(sentence: str, verdict: str) -> str:
    """Where a study stands, in a sentence."""
    kind, words = CHIPS.get(verdict, ("", verdict))
    chip = f'<p><span class="chip {kind}">{words}</span></p>'
    return f'<section class="verdict {kind}" aria-label="Where it stands">{chip}<p>{text(sentence)}</p></section>'


def round_section(told: int, held: int, wanted: int, round_number: int) -> str:
    """How much of the open round is in; nothing about values."""
    meter = html.round_meter(told, held, wanted, round_number=round_number, tall=True)
    in_hand = f", {held:,} in hand" if held else ""
    said = f"Round {round_number}: {told:,} of {wanted:,} in{in_hand}"
    return f'<section aria-label="The open round">{meter}<p class="hint">{said}</p></section>'


def means_section(found: Candidates, words: Words = PLAIN, *, bounds: bool = False, note: bool = True) -> str:
    """The candidates by mean, under a heading; with bounds the caption says which column promises."""
    marks = html.key(found) if found.trace.rounds else ""
    table = html.means_table(found, words, bounds=bounds)
    after = ""
    if found.trace.rounds and bounds:
        after = f'<p class="hint">{text(sentences.with_bounds(found, unit=words.unit))}{_why(found, words)}</p>'
    elif found.trace.rounds and note:
        after = f'<p class="note">{html.means_note(found, words)}</p>'
    heading = f'<div class="heading"><h2 id="means">{sentences.means_heading(found)}</h2>{marks}</div>'
    return f'<section aria-labelledby="means">{heading}\n{table}\n{after}</section>'


def _why(found: Candidates, words: Words) -> str:
    question, answer = sentences.why_not(found, unit=words.unit)
    return f" <strong>{text(question)}</strong> {text(answer)}" if question else ""


def gap_section(trace: Trace, decimals: int, words: Words = PLAIN, *, named: str = "gap", height: int = 210) -> str:
    """How the gap closed, under a heading; the sentence alone where fewer than two rounds prove something."""
    if not trace.rounds:
        return ""
    drawn = html.gap_chart(trace, decimals, named=named, height=height)
    said = sentences.gap_said(trace, decimals, unit=words.unit)
    return (
        f'<section aria-labelledby="{named}-title"><h2 id="{named}-title">How the gap closed</h2>{drawn}\n'
        f'<p class="hint" id="{named}-says">{text(said)}</p></section>'
    )


def field_section(trace: Trace, *, named: str = "left", height: int = 210) -> str:
    """How the field narrowed, under a heading; "" if nobody was ever ruled out."""
    drawn = html.field_chart(trace, named=named, height=height)
    if not drawn:
        return ""
    said = "One column a round: candidates that were still possible after it."
    return (
        f'<section aria-labelledby="{named}-title"><h2 id="{named}-title">How the field narrowed</h2>{drawn}\n'
        f'<p class="hint">{said}</p></section>'
    )


def assumptions_section(assumptions: Sequence[str]) -> str:
    """What the answer rests on, as a fold; "" if it rests on nothing."""
    if not assumptions:
        return ""
    rows = "".join(f"<li>{text(sentence)}</li>" for sentence in assumptions)
    return f'<details class="fold" open><summary>It holds if</summary><ul class="plain-list">{rows}</ul></details>'


def notebook(*parts: str) -> str:
    """Parts as one piece of HTML for a notebook, with the stylesheet that they need; no script, and light and dark."""
    return f'<style>{html.style()}</style>\n<div class="surepick notebook">{"".join(parts)}</div>'
