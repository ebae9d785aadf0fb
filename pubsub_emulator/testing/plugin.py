"""The pytest plugin: fixtures, a marker, an option, and the report of failing tests.

Importing this module does not import the emulator, so that test runs that do not use it stay fast.
"""

from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from pubsub_emulator.emulator.network import Network
    from pubsub_emulator.emulator.network.parachain import Parachain
    from pubsub_emulator.emulator.relay.chain import RelayChain
    from pubsub_emulator.emulator.scenario.simulation import Simulation
    from pubsub_emulator.primitives.types import ParaId
    from pubsub_emulator.testing.actors import Cheats, Collators
    from pubsub_emulator.testing.networks import Frozen, Networks
    from pubsub_emulator.testing.proof_sizes import ProofSnapshot

MARKER: Final = "pubsub_scenario"
UPDATE: Final = "--proof-snapshot-update"
"""The option that writes snapshots."""

_NETWORKS: Final = pytest.StashKey["Networks"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of `proof_snapshot`."""
    group = parser.getgroup("pubsub", "publish-subscribe emulator")
    description = "write the files of `proof_snapshot` instead of checking them"
    group.addoption(UPDATE, action="store_true", default=False, help=description)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, so that `--strict-markers` knows it."""
    config.addinivalue_line(
        "markers",
        f"{MARKER}(file, blocks=None): pubsub_simulation and pubsub_network are this scenario after"
        " so many relay blocks, or at its end; a .toml file beside the test or below the root"
        " folder, or the name of a bundled one",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the last blocks of a failed test's networks to its report."""
    report = yield
    networks = item.config.stash.get(_NETWORKS, None)
    if report.failed and networks is not None:
        report.sections.extend(networks.watch.sections())
    return report


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Forget the test's networks."""
    networks = item.config.stash.get(_NETWORKS, None)
    if networks is not None:
        networks.watch.clear()


@pytest.fixture(scope="session")
def pubsub_networks(pytestconfig: pytest.Config) -> "Iterator[Networks]":
    """Build and store the networks of tests: `of`, `build`, `scenario`, `freeze`."""
    from pubsub_emulator.testing.networks import Networks

    pytestconfig.stash[_NETWORKS] = Networks()
    yield pytestconfig.stash[_NETWORKS]
    del pytestconfig.stash[_NETWORKS]


@pytest.fixture(scope="session")
def pubsub_base(pubsub_networks: "Networks") -> "Frozen[Network]":
    """Return the network that every `pubsub_network` is forked from.

    Override it, with any scope, to test another network. By default, parachain 1000 publishes, and
    2000 subscribes to its key `key_from_data(b"key")`.
    """
    from pubsub_emulator.primitives.pubsub import key_from_data

    return pubsub_networks.of([1000], {2000: {1000: [key_from_data(b"key")]}})


@pytest.fixture
def pubsub_simulation(request: pytest.FixtureRequest, pubsub_networks: "Networks") -> "Simulation":
    """Return the scenario of the marker `pubsub_scenario`, for this test alone.

    `step()` continues its traffic.
    """
    from pubsub_emulator.primitives.errors import PubsubError
    from pubsub_emulator.testing.networks import find_scenario

    mark = request.node.get_closest_marker(MARKER)
    if mark is None:
        pytest.fail(f"pubsub_simulation needs @pytest.mark.{MARKER}(file, blocks=…)", pytrace=False)
    file, blocks = _scenario_arguments(*mark.args, **mark.kwargs)
    try:
        scenario = find_scenario(file, (request.path.parent, request.config.rootpath))
        return pubsub_networks.scenario(scenario, blocks).fork()
    except PubsubError as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None


def _scenario_arguments(file: str | Path, blocks: int | None = None) -> tuple[str, int | None]:
    return str(file), blocks


@pytest.fixture
def pubsub_network(request: pytest.FixtureRequest) -> "Network":
    """Return a network for this test alone: a fork of `pubsub_base`, or the marker's scenario."""
    from pubsub_emulator.emulator.scenario.simulation import Simulation
    from pubsub_emulator.testing.networks import Frozen

    if request.node.get_closest_marker(MARKER) is not None:
        simulation: Simulation = request.getfixturevalue("pubsub_simulation")
        return simulation.network
    base = request.getfixturevalue("pubsub_base")
    if not isinstance(base, Frozen):
        reason = (
            "pubsub_base must be frozen, or tests would share it: pubsub_networks.freeze(network)"
        )
        pytest.fail(reason, pytrace=False)
    fork: Network | Simulation = base.fork()
    return fork.network if isinstance(fork, Simulation) else fork


@pytest.fixture
def pubsub_relay_chain(pubsub_network: "Network") -> "RelayChain":
    """Return the relay chain of `pubsub_network`."""
    return pubsub_network.relay


@pytest.fixture
def pubsub_parachains(pubsub_network: "Network") -> "Mapping[ParaId, Parachain]":
    """Return the parachains of `pubsub_network` by id."""
    return pubsub_network.parachains


@pytest.fixture
def pubsub_collators(pubsub_network: "Network") -> "Collators":
    """Return the authors in `pubsub_network`, to author the next block or judge a candidate."""
    from pubsub_emulator.testing.actors import Collators

    return Collators(pubsub_network)


@pytest.fixture
def pubsub_cheats(pubsub_network: "Network") -> "Cheats":
    """Return dishonest authors in `pubsub_network`, to try a cheat or bribe a collator."""
    from pubsub_emulator.testing.actors import Cheats

    return Cheats(pubsub_network)


@pytest.fixture
def proof_snapshot(request: pytest.FixtureRequest) -> "ProofSnapshot":
    """Return a check of proof sizes: `proof_snapshot(pubsub_simulation, tolerance="2%")`.

    With the option `--proof-snapshot-update`, it writes the snapshot instead.
    """
    from pubsub_emulator.testing.proof_sizes import ProofSnapshot

    test = f"{request.path.stem}-{request.node.name}"
    return ProofSnapshot(request.path.parent, test, bool(request.config.getoption(UPDATE)))
