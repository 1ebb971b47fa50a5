"""Draws the pictures of the documents: python docs/pictures/draw.py writes the .svg files beside this script.

Each picture is a function that returns its elements. Colours are those of Okabe and Ito, which people who see some
colours alike can tell apart; what a colour says is said in words as well. A picture brings its own light ground, so
that it can be read on a dark page.
"""

import math
import random
from collections.abc import Callable, Iterable
from html import escape
from pathlib import Path

HERE = Path(__file__).parent
WIDTH = 560
INK, FAINT, GROUND = "#222222", "#8a8a8a", "#fdfdfb"
BLUE, ORANGE, RED, GREEN, SKY, PURPLE = "#0072B2", "#E69F00", "#D55E00", "#009E73", "#56B4E9", "#CC79A7"

# By the small example of concepts.md: what is proved after each round, and what the round measured.
BREADS_GAPS = (24.00, 19.82, 7.95, 3.99, 0.66, 0.60, 0.60, 0.60, 0.55, 0.53, 0.52, 0.46)
BREADS_TASTED = (10, 10, 14, 27, 8, 5, 3, 12, 9, 4, 3, 3)


def number(value: float) -> str:
    """A coordinate with at most one decimal."""
    return f"{value:.1f}".removesuffix(".0")


def text(
    x: float, y: float, words: str, *, colour: str = INK, anchor: str = "start", size: int = 15, bold: bool = False
) -> str:
    weight = ' font-weight="bold"' if bold else ""
    place = f'x="{number(x)}" y="{number(y)}" fill="{colour}" text-anchor="{anchor}" font-size="{size}"'
    return f"<text {place}{weight}>{escape(words)}</text>"


def line(x1: float, y1: float, x2: float, y2: float, *, colour: str = INK, width: float = 1.5, dash: str = "") -> str:
    ends = f'x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" y2="{number(y2)}"'
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<line {ends} stroke="{colour}" stroke-width="{number(width)}"{dashed}/>'


def dot(x: float, y: float, radius: float, colour: str, *, hollow: bool = False) -> str:
    fill = f'fill="{GROUND}" stroke="{colour}" stroke-width="2"' if hollow else f'fill="{colour}"'
    return f'<circle cx="{number(x)}" cy="{number(y)}" r="{number(radius)}" {fill}/>'


def box(x: float, y: float, width: float, height: float, colour: str, *, opacity: float = 1.0) -> str:
    place = f'x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"'
    return f'<rect {place} fill="{colour}" fill-opacity="{opacity:g}"/>'


def path(points: Iterable[tuple[float, float]], colour: str, *, width: float = 2.0, dash: str = "") -> str:
    places = " ".join(f"{number(x)},{number(y)}" for x, y in points)
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="{number(width)}"{dashed}/>'


def arrow(x1: float, y1: float, x2: float, y2: float, *, colour: str = INK) -> str:
    """A line with a head at its second end."""
    angle = math.atan2(y2 - y1, x2 - x1)
    sides = [(x2 - 10 * math.cos(angle + turn), y2 - 10 * math.sin(angle + turn)) for turn in (0.45, -0.45)]
    return line(x1, y1, x2, y2, colour=colour) + path([sides[0], (x2, y2), sides[1]], colour, width=1.5)


def bell(seed: int, count: int) -> list[float]:
    """Nearly normal numbers, the same on every machine."""
    rng = random.Random(seed)
    return [sum(rng.random() for _ in range(12)) - 6.0 for _ in range(count)]


def measurement() -> tuple[int, list[str]]:
    """Candidates, their unknown means, and noisy measurements around them."""
    means = {"wheat": 408.0, "spelt": 376.0, "rye": 205.0}
    drawn = [text(20, 28, "A measurement strays from the mean of its candidate", bold=True)]
    best = max(means.values())
    drawn += [
        box(best - 50, 46, 50, 196, SKY, opacity=0.3),
        text(best - 25, 262, "within epsilon of the best", anchor="middle"),
    ]
    for row, (name, mean) in enumerate(means.items()):
        y = 85 + 62 * row
        drawn += [text(20, y + 5, name), line(90, y, 540, y, colour=FAINT, width=1)]
        drawn += [dot(mean + 36 * stray, y, 4.5, BLUE) for stray in bell(row + 3, 7)]
        drawn += [line(mean, y - 22, mean, y + 22, colour=RED, width=3)]
    drawn += [arrow(90, 242, 540, 242), text(540, 234, "score", anchor="end")]
    drawn += [dot(30, 292, 4.5, BLUE), text(44, 297, "a measurement"), line(200, 283, 200, 301, colour=RED, width=3)]
    drawn += [text(212, 297, "its mean, which nobody sees; spelt is good enough too", size=13)]
    return 315, drawn


def rounds() -> tuple[int, list[str]]:
    """The bound falls: what the best so far may lack, after each round of the small example."""
    drawn = [text(20, 28, "Round by round less is in doubt", bold=True)]
    drawn += [text(20, 60, "round", colour=FAINT), text(110, 60, "the best so far is off by at most", colour=FAINT)]
    drawn += [text(540, 60, "tastings", colour=FAINT, anchor="end")]
    for row, (gap, tasted) in enumerate(zip(BREADS_GAPS, BREADS_TASTED, strict=True)):
        y, length, last = 88 + 32 * row, 75.0 * min(gap, 4.0), row == len(BREADS_GAPS) - 1
        drawn += [text(38, y + 5, str(row + 1)), text(530, y + 5, str(tasted), anchor="end")]
        drawn.append(line(110, y, 110 + length, y, colour=GREEN if last else BLUE, width=12))
        drawn.append(text(122 + length, y + 5, f"{gap:.2f}", size=13))
    y = 88 + 32 * len(BREADS_GAPS)
    drawn.append(line(110 + 75 * 0.5, 72, 110 + 75 * 0.5, y - 16, colour=RED, width=1))
    drawn += [text(110, y + 8, f"within 0.5: certified after {sum(BREADS_TASTED)} tastings", colour=INK, bold=True)]
    return y + 28, drawn


def embedding() -> tuple[int, list[str]]:
    """Many features become few numbers; measuring a few candidates then tells something about all."""
    rng = random.Random(4)
    drawn = [text(20, 28, "An embedding: many features become a few numbers", bold=True)]
    for row in range(9):
        for column in range(8):
            drawn.append(
                box(24 + 17 * column, 60 + 19 * row, 14, 15, BLUE, opacity=round(0.15 + 0.8 * rng.random(), 2))
            )
    drawn += [text(90, 252, "one row a candidate,", anchor="middle", size=13)]
    drawn += [text(90, 269, "one column a feature", anchor="middle", size=13)]
    drawn += [arrow(175, 145, 230, 145), line(250, 230, 540, 230, colour=FAINT), line(250, 230, 250, 50, colour=FAINT)]
    points = [
        (290, 190),
        (318, 205),
        (306, 150),
        (352, 178),
        (386, 132),
        (372, 205),
        (424, 160),
        (462, 112),
        (440, 196),
    ]
    measured = {0, 2, 5, 7}
    drawn += [arrow(300, 116, 372, 62, colour=RED), text(384, 62, "reward grows", colour=RED)]
    drawn += [
        dot(x, y, 9 if i in measured else 6, ORANGE if i in measured else BLUE) for i, (x, y) in enumerate(points)
    ]
    drawn += [dot(262, 252, 9, ORANGE), text(278, 257, "measured", size=13), dot(368, 252, 6, BLUE)]
    drawn += [text(380, 257, "known through them", size=13)]
    return 290, drawn


def evidence() -> tuple[int, list[str]]:
    """By how much each arm can be better than the candidate, batch by batch: its bound falls below epsilon, and 0."""
    drawn = [text(20, 28, "Evidence is a bound that falls, for each arm", bold=True)]
    left, right, low, none, unit = 70, 540, 292, 236, 100  # epsilon is one unit high

    def height(bound: float) -> float:
        return none - unit * bound

    drawn += [text(20, 50, "how much better than the candidate it can be", size=13, colour=FAINT)]
    drawn += [line(left, low, right, low), line(left, low, left, 62)]
    drawn += [box(left, height(1.0), right - left, unit, SKY, opacity=0.22)]
    drawn += [line(left, height(1.0), right, height(1.0), colour=RED, width=2, dash="8 4")]
    drawn += [text(left - 8, height(1.0) + 5, "epsilon", colour=RED, anchor="end", size=13)]
    drawn += [line(left, height(0.0), right, height(0.0), colour=INK, width=2)]
    drawn += [text(left - 8, height(0.0) + 5, "0", anchor="end", size=13)]
    changed = left + 56 * 3.5
    drawn += [line(changed, 62, changed, low, colour=FAINT, dash="3 4")]
    drawn += [text(changed + 6, 74, "another candidate: evidence goes on", size=13, colour=FAINT)]
    sketches = {
        "a far arm: out for good": (BLUE, "", 1, (1.5, 0.75, 0.15, -0.22, -0.38), (12, -4)),
        "the former candidate": (GREEN, "7 4", 4, (0.92, 0.78, 0.62, 0.5, 0.42), (-118, -24)),
        "the best arm": (PURPLE, "2 3", 2, (1.62, 1.52, 1.44, 1.2, 1.12, 0.97, 0.88), (-72, 26)),
    }
    for name, (colour, dash, first, bounds, (aside, up)) in sketches.items():
        points = [(left + 56 * (first + batch), height(bound)) for batch, bound in enumerate(bounds)]
        drawn += [path(points, colour, width=2.5, dash=dash), *(dot(x, y, 4, colour) for x, y in points)]
        x, y = points[-1]
        drawn.append(text(x + aside, y - up, name, size=13))
    drawn += [text(right, low + 20, "batches", anchor="end"), text(left, low + 20, "a sketch", colour=FAINT)]
    return 322, drawn


def misspecification() -> tuple[int, list[str]]:
    """A straight line is all that an embedding can say; how far the means stray is the misspecification."""
    drawn = [text(20, 28, "What the embedding cannot express is the misspecification", bold=True)]
    places = [80, 130, 180, 230, 280, 330, 380, 430, 480]
    line_at = {x: 215 - 0.32 * (x - 80) for x in places}
    strays = (8, -14, 16, -6, -20, 12, -18, 20, 6)
    band = 24
    ends = [(70.0, 218.2), (490.0, 83.8)]
    drawn.append(
        f'<polygon points="{" ".join(f"{number(x)},{number(y - band)}" for x, y in ends)} '
        f'{" ".join(f"{number(x)},{number(y + band)}" for x, y in reversed(ends))}" fill="{SKY}" fill-opacity="0.3"/>'
    )
    drawn += [path(ends, BLUE, width=2.5)]
    for x, stray in zip(places, strays, strict=True):
        drawn += [
            line(x, line_at[x], x, line_at[x] + stray, colour=ORANGE, width=3),
            dot(x, line_at[x] + stray, 6, INK),
        ]
    drawn += [text(300, 58, "means, which nobody sees", size=13), dot(288, 53, 6, INK)]
    drawn += [line(310, 236, 330, 236, colour=BLUE, width=2.5), text(338, 241, "best linear function", size=13)]
    drawn += [box(310, 252, 20, 14, SKY, opacity=0.4), text(338, 264, "allowed for in every width", size=13)]
    drawn += [line(70, 280, 490, 280, colour=FAINT), text(490, 300, "place along the embedding", anchor="end", size=13)]
    drawn += [line(70, 280, 70, 50, colour=FAINT), text(78, 58, "reward", size=13)]
    return 315, drawn


def peeking_walk() -> list[float]:
    """Sum of the first n measurements over sqrt(n), n = 1 to 1000, where the true mean is 0."""
    total, scores = 0.0, []
    for step, stray in enumerate(bell(PEEKING_SEED, 1000), 1):
        total += stray
        scores.append(total / math.sqrt(step))
    return scores


PEEKING_SEED, LIMIT = 196, 1.645  # a one-sided limit at 5 %


def peeking() -> tuple[int, list[str]]:
    """An average that is watched all the time passes a fixed limit sooner or later, though there is nothing to find."""
    drawn = [text(20, 28, "Keep looking, and you find what is not there", bold=True)]
    left, right, middle, unit = 60, 540, 165, 52

    def place(step: int) -> float:
        return left + (right - left) * math.log(step) / math.log(1000)

    scores = peeking_walk()
    shown = sorted({round(1000 ** (k / 260)) for k in range(261)})
    drawn += [line(left, middle, right, middle, colour=FAINT), line(left, 45, left, 225, colour=FAINT)]
    drawn += [text(left - 8, middle + 5, "0", anchor="end")]
    drawn += [line(left, middle - unit * LIMIT, right, middle - unit * LIMIT, colour=RED, width=2, dash="8 4")]
    drawn += [text(left + 8, middle - unit * LIMIT - 8, "limit for one look: 5 %", colour=RED, size=13)]
    drawn += [path([(place(n), middle - unit * scores[n - 1]) for n in shown], BLUE, width=1.8)]
    first = next(n for n, score in enumerate(scores, 1) if score > LIMIT)
    x, y = place(first), middle - unit * scores[first - 1]
    drawn += [dot(x, y, 8, ORANGE), text(x - 4, y - 14, "stop here: wrong", anchor="end", bold=True, size=13)]
    x, y = place(1000), middle - unit * scores[-1]
    drawn += [dot(x, y, 6, GREEN), text(x, y + 42, "the look that was planned: right", anchor="end", size=13)]
    drawn += [
        text(left, 246, "1", anchor="middle", size=13),
        text(right, 246, "1,000 measurements", anchor="end", size=13),
    ]
    drawn += [line(left, 225, right, 225, colour=FAINT)]
    return 262, drawn


FLOORS = (  # from the top; the folders and modules of a floor do not see each other
    (("surepick_server", "studies over HTTP, and their client"), ("surepick_bench", "experiments, data sets, theory")),
    (("cli", "commands"),),
    (("reports", "pages, figures"), ("testing", "checks of a policy"), ("analysis", "tables that exist")),
    (("integrations", "others' files"),),
    (("fastest", "functions, by rounds on this machine"),),
    (("certificates", "write, verify"), ("forecasts", "what it will cost")),
    (("find_best", "a loop around your measurement"), ("simulation", "a policy against an environment")),
    (("studies", "ask, tell, replay; logs"),),
    (("tuning", "gamma, norm and noise from a pilot"),),
    (("policies", "the algorithms"), ("environments", "hidden truths")),
    (("assumptions", "what is read of means afterwards"), ("questions", "what is asked, and when it is answered")),
    (("embeddings", "arms to vectors"), ("designs", "where to look"), ("estimators", "what follows")),
    (("tables", "files in and out"),),
    (("chunks", "rows too many for memory"),),
    (("linalg", "factorisations"), ("items", "test items")),
    (("noise", "what is assumed of a measurement"),),
    (("core", "arms, plans, observations, certificates; JSON"),),
    (("drawings", "what rounds say of candidates, as pictures and text"),),
    (("errors", "what is refused"),),
    (("text", "lines of words"),),
)
OUTSIDE = (
    "surepick_server",
    "surepick_bench",
    "integrations",
    "analysis",
    "cli",
    "reports",
    "certificates",
    "studies",
    "environments",
    "tables",
)  # with files, databases or a terminal


def house() -> tuple[int, list[str]]:
    """The folders of surepick, and the two packages above it, floor by floor: a floor imports those below it."""
    drawn = [text(20, 28, "The house: a floor imports the floors below it", bold=True)]
    left, right, top, high = 20, 516, 46, 42
    for number_of, floor in enumerate(FLOORS):
        y = top + high * number_of
        width = (right - left + 6) / len(floor)
        for place, (name, words) in enumerate(floor):
            x = left + width * place
            drawn.append(box(x, y, width - 6, high - 6, ORANGE if name in OUTSIDE else SKY, opacity=0.35))
            drawn += [text(x + 8, y + 16, name, bold=True, size=13), text(x + 8, y + 30, words, size=11)]
    bottom = top + high * len(FLOORS)
    drawn += [arrow(538, top, 538, bottom - 8), text(538, bottom + 8, "imports", anchor="middle", size=11)]
    drawn += [
        box(20, bottom + 8, 20, 14, ORANGE, opacity=0.35),
        text(48, bottom + 20, "files, databases, a terminal", size=13),
    ]
    drawn += [
        box(230, bottom + 8, 20, 14, SKY, opacity=0.35),
        text(258, bottom + 20, "pure functions and records", size=13),
    ]
    return bottom + 34, drawn


PICTURES: dict[str, Callable[[], tuple[int, list[str]]]] = {
    picture.__name__: picture
    for picture in (measurement, rounds, embedding, evidence, misspecification, peeking, house)
}


def svg(name: str) -> str:
    """The file of one picture."""
    height, drawn = PICTURES[name]()
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'font-family="Helvetica, Arial, sans-serif">'
    )
    return "\n".join([head, box(0, 0, WIDTH, height, GROUND), *drawn, "</svg>"]) + "\n"


if __name__ == "__main__":
    for each in PICTURES:
        (HERE / f"{each}.svg").write_text(svg(each), encoding="utf-8")
