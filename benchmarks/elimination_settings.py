"""What each departure from the paper's settings buys: own-stop pulls, one setting changed at a time.

    python benchmarks/elimination_settings.py [--seeds 5]

Every row is Algorithm 1 with the linear embedding; a row keeps the changes of the rows above it. "own stop" is what a
user pays; "oracle" is the paper's metric, pulls until only epsilon-best arms are left, which needs the truth.
"""

import argparse

import numpy as np

import surepick as sp

EPSILON, DELTA = 0.1, 0.05
STEPS = (
    ("paper settings, sigma 1", {}),
    ("+ the noise's own sigma", {}),
    ("+ delta/(k(k+1)), floor evaluated", {"schedule": "convergent", "floor": "support"}),
    ("+ row-tail bound, cheapest d", {"bound": "row-tail", "dimension": "cheapest"}),
    ("+ union over S - 1 events", {"union": "best-pairs"}),
    ("+ epsilon-stop on realised widths", {"stopping": "certified"}),
    ("+ 8 looks a round", {"looks": 8}),
    ("+ checks, 5 % reserved (the default)", {"reserve": 0.05}),
)


def two_clusters(seed):
    return sp.environments.two_clusters(num_arms=250, dim=25, reward="linear", seed=seed), 0.9


def perturbed(seed):
    return sp.environments.two_clusters(num_arms=250, dim=25, reward="linear", perturbation=1e-3, seed=seed), 0.9


def sphere(seed):
    return sp.environments.sphere(100, 10, seed), 1.0


def digits(seed):
    return sp.environments.digits(seed), 2.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    seeds = range(parser.parse_args().seeds)
    makers = (two_clusters, perturbed, sphere, digits)
    print(f"{'':38s}" + "".join(f"{make.__name__:>26s}" for make in makers))
    settings = sp.paper_settings("linear-embedding")
    for number, (label, change) in enumerate(STEPS):
        settings |= change
        cells = [cell(make, settings, believed=number > 0, seeds=seeds) for make in makers]
        print(f"{label:38s}" + "".join(f"{text:>26s}" for text in cells), flush=True)


def cell(make, settings, *, believed, seeds) -> str:
    own, oracle, wrong = [], [], 0
    for seed in seeds:
        environment, norm_bound = make(seed)
        noise = environment.noise if believed else sp.SubGaussian(1.0)
        policy = sp.make_policy(
            "linear-embedding",
            environment.arms,
            epsilon=EPSILON,
            delta=DELTA,
            noise=noise,
            norm_bound=norm_bound,
            **settings,
        )
        run = sp.simulate(policy, environment, seed=seed)
        own.append(run.pulls)
        oracle.append(np.nan if run.oracle_pulls is None else run.oracle_pulls)
        wrong += not run.success
    text = f"{np.mean(own):,.0f}"
    if np.isfinite(oracle).any():
        text += f" ({np.nanmean(oracle):,.0f} oracle)"
    return text + (f" {wrong} WRONG" if wrong else "")


if __name__ == "__main__":
    main()
