"""Xopt runs the generator of gest-api as its own."""

import numpy as np
import pytest

pytest.importorskip("gest_api", reason='pip install "surepick[gest-api]"')
xopt = pytest.importorskip("xopt", reason="make integrations")
pytestmark = pytest.mark.filterwarnings("ignore")  # those of its packages are not ours


def test_xopt_steps_until_the_best_is_certified():
    from gest_api.vocs import VOCS
    from xopt.stopping_conditions import MaxEvaluationsCondition

    from surepick.integrations.gest import CertifiedGenerator

    rng = np.random.default_rng(0)

    def evaluate(point):
        return {"f": (point["a"] - 2) ** 2 + 0.5 * point["b"] + rng.normal(0.0, 0.1)}

    vocs = VOCS(variables={"a": {1, 2, 3}, "b": {0, 1}}, objectives={"f": "MINIMIZE"})
    generator = CertifiedGenerator(vocs, epsilon=0.2, noise="subgaussian:0.1")
    evaluator = xopt.Evaluator(function=evaluate, max_workers=2, executor=xopt.evaluator.DummyExecutor())
    most = MaxEvaluationsCondition(max_evaluations=1000)
    run = xopt.Xopt(generator=generator, evaluator=evaluator, stopping_condition=most)
    while not generator.finished:
        run.step()
    assert generator.best_point() == {"a": 2, "b": 0}
    assert generator.certificate().verdict == "certified"
    assert len(run.data) >= generator.certificate().pulls
