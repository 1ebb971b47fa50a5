"""How long certificates and reports take, and how large they are: OMP_NUM_THREADS=1 python benchmarks/certificates.py

For each policy a study of K candidates is simulated, its certificate made, written and verified, its report written;
times are medians of three.

    python benchmarks/certificates.py [--arms 1000] [--plans 40]
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import surepick as sp
from surepick.certificates.document import certificate_document, write_document
from surepick.certificates.verify import verify_certificate
from surepick.core.random_streams import stream

POLICIES = {
    "certified-linear": {"norm_bound": 1.0},
    "certified-independent": {},
    "certified-kernel": {"norm_bound": 3.0, "gamma": 0.5},
    "linear-embedding": {"norm_bound": 1.0},
    "action-elimination": {"growth": 0.2},
}


def study_of(name: str, num_arms: int, most_plans: int) -> sp.Study:
    """A study of that policy on uniform arms in ten dimensions, up to its end or to so many plans."""
    world = sp.environments.sphere(num_arms=num_arms, dim=10, seed=0)
    policy = sp.make_policy(name, world.arms, epsilon=0.4, delta=0.05, noise=world.noise, **POLICIES[name])
    study = sp.Study(world.arms, policy)
    for number in range(most_plans):
        plan = study.ask()
        if plan is None:
            break
        seen = world.pull(plan.counts, stream(0, "certificates", number))
        study.tell_totals(study.ids, seen.counts, seen.sums, seen.squares)
    return study


def seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """The median time of a piece of work."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def row(name: str, num_arms: int, most_plans: int, folder: Path) -> str:
    """What one policy takes, as a row of the table."""
    started = time.perf_counter()
    study = study_of(name, num_arms, most_plans)
    simulated = time.perf_counter() - started
    document = certificate_document(study)
    file = write_document(document, folder / "certificate.json")
    page = sp.write_report(study, folder / "report.html", forecast_up_to=0)
    plans = sum(len(entry["looks"]) for entry in document["rounds"])
    made = seconds(lambda: certificate_document(study))
    text = file.read_text(encoding="utf-8")
    checked = seconds(lambda: verify_certificate(json.loads(text)))
    shown = seconds(lambda: sp.write_report(study, folder / "report.html", forecast_up_to=0))
    if not verify_certificate(file).holds:
        raise SystemExit(f"{name}: the certificate does not hold")
    sizes = f"{file.stat().st_size / 1e6:8.2f} {page.stat().st_size / 1e6:10.2f}"
    times = f"{simulated:9.1f} {made:8.2f} {checked:8.2f} {shown:8.2f}"
    return f"{name:<22} {document['verdict']:<12} {plans:>5} {times} {sizes}   {document['reproduced']}"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--arms", type=int, default=1000)
    arguments.add_argument("--plans", type=int, default=40, help="most plans of a study")
    arguments.add_argument("--policies", default=",".join(POLICIES))
    given = arguments.parse_args()
    print(f"{given.arms:,} candidates; seconds, and megabytes; plans: judged, and of these computed again by verify")
    print("policy                 verdict      plans simulated    make   verify   report     JSON       HTML   again")
    with tempfile.TemporaryDirectory() as folder:
        for name in given.policies.split(","):
            print(row(name, given.arms, given.plans, Path(folder)), flush=True)


if __name__ == "__main__":
    main()
