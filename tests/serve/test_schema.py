"""The API does what its description says, whatever is sent: drawn requests of each group of routes.

What is valid by the description may still be refused with a sentence: no schema says which policy goes with a noise.
"""

import hypothesis
import pytest
import schemathesis
from budgets import budget
from schemathesis.specs.openapi.checks import positive_data_acceptance
from server_studies import make_study
from servers import serving, token_for

from surepick_server.api.routing import API

GROUPS = ("studies", "measuring", "documents", "tokens", "webhooks")
SIZES = [budget(50), pytest.param(2_000, marks=pytest.mark.slow)]


@pytest.mark.parametrize("cases", SIZES)
@pytest.mark.parametrize("group", GROUPS)
def test_nothing_that_is_sent_makes_the_server_fail(sqlite_url, group, cases):
    make_study(sqlite_url, "paint")
    with serving(sqlite_url, requests_a_minute=10**9, logins_a_minute=10**9) as client:
        header, failures = token_for(client, "ann", "admin"), []
        schema = schemathesis.openapi.from_dict(client.get(f"{API}/openapi.json").json())
        schema.config.update(base_url=str(client.base_url))
        operations = [one.ok() for one in schema.include(tag=group).get_all_operations()]
        assert operations
        for operation in operations:
            try:
                try_out(operation, header, max(1, cases // len(operations)))
            except Exception as error:
                failures.append(f"{operation.label}: {error}"[:3000])
    assert not failures, "\n\n".join(failures)


def try_out(operation, header, cases):
    """Send so many drawn requests, and compare the answers with the description."""

    @hypothesis.settings(
        max_examples=cases,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(case=operation.as_strategy())
    def called(case):
        case.path_parameters = {**case.path_parameters, **({"name": "paint"} if goes_to_one(case) else {})}
        case.validate_response(case.call(headers=header), excluded_checks=[positive_data_acceptance], headers=header)

    called()


def goes_to_one(case):
    """Half of the requests go to a study that there is."""
    return "name" in case.path_parameters and len(str(case.path_parameters["name"])) % 2 == 0
