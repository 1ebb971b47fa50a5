"""A study, and a program that measures for it."""

import pytest
from run_study_lab import Lab


@pytest.fixture
def lab(sqlite_url, tmp_path) -> Lab:
    lab = Lab(sqlite_url, tmp_path)
    lab.create()
    lab.program()
    return lab
