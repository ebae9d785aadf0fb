"""What authors of canisters may rely on: IC-4, IC-48, IC-49g."""

from typing import Any

import pytest

from pubsub_emulator.icrc72.client import App, EventNotification, plain
from pubsub_emulator.icrc72.ic.canister import Context
from pubsub_emulator.testing.canisters import Canisters

NAME = "org.example.a"


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
def test_ic_4_whatever_authors_code_raises_is_a_trap_that_publishes_nothing(method: str) -> None:
    lab = Canisters()
    maker, reader = lab.install(Maker, 0), lab.install(Reader, 1)
    lab.step(60)
    for each in ("good", method, "good", "good"):
        lab.call(maker, each)
        lab.step()
    lab.step(60)
    assert lab.app(maker).data == ["good", "good", "good"]
    assert lab.app(reader).data == [1, 3]
    assert lab.app(reader).inbox.state.counts["handler_failures"] == 1


def test_the_plugin_has_a_fixture_for_subnets(pubsub_canisters: Any) -> None:
    lab = pubsub_canisters(subnets=3, broadcasters=(2,))
    assert lab.network.subnets == 3
    assert len(lab.broadcasters) == 1
