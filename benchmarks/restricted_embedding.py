"""Does it save pulls to embed only the arms that are left, and to pull only those?

    python benchmarks/restricted_embedding.py [--seeds 3]

For each environment a default run of Algorithm 1 is followed; at the start of every round after the first, the pulls
that the round needs are predicted twice: with the embedding of all arms and pulls of any arm, and with the embedding
built anew on the arms that are left and pulls of those only (the paper's footnote). Printed: the second over the
first, 1 meaning no difference and more than 1 meaning that restricting costs pulls.
"""

import argparse

import numpy as np

import surepick as sp
from surepick.policies.dimension import cheapest_dimension, round_cost
from surepick.policies.paper.arm_elimination import AdaptiveDimension, ArmElimination


def environments(seed):
    yield "two clusters", sp.environments.two_clusters(num_arms=250, dim=25, seed=seed), "linear-embedding", 0.9
    perturbed = sp.environments.two_clusters(num_arms=250, dim=25, perturbation=1e-2, seed=seed)
    yield "perturbed by 1e-2", perturbed, "linear-embedding", 0.9
    yield "sphere 100 x 10", sp.environments.sphere(100, 10, seed), "linear-embedding", 1.0
    yield "sphere, kernel", sp.environments.sphere(100, 10, seed), "kernel-embedding", 3.0
    yield "digits", sp.environments.digits(seed), "linear-embedding", 2.0


def embedding(name, features, norm_bound):
    if name == "kernel-embedding":
        return sp.KernelEmbedding(features, kernel=sp.GaussianKernel(0.1), norm_bound=norm_bound)
    return sp.LinearEmbedding(features, norm_bound=norm_bound)


def cost(embedded, active, accuracy) -> tuple[float, int]:
    choice = cheapest_dimension(embedded, active, accuracy)
    gamma = embedded.misspecification(choice.dim)
    return round_cost(gamma, choice.design.value, accuracy, 0.1), choice.dim


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    found: dict[str, list[str]] = {}
    for seed in range(parser.parse_args().seeds):
        for label, environment, name, norm_bound in environments(seed):
            whole = embedding(name, environment.arms.features, norm_bound)
            problem = sp.Problem(environment.num_arms, epsilon=0.1, delta=0.05, noise=environment.noise)
            policy = ArmElimination(problem, whole, AdaptiveDimension(), looks=1, stopping="rounds")
            run = sp.simulate(policy, environment, seed=seed)
            for before, after in zip(run.rounds, run.rounds[1:], strict=False):
                left = before.active
                if len(left) < 2 or len(left) == environment.num_arms:
                    continue
                accuracy = policy.rounds.accuracy(after.round)
                full, full_dim = cost(whole, left, accuracy)
                part = embedding(name, environment.arms.features[left], norm_bound)
                restricted, part_dim = cost(part, np.arange(len(left)), accuracy)
                text = (
                    f"{restricted / full:.2f} (d {part_dim} for {full_dim}, {len(left)} left)"
                    if full > 0
                    else "0 pulls"
                )
                found.setdefault(label, []).append(text)
    for label, texts in found.items():
        print(f"{label:20s} " + "; ".join(texts))


if __name__ == "__main__":
    main()
