"""Pictures in 60 columns: what stands where, and that ASCII has all of it."""

import pytest
from drawn_field import GAPS, LEFT, candidates, many, row, trace

from surepick.drawings import terminal
from surepick.drawings.terminal import ASCII, UNICODE

FIELD = candidates(
    row("rxn-14", 82.8, 39, error=0.6),
    row("rxn-17", 81.6, 77, "recommended", error=0.4),
    row("a-very-long-name-1", 75.6, 1, error=3.5),
    row("rxn-04", 72.7, 2, "ruled out", error=2.5),
    row("never", None, 0, "ruled out"),
)


def texts(lines):
    return [line.text for line in lines]


def test_a_picture_fits_in_60_columns_and_marks_are_where_they_belong():
    lines = texts(terminal.means_lines(FIELD))
    assert all(len(line) <= 60 for line in lines)
    best = next(line for line in lines if "rxn-17" in line)
    first = next(line for line in lines if "rxn-14" in line)
    ruled_out = next(line for line in lines if "rxn-04" in line)
    assert best.startswith("★ rxn-17")
    assert best.endswith("81.6   77")
    assert first.startswith("◇ rxn-14")
    assert ruled_out.startswith("· rxn-04")
    assert first.index("○") > best.index("●") > ruled_out.index("•")
    band = [at for at, letter in enumerate(best) if letter in "░●─"]
    assert band == list(range(band[0], band[-1] + 1))
    assert abs((band[0] + band[-1]) / 2 - best.index("●")) <= 1
    assert "within 5" in lines[0]
    assert any(line.startswith("◇ a-very-l…-name-1") for line in lines)
    assert lines[-1].startswith("· never")


def test_ascii_says_the_same():
    lines = texts(terminal.means_lines(FIELD, signs=ASCII, unit="µm"))
    assert all(line.isascii() for line in lines)
    assert any(line.startswith("* rxn-17") and "@" in line and ":" in line for line in lines)
    assert any(line.startswith("o rxn-14") for line in lines)
    plain = texts(terminal.trace_lines(trace(GAPS, LEFT), 1, signs=ASCII))
    assert plain[0] == "gap     .8766544  11.8 after 48, now 4.8"


@pytest.mark.parametrize("width", [50, 55, 60, 200])
def test_a_terminal_has_no_line_that_is_too_long(width):
    assert max(map(len, texts(terminal.means_lines(FIELD, width=width)))) <= min(width, 60)


def test_a_narrow_terminal_has_numbers_alone():
    lines = texts(terminal.means_lines(FIELD, width=40))
    assert all(len(line) <= 40 for line in lines)
    assert not any("─" in line for line in lines)
    assert any(line.startswith("★ rxn-17") and line.endswith("81.6   77") for line in lines)


def test_of_many_ten_are_shown_and_all_that_are_possible():
    assert texts(terminal.means_lines(many(45, possible=3)))[-1] == "and 35 more, all ruled out"
    assert texts(terminal.means_lines(many(45, possible=15)))[-1] == "and 29 more, all ruled out"
    assert texts(terminal.means_lines(many(45, possible=40)))[-1] == "and 25 more, 21 of them still possible"


def test_sparks_rise_with_the_numbers():
    gap, field = texts(terminal.trace_lines(trace(GAPS, LEFT), 1))
    assert gap == "gap     ·█▇▆▆▅▄▄  11.8 after 48, now 4.8"
    assert field == "field   ██▇▅▄▃▂▂  45, now 8"
    assert texts(terminal.trace_lines(trace((None, None)), 1)) == []
    long = texts(terminal.trace_lines(trace(tuple(100.0 - one for one in range(90))), 1))[0]
    assert len(long) <= 80


def test_a_round_is_a_bar_of_counts():
    line = terminal.round_line(11, 10, 24, round_number=6)
    assert line == "round 6 ███████████▒▒▒▒▒▒▒▒▒▒░░░  11 of 24 in, 10 in hand"
    assert terminal.round_line(0, 0, 5, round_number=1) == f"round 1 {'░' * 24}  0 of 5 in"
    assert terminal.round_line(1, 1, 900, round_number=1).count("▒") == 1
    assert terminal.signs_for("UTF-8") is UNICODE
    assert terminal.signs_for("cp1252") is terminal.signs_for(None) is ASCII
