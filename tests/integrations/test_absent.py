"""An adapter without its package says how to get it, and surepick does without all of them."""

import sys
from importlib import import_module

import pytest


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [
        ("optuna", "optuna", "optuna"),
        ("sklearn", "sklearn.base", "sklearn"),
        ("ray", "ray", "ray"),
        ("gest", "gest_api.generator", "gest-api"),
    ],
)
def test_a_sentence_says_which_extra_brings_it(monkeypatch, module, package, extra):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"surepick.integrations.{module}", raising=False)
    with pytest.raises(ImportError, match=rf'is absent: pip install "surepick\[{extra}\]"'):
        import_module(f"surepick.integrations.{module}")
