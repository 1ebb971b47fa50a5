"""What whole pulls cost: realised excess of the apportionment beside its bound: `python benchmarks/rounding.py`."""

from __future__ import annotations

import numpy as np

from surepick.designs import design_value, round_design, solve_design

MULTIPLES = (1.25, 1.5, 2.0, 3.0, 5.0, 11.0, 21.0)


def main() -> None:
    print("excess N max||y||^2 / value - 1 at N = m p (p the support), and its bound p/(N - p)")
    print(f"{'instance':16s} {'p':>4s} " + " ".join(f"{f'm={m:g}':>8s}" for m in MULTIPLES) + "   excess/bound")
    for num_arms, dim in ((250, 2), (200, 5), (200, 10), (200, 20), (500, 25), (1000, 25)):
        rows = []
        for seed in range(5):
            features = np.random.default_rng(seed).standard_normal((num_arms, dim))
            design = solve_design(features)
            support = int(np.count_nonzero(design.weights))
            totals = [int(np.ceil(m * support)) for m in MULTIPLES]
            excess = [n * design_value(features, round_design(design.weights, n)) / design.value - 1 for n in totals]
            rows.append([support, *excess, *(e * (n - support) / support for e, n in zip(excess, totals, strict=True))])
        mean = np.mean(rows, axis=0)
        share = mean[1 + len(MULTIPLES) :].mean()
        body = " ".join(f"{e:8.2%}" for e in mean[1 : 1 + len(MULTIPLES)])
        print(f"{f'{num_arms} x {dim}':16s} {mean[0]:4.0f} {body}   {share:6.2f}")
    print(f"{'bound':21s} " + " ".join(f"{1 / (m - 1):8.2%}" for m in MULTIPLES))


if __name__ == "__main__":
    main()
