"""Studies with every kind of row, and dumps of their databases."""

import numpy as np
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

import surepick as sp
from surepick.studies.logs.sql.schema import VERSION_TABLE, metadata

ARMS = sp.Arms([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6], [-0.4, 0.3]], ["a", "b", "c", "d"], columns=["x", "y"])


MEANS = np.array([0.9, 0.2, 0.66, -0.3])


def make_policy(name: str, **options):
    """By the rule of the released dumps; its first plans ask for every arm."""
    options = {"evidence": "epochs", **options} if name.startswith("certified-") else options
    return sp.make_policy(name, ARMS, epsilon=0.3, delta=0.05, noise=sp.SubGaussian(0.5), **options)


def tell_plan(study) -> None:
    """All that is missing of the open plan."""
    plan = study.ask()
    arms = np.repeat(np.arange(4), study.missing)
    study.tell([ARMS.ids[arm] for arm in arms], MEANS[arms] + 0.3 * np.cos(np.arange(len(arms)) + plan.round))


def finish(study) -> sp.Certificate:
    for _ in range(200):
        if study.ask() is None:
            break
        tell_plan(study)
    assert study.stopped
    return study.certificate()


def unfinished(url: str):
    """Leases, a failure, late and prior results, repeated keys, abandoned pulls, and an open plan that is half told."""
    study = sp.create_study(url, "unfinished", ARMS, make_policy("certified-independent"), minimize=True)
    keys = study.lease(worker="w", duration="1h").keys()
    study.fail([keys[0][0]], [keys[0][1]], worker="w")
    again = study.lease(worker="v", max_pulls=1, duration="1h").keys()
    rows = [*keys[1:], *again]
    study.tell([name for name, _ in rows], [0.1 * place for place in range(len(rows))], [key for _, key in rows])
    study.tell([keys[0][0]], [7.0], [keys[0][1]], worker="w")
    study.tell_prior(["d"], [0.5], ["before"])
    study.ask()
    study.abandon("independent-of-value", ["d"])
    tell_plan(study)
    plan = study.ask()
    most = int(np.argmax(plan.counts))
    study.tell_totals([ARMS.ids[most]], [plan.counts[most] - 1], [0.4 * (plan.counts[most] - 1)])
    tell_plan(study)
    study.lease(worker="w", max_pulls=2, duration="2d")
    study.tell([study.ask().ids[0]], [0.0], ["half"])
    return study


def differences(connection, expected=metadata) -> list:
    options = {"version_table": VERSION_TABLE, "compare_type": True, "compare_server_default": True}
    return compare_metadata(MigrationContext.configure(connection, opts=options), expected)
