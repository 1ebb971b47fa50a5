"""Questions about results that stand out: how many honest ones are asked about, and how many slips are caught.

    python benchmarks/slips.py honest [CALLS]     opening calls and repeats, for many laws of the means
    python benchmarks/slips.py caught [STUDIES]   studies in which one result in 20 is mistyped by a factor of 10

Decision 41 has what it printed.
"""

import sys
import warnings
from collections import Counter

import numpy as np

import surepick as sp
from surepick.errors import UnusualResult
from surepick.noise import parse_noise
from surepick.studies.logs.base import Results
from surepick.studies.slips import unusual

MEANS = {  # of K candidates, in scales of the noise
    "57 to 79, scale 3": lambda rng, k: rng.uniform(19.0, 26.3, k),
    "normal around 0, sd 10": lambda rng, k: 10.0 * rng.normal(size=k),
    "normal around 20, sd 5": lambda rng, k: 20.0 + 5.0 * rng.normal(size=k),
    "uniform 0 to 100": lambda rng, k: rng.uniform(0.0, 100.0, k),
    "exponential, mean 30": lambda rng, k: rng.exponential(30.0, k),
    "log-normal, sd .5": lambda rng, k: 30.0 * np.exp(0.5 * rng.normal(size=k)),
    "log-normal, sd 1": lambda rng, k: 30.0 * np.exp(rng.normal(size=k)),
    "log-normal, sd 2": lambda rng, k: 30.0 * np.exp(2.0 * rng.normal(size=k)),
    "Cauchy, width 30": lambda rng, k: 30.0 * rng.standard_cauchy(k),
    "t with 3 degrees around 50": lambda rng, k: 50.0 + 20.0 * rng.standard_t(3, k),
    "two groups, 20 and 200": lambda rng, k: rng.choice([20.0, 200.0], k) + rng.normal(size=k),
    "one at 790 among 57 to 79": lambda rng, k: np.append(rng.uniform(19.0, 26.3, k - 1), 263.0),
}
NOISES = {
    "normal": lambda rng, n: rng.normal(size=n),
    "uniform": lambda rng, n: rng.uniform(-1.0, 1.0, n),
    "signs": lambda rng, n: rng.choice([-1.0, 1.0], n),
    "heavy within the bounds": lambda rng, n: rng.choice([0.0, 1.0, -1.0], n, p=[0.98, 0.01, 0.01]),
    "skewed": lambda rng, n: 2.0 * ((rng.random(n) < 0.1) - 0.1),
}


def rows_of(arms, values) -> Results:
    values = np.asarray(values, np.float64)
    return Results(np.asarray(arms), np.ones(len(values), np.int64), values, values**2)


def honest(calls: int) -> None:
    rng = np.random.default_rng(0)
    print(
        f"asked about, of 1,000,000 honest results: first results of all candidates in one call, {calls:,} calls each"
    )
    for name, means in MEANS.items():
        cells = []
        for k in (6, 8, 12, 30):
            asked = 0
            for _ in range(calls):
                values = means(rng, k) + rng.normal(size=k)
                asked += len(unusual(parse_noise("subgaussian:1"), k, None, [], rows_of(range(k), values)))
            cells.append(f"K={k}: {1e6 * asked / (calls * k):,.0f}")
        print(f"    {name}: {', '.join(cells)}")
    print("asked about, of 1,000,000 honest results beside repeats (6 candidates, 2 to 12 results of each in one call)")
    for spec in ("subgaussian:1", "normal"):
        for name, noise in NOISES.items():
            asked = total = 0
            for _ in range(calls):
                arms = np.repeat(np.arange(6), rng.integers(2, 13, 6))
                values = 20.0 * rng.normal(size=6)[arms] + noise(rng, len(arms))
                asked += len(unusual(parse_noise(spec), 6, None, [], rows_of(arms, values)))
                total += len(arms)
            print(f"    {spec}, noise {name}: {asked} of {total:,}")


def caught(studies: int) -> None:
    """Per study: results are told by one person, call by call of a round; a slip that is asked about is corrected."""
    warnings.simplefilter("ignore")
    for name in ("57 to 79, scale 3", "normal around 20, sd 5", "uniform 0 to 100"):
        found: Counter[str] = Counter()
        for seed in range(studies):
            rng = np.random.default_rng(seed)
            means = dict(zip((ids := [f"c{one}" for one in range(10)]), MEANS[name](rng, 10), strict=True))
            policy = sp.make_policy(
                "certified-independent", sp.Arms(ids=ids), epsilon=2.0, delta=0.05, noise="subgaussian:1"
            )
            one_study(sp.Study(policy), means, rng, found)
        slips, first = max(found["slips"], 1), max(found["first"], 1)
        print(f"    {name}: {found['slips']:,} slips of more than 10 scales in {studies:,} studies")
        later = found["later"] / slips
        print(f"        asked about on entry {found['caught'] / slips:.2%}, with a later result {later:.2%}")
        share, caught_first = first / slips, found["first caught"] / first
        print(f"        {share:.0%} are first results of a candidate: on entry {caught_first:.2%}")
        beside = (found["caught"] - found["first caught"]) / max(slips - first, 1)
        print(f"        the others are beside repeats: on entry {beside:.2%}")
        print(f"        honest results that were asked about: {found['false']} of {found['honest']:,}, and")
        print(f"        {found['beside a slip']} that lie beside a slip of the same candidate or call")


def one_study(study, means, rng, found) -> None:
    seen: set[str] = set()
    wrong: set[str] = set()  # candidates with a slip that stayed
    known_wrong: set[str] = set()  # those that were asked about since
    while (batch := study.ask()) is not None and len(study.trace) < 40:
        ids = batch.pulls()
        right = np.array([means[one] + rng.normal() for one in ids])
        typed, slipped = right.copy(), rng.random(len(ids)) < 0.05
        typed[slipped] *= rng.choice([10.0, 0.1], int(slipped.sum()))
        large = slipped & (np.abs(typed - right) > 10.0)
        typed = np.where(large, typed, right)
        fresh = np.array([one not in seen and one not in ids[:place] for place, one in enumerate(ids)])
        found["slips"] += int(large.sum())
        found["first"] += int((large & fresh).sum())
        found["honest"] += int((~large).sum())
        left = large.copy()
        while True:
            try:
                study.tell(batch, typed)
            except UnusualResult as question:
                rows = list(question.rows)
                known, asked = [row for row in rows if left[row]], set()
                found["caught"] += len(known)
                found["first caught"] += sum(bool(fresh[row]) for row in known)
                for row in rows:
                    if not left[row]:
                        found["beside a slip" if ids[row] in wrong | known_wrong or left.any() else "false"] += 1
                        asked.add(ids[row])
                found["later"] += len(asked & wrong)
                wrong -= asked
                known_wrong |= asked
                typed[known], left[known] = right[known], False
                if not known:
                    study.tell(batch, typed, accept_unusual=True)
                    break
            else:
                break
        seen.update(ids)
        wrong.update(ids[row] for row in np.flatnonzero(left))


if __name__ == "__main__":
    {"honest": honest, "caught": caught}[sys.argv[1]](int(sys.argv[2]) if len(sys.argv) > 2 else 2_000)
