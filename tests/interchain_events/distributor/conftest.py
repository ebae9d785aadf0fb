"""The stores of a distributor, each empty."""

from collections.abc import Iterator

import pytest

from interchain_events.distributor.once import Store, open_store

_LASTING = ("sqlite", "postgres", "redis")


def _place(request: pytest.FixtureRequest) -> str:
    if request.param == "sqlite":
        return f"sqlite:{request.getfixturevalue('tmp_path') / 'once.db'}"
    return (
        "memory:"
        if request.param == "memory"
        else str(request.getfixturevalue(f"{request.param}_url"))
    )


@pytest.fixture(params=_LASTING)
def address(request: pytest.FixtureRequest) -> str:
    return _place(request)


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    opened = open_store(address)
    yield opened
    opened.close()


@pytest.fixture(params=("memory", *_LASTING))
def any_store(request: pytest.FixtureRequest) -> Iterator[Store]:
    opened = open_store(_place(request))
    yield opened
    opened.close()
