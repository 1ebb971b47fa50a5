"""Records that the tests of pictures draw."""

from surepick.drawings.records import Candidate, Candidates, ClosedRound, Trace


def row(name, mean, times=4, state="possible", *, error=1.0, bound=None):
    """A candidate whose interval reaches two errors to each side."""
    low, high = (None, None) if mean is None or error is None else (mean - 2 * error, mean + 2 * error)
    return Candidate(name, mean, error, low, high, times, bound, state)


def trace(gaps, possible=None, tolerance=5.0, asked_about=45):
    """A round for each gap, of 24 measurements."""
    left = [asked_about] * len(gaps) if possible is None else possible
    rounds = [
        ClosedRound(at + 1, 24 * (at + 1), gap, count, "a")
        for at, (gap, count) in enumerate(zip(gaps, left, strict=True))
    ]
    return Trace(tuple(rounds), tolerance, asked_about)


GAPS = (None, 11.72, 9.4, 8.4, 7.6, 6.5, 5.7, 4.71)
LEFT = (45, 45, 38, 27, 19, 14, 11, 8)


def candidates(*rows, tolerance=5.0, gaps=GAPS, **more):
    """A record of these rows."""
    possible = LEFT if gaps is GAPS else None
    verdict = more.pop("verdict", "certified")
    return Candidates(rows, trace(gaps, possible, tolerance), tolerance, 0.05, verdict, **more)


def many(number, *, possible=1):
    """So many candidates, the first recommended, some of the next still possible, the others ruled out."""
    states = ["recommended", *["possible"] * possible, *["ruled out"] * (number - possible - 1)]
    return candidates(*(row(f"c{at:04}", 80.0 - 0.1 * at, state=state) for at, state in enumerate(states)))
