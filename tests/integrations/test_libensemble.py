"""libEnsemble runs the generator of gest-api with two workers."""

import numpy as np
import pytest

pytest.importorskip("gest_api", reason='pip install "surepick[gest-api]"')
pytest.importorskip("libensemble", reason="make integrations")
pytestmark = pytest.mark.filterwarnings("ignore")  # those of its packages are not ours


def evaluate(point):
    return {"f": (point["a"] - 2) ** 2 + 0.5 * point["b"] + np.random.default_rng().normal(0.0, 0.1)}


def test_libensemble_ends_with_a_certificate(tmp_path, monkeypatch):
    from gest_api.vocs import VOCS
    from libensemble import Ensemble
    from libensemble.alloc_funcs.start_only_persistent import only_persistent_gens
    from libensemble.specs import AllocSpecs, ExitCriteria, GenSpecs, LibeSpecs, SimSpecs

    from surepick.integrations.gest import CertifiedGenerator

    monkeypatch.chdir(tmp_path)
    vocs = VOCS(variables={"a": {1, 2, 3}, "b": {0, 1}}, objectives={"f": "MINIMIZE"})
    generator = CertifiedGenerator(vocs, epsilon=0.2, noise="subgaussian:0.1", when_finished="repeat")
    ensemble = Ensemble(
        parse_args=False,
        libE_specs=LibeSpecs(nworkers=2, comms="threads", disable_log_files=True),
        gen_specs=GenSpecs(generator=generator, vocs=vocs, initial_batch_size=4, batch_size=2),
        sim_specs=SimSpecs(simulator=evaluate, vocs=vocs),
        alloc_specs=AllocSpecs(alloc_f=only_persistent_gens),
        exit_criteria=ExitCriteria(sim_max=60),
    )
    rows, _, flag = ensemble.run()
    assert (flag, len(rows) >= 60) == (0, True)
    assert generator.best_point() == {"a": 2, "b": 0}
    assert generator.certificate().verdict == "certified"
