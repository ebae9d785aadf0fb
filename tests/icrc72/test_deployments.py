"""The three deployments deliver the same: IC-36, I12."""

from typing import Any

import pytest
from support.canister_apps import NAME, Sink, Source

from pubsub_emulator.icrc72.client import FILTER
from pubsub_emulator.icrc72.deployment import KINDS, PubSub, deploy, deploy_direct
from pubsub_emulator.icrc72.ic.network import CanisterNetwork
from pubsub_emulator.icrc72.ic.principal import ANONYMOUS, Principal
from pubsub_emulator.icrc72.ic.schedule import Schedule


class Prices(Source):
    publications = {NAME: {}}  # noqa: RUF012 — as authors write it


class Reader(Sink):
    subscriptions = {"org.example.*": {}}  # noqa: RUF012 — as authors write it


class High(Reader):
    subscriptions = {"org.**": {FILTER: "n > 5"}}  # noqa: RUF012 — as authors write it


def started(kind: str, **settings: Any) -> tuple[PubSub, Principal, list[Principal]]:
    network = CanisterNetwork(2, **settings)
    if kind == "direct":
        system = deploy_direct(network, Prices.publications, Prices)
        publisher = system.orchestrator
    else:
        system = deploy(network, kind, broadcasters=(0, 1, 1))
        publisher = system.install(0, Prices)
    return system, publisher, [system.install(1, Reader), system.install(0, Reader), system.install(1, High)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("delay", "refuse"), [(0, 0), (4, 30)])
def test_ic_36_i12_every_deployment_delivers_all_in_order_once(kind: str, delay: int, refuse: int) -> None:
    system, publisher, readers = started(kind, schedule=Schedule(b"seed", delay, refuse))
    system.network.step(150)
    for number in range(20):
        system.network.submit(ANONYMOUS, publisher, NAME, b"%d" % number)
        system.network.step()
    system.network.step(400)
    found = [system.app(each).data for each in readers]
    assert found == [list(range(20)), list(range(20)), list(range(6, 20))]
