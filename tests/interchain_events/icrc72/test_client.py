"""What authors of canisters may rely on, in each of the three deployments: IC-4, IC-36, IC-48,
IC-49g, I12.
"""

from typing import Any

import pytest
from support.icrc72.canister_apps import NAME, Lab, Sink, Source

from interchain_events.icrc72 import CanisterNetwork, Schedule
from interchain_events.icrc72.client import FILTER, App, EventNotification, plain
from interchain_events.icrc72.deployment import KINDS, deploy, deploy_direct
from interchain_events.icrc72.ic.canister import Context
from interchain_events.icrc72.ic.principal import ANONYMOUS


class Maker(App):
    publications = {NAME: {}}  # noqa: RUF012 — as authors write it

    def on_call(self, ctx: Context, method: str, arg: bytes) -> None:
        self.data.append(method)
        self.emit(ctx, NAME, {"n": len(self.data)})
        if method == "fails":
            raise ValueError("an author's mistake")
        if method == "large":
            self.emit(ctx, NAME, bytes(1 << 20))
        if method == "elsewhere":
            self.emit(ctx, "org.example.other", arg)
        if method == "backwards":
            self.emit(ctx, NAME, 1, number=0)
        ctx.reply(b"")


class Reader(App):
    subscriptions = {"org.**": {}}  # noqa: RUF012 — as authors write it

    def on_event(self, _ctx: Context, event: EventNotification) -> None:
        self.data.append(plain(event.data)["n"])
        if self.data[-1] == 2 and len(self.data) == 2:
            raise KeyError("an author's mistake")


@pytest.mark.parametrize("method", ["fails", "large", "elsewhere", "backwards"])
def test_row_22_ic_4_ic_49_whatever_authors_code_raises_undoes_only_itself(
    method: str, lab: Lab
) -> None:
    maker, reader = lab.install(Maker, 0), lab.install(Reader, 1)
    lab.step(60)
    for each in ("good", method, "good", "good"):
        lab.call(maker, each)
        lab.step()
    lab.step(60)
    assert lab.app(maker).data == ["good", "good", "good"]
    assert lab.app(reader).data == [1, 3]
    assert lab.app(reader).inbox.state.counts["handler_failures"] == 1
    assert not any(
        queue.live for queue in lab.system.broadcaster(lab.broadcasters[1]).state.queues.values()
    )


def test_the_plugin_has_a_fixture_for_subnets(pubsub_canisters: Any) -> None:
    lab = pubsub_canisters(subnets=3, broadcasters=(2,))
    assert lab.network.subnets == 3
    assert len(lab.broadcasters) == 1


class Prices(Source):
    publications = {NAME: {}}  # noqa: RUF012 — as authors write it


class Every(Sink):
    subscriptions = {"org.example.*": {}}  # noqa: RUF012 — as authors write it


class High(Sink):
    subscriptions = {"org.**": {FILTER: "n > 5"}}  # noqa: RUF012 — as authors write it


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("delay", "refuse"),
    [
        (0, 0),
        (4, 30),
    ],
)
def test_ic_36_i12_every_deployment_delivers_all_in_order_once(
    kind: str, delay: int, refuse: int
) -> None:
    network = CanisterNetwork(2, schedule=Schedule(b"seed", delay, refuse))
    if kind == "direct":
        system = deploy_direct(network, Prices.publications, Prices)
        publisher = system.orchestrator
    else:
        system = deploy(network, kind, broadcasters=(0, 1, 1))
        publisher = system.install(0, Prices)
    readers = [system.install(1, Every), system.install(0, Every), system.install(1, High)]
    network.step(150)
    for number in range(20):
        network.submit(ANONYMOUS, publisher, NAME, b"%d" % number)
        network.step()
    network.step(400)
    found = [system.app(each).data for each in readers]
    assert found == [list(range(20)), list(range(20)), list(range(6, 20))]
