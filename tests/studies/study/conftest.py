"""The policies that every test of studies is tried with."""

import pytest
from small_studies import OPTIONS


@pytest.fixture(params=sorted(OPTIONS))
def name(request) -> str:
    return request.param
