"""Publish-subscribe between canisters: delivery beside the bare codec, idle rounds, and memory.

`python -m bench --only icrc72` measures the ratios. `python -m bench.canisters --subscribers 20000`
installs 20,000 subscribers in one network, lets each handle one event, and prints the time and the
memory that this took.
"""

import argparse
import resource
import time
from collections.abc import Callable, Iterator
from typing import Any

from bench.measure import Race
from interchain_events.icrc72.client import FILTER, App, Context, EventNotification
from interchain_events.icrc72.deployment import PubSub, deploy
from interchain_events.icrc72.ic.messaging import Observer, Recorder
from interchain_events.icrc72.ic.network import CanisterNetwork, seldom_collected
from interchain_events.icrc72.ic.principal import ANONYMOUS, Principal
from interchain_events.icrc72.services import codec

NAMESPACE = "bench.events"
EVENTS = 600


class _Source(App):
    """A publisher that makes as many events per call as the argument says."""

    def start(self) -> Any:
        return 0

    def on_call(self, ctx: Context, method: str, arg: bytes) -> None:
        for _ in range(int(arg)):
            self.data += 1
            self.emit(
                ctx, method, {"n": self.data, "words": "what an event of the demonstration says"}
            )
        ctx.reply(b"")


class _Sink(App):
    """A subscriber that counts the events that it handles."""

    def start(self) -> Any:
        return 0

    def on_event(self, _ctx: Context, _event: EventNotification) -> None:
        self.data += 1


def _network(observers: tuple[Observer, ...] = ()) -> tuple[PubSub, Principal, list[Principal]]:
    """Return a system on three subnets, its publisher and its subscribers.

    They are those of the demonstration.
    """
    network = CanisterNetwork(3)
    network.observers.extend(observers)
    system = deploy(network, broadcasters=(0, 1, 1, 2))
    wanted: tuple[dict[str, Any], ...] = ({}, {FILTER: "n > 20"}, {}, {})
    sinks = [
        _Sink(system.orchestrator, subscriptions={NAMESPACE: config}, publications={})
        for config in wanted
    ]
    readers = [network.create(index % 3, sink) for index, sink in enumerate(sinks)]
    source = _Source(system.orchestrator, publications={NAMESPACE: {}}, subscriptions={})
    return system, network.create(0, source), readers


def _deliver(observers: tuple[Observer, ...] = ()) -> int:
    system, source, readers = _network(observers)
    system.network.step(40)
    for _ in range(EVENTS // 100):
        system.network.submit(ANONYMOUS, source, NAMESPACE, b"100")
        system.network.step(2)
    for _ in range(400):
        system.network.step()
        if sum(system.app(reader).data for reader in readers) >= 4 * EVENTS - 20:
            break
    return sum(int(system.app(reader).data) for reader in readers)


def races() -> Iterator[Race]:
    """Yield races of notifications against the bare codec, and of idle rounds.

    They compare times: a ratio of 3.33 is 0.3 of the notifications per second of the bare codec.
    """
    recorder = Recorder()
    delivered = _deliver((recorder,))
    messages = [
        (
            codec(happening.method).args
            if happening.kind == "execute"
            else codec(happening.method).rets,
            happening.data,
        )
        for happening in recorder.happenings
        if happening.kind in {"execute", "respond"}
        and happening.method.startswith("icrc72_")
        and not happening.code
    ]

    def bare() -> None:
        for method, data in messages:
            method.encode(*method.decode(data))

    name = f"icrc72: {delivered:,} notifications"
    yield Race(name, _deliver, "bare Candid of the same messages", bare, 3, target=1 / 0.3)
    few = _idle(10)
    many = _idle(1000)
    base = "with 10"
    yield Race(
        "icrc72: idle rounds with 1,000 canisters",
        lambda: many.step(500),
        base,
        lambda: few.step(500),
        9,
        1.25,
    )


def _idle(canisters: int) -> CanisterNetwork:
    network = CanisterNetwork(3)
    system = deploy(network, broadcasters=(0, 1, 2))
    for number in range(canisters):
        network.create(
            number % 3,
            _Sink(system.orchestrator, subscriptions={f"idle.n{number}": {}}, publications={}),
        )
    network.step(150)
    while not network.is_idle():
        network.step()
    return network


def subscribers(count: int) -> None:
    """Deliver one event to many subscribers of one network.

    The network has two subnets with two broadcasters each.
    """
    with seldom_collected():
        _subscribers(count)


def _subscribers(count: int) -> None:
    start = time.process_time()
    network = CanisterNetwork(2)
    system = deploy(network, broadcasters=(0, 0, 1, 1))
    source = network.create(
        0, _Source(system.orchestrator, publications={NAMESPACE: {}}, subscriptions={})
    )
    readers = []
    for index in range(count):
        app = _Sink(system.orchestrator, subscriptions={NAMESPACE: {}}, publications={})
        readers.append(network.create(index % 2, app))
        if index % 20 == 0:
            network.step()
    _until(network, lambda: all(_is_registered(system.app(reader)) for reader in readers))
    registered = time.process_time()
    _until(network, lambda: _is_settled(system))
    assigned = time.process_time()
    network.submit(ANONYMOUS, source, NAMESPACE, b"1")
    _until(network, lambda: all(system.app(reader).data for reader in readers))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    delivered = time.process_time()
    print(
        f"{count:,} subscribers, each handled the event; {registered - start:.1f} s to register,"
        f" {assigned - registered:.1f} s to assign, {delivered - assigned:.1f} s to deliver,"
        f" {delivered - start:.1f} s in all, {memory:,.0f} MiB, {network.round:,} rounds"
    )


def _until(network: CanisterNetwork, done: Callable[[], bool], most: int = 20_000) -> None:
    for _ in range(0, most, 50):
        if done():
            return
        network.step(50)
    raise SystemExit(f"not done after {most:,} rounds")


def _is_registered(app: App) -> bool:
    return app.subscriber is not None and all(
        wanted.id is not None for wanted in app.subscriber.state.wanted.values()
    )


def _is_settled(system: PubSub) -> bool:
    state = system.registry.state
    busy = any(broker.dirty for broker in state.brokers.values()) or any(
        member.alert for member in state.members.values()
    )
    return not busy and not state.restless


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--subscribers", type=int, default=1000)
    subscribers(parser.parse_args().subscribers)
