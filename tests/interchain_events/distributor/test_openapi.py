"""The description of the interface, attacked: no answer is outside of it, and nothing is a defect
(ID-2).
"""

from collections.abc import Iterator

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from support.distributor.stage import stage
from support.plumbing.examples import scaled
from support.plumbing.told import beside

from interchain_events.distributor.event import (
    MOST_METADATA,
    MOST_METADATUM,
    MOST_NUMBER,
    MOST_TYPE,
)
from interchain_events.distributor.service.addresses import MOST_URL
from interchain_events.distributor.service.openapi import document
from interchain_events.distributor.service.requests import (
    MOST_INTEREST_METADATA,
    MOST_LIMIT,
    MOST_MS,
    MOST_SECRET,
    MOST_TYPES,
)

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


@pytest.fixture(scope="module")
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A distributor or an adapter, as the test's parameter says.

    The parameter also makes the tests' ids unique.
    """
    with beside(lambda: stage(tmp_path_factory.mktemp("openapi"))) as made:
        yield made.url if request.param == "distributor" else made.adapters["a"]


schema = schemathesis.openapi.from_dict(document(distributor=True)).exclude(path_regex="^/api/v1/")
adapter_schema = schemathesis.openapi.from_dict(document(distributor=False)).exclude(
    path_regex="^/api/v1/"
)


@pytest.mark.parametrize("url", ["distributor"], indirect=True)
@schema.parametrize()
@settings(max_examples=scaled(8), suppress_health_check=list(HealthCheck))
def test_id10_every_answer_is_as_the_description_says(case: schemathesis.Case, url: str) -> None:
    case.call_and_validate(base_url=url, checks=CHECKS, timeout=60)


@pytest.mark.parametrize("url", ["adapter"], indirect=True)
@adapter_schema.parametrize()
@settings(max_examples=scaled(5), suppress_health_check=list(HealthCheck))
def test_id10_every_answer_of_an_adapter_is_as_its_description_says(
    case: schemathesis.Case, url: str
) -> None:
    case.call_and_validate(base_url=url, checks=CHECKS, timeout=60)


def test_id10_both_versions_have_the_same_operations() -> None:
    paths = document(distributor=True)["paths"]
    first = {path.removeprefix("/api/v1") for path in paths if path.startswith("/api/v1")}
    second = {path.removeprefix("/api/v2") for path in paths if path.startswith("/api/v2")}
    assert first == second
    assert len(first) == 8


def test_id11_limits_of_the_description_are_those_of_the_program() -> None:
    schemas, events = document(distributor=True)["components"]["schemas"], "/api/v2/events"
    event, wish = schemas["Publication"]["properties"], schemas["Interest"]["properties"]
    assert (event["eventType"]["maxLength"], event["relevantMetadata"]["maxItems"]) == (
        MOST_TYPE,
        MOST_METADATA,
    )
    assert event["relevantMetadata"]["items"]["maxLength"] == MOST_METADATUM
    assert (wish["eventTypes"]["maxItems"], wish["metadata"]["maxItems"]) == (
        MOST_TYPES,
        MOST_INTEREST_METADATA,
    )
    assert (wish["notificationEndpoint"]["maxLength"], wish["secret"]["maxLength"]) == (
        MOST_URL,
        MOST_SECRET,
    )
    assert schemas["Event"]["properties"]["id"]["maximum"] == MOST_NUMBER
    asked = {
        each["name"]: each["schema"]
        for each in document(distributor=True)["paths"][events]["get"]["parameters"]
    }
    assert (asked["startDate"]["maximum"], asked["limit"]["maximum"]) == (MOST_MS, MOST_LIMIT)
