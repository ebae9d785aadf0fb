"""Each service offers what its interface description says, over Candid bytes: IC-10, IC-36, the `.did` files."""

from typing import Any

import pytest

from pubsub_emulator.events.log.memory import MemoryStore
from pubsub_emulator.icrc72.archive import Archive
from pubsub_emulator.icrc72.client import App
from pubsub_emulator.icrc72.deployment import deploy, deploy_direct
from pubsub_emulator.icrc72.ic.candid import types as t
from pubsub_emulator.icrc72.ic.canister import CANISTER_ERROR, CANISTER_REJECT
from pubsub_emulator.icrc72.ic.network import CanisterNetwork
from pubsub_emulator.icrc72.ic.principal import ANONYMOUS, Principal
from pubsub_emulator.icrc72.role import RoleCanister
from pubsub_emulator.icrc72.services import codec, interface
from pubsub_emulator.testing.canisters import Canisters

NAME = "org.example.a"
WHO = Principal(b"\1\2\3")


def some(type_: t.Type) -> Any:
    """A value of a type: as little as there can be."""
    type_ = t.resolved(type_)
    if isinstance(type_, t.Prim):
        return {"text": NAME, "principal": WHO, "bool": True, "null": None}.get(type_.name, 1)
    if isinstance(type_, t.Opt):
        return None
    if isinstance(type_, t.Vec):
        return b"" if t.is_blob(type_) else (some(type_.inner),)
    if isinstance(type_, t.Record):
        return tuple(some(each.type) for each in type_.fields)
    assert isinstance(type_, t.Cases)
    case = next(each for each in type_.fields if isinstance(t.resolved(each.type), t.Prim))
    return t.Variant(case.name, some(case.type))


class Teller(App):
    publications = {NAME: {}}  # noqa: RUF012 — as authors write it


class Reader(App):
    subscriptions = {NAME: {}}  # noqa: RUF012 — as authors write it


def canisters() -> list[tuple[str, CanisterNetwork, Principal, set[str]]]:
    """Every kind of canister that a deployment has, with the methods that its services describe."""
    services = ("orchestrator", "broadcaster", "publisher", "subscriber", "archive")
    orchestrator, broadcaster, publisher, subscriber, archive = (set(interface(s).methods) for s in services)
    network = CanisterNetwork()
    system = deploy(network)
    found = [
        ("orchestrator", network, system.orchestrator, orchestrator),
        ("broadcaster", network, system.broadcasters[0], broadcaster),
        ("publisher", network, system.install(0, Teller), subscriber),
        ("subscriber", network, system.install(0, Reader), subscriber),
        ("archive", network, network.create(0, RoleCanister([Archive(MemoryStore("a"))])), archive),
    ]
    network = CanisterNetwork()
    found.append(("both in one", network, deploy(network, "broadcaster").orchestrator, orchestrator | broadcaster))
    network = CanisterNetwork()
    direct = deploy_direct(network, {NAME: {}})
    found.append(("direct", network, direct.orchestrator, orchestrator | broadcaster | publisher))
    return found


KINDS = [each[0] for each in canisters()]


@pytest.mark.parametrize("at", range(len(KINDS)), ids=KINDS)
def test_ic_36_a_canister_offers_what_its_services_describe_and_nothing_else(at: int) -> None:
    _, network, who, described = canisters()[at]
    canister = network.canister(who)
    assert isinstance(canister, RoleCanister)
    assert canister.offered() == described


@pytest.mark.parametrize("at", range(len(KINDS)), ids=KINDS)
def test_row_1_ic_10_ic_11_every_method_is_served_over_candid_and_users_call_no_update(
    at: int,
) -> None:
    kind, network, who, described = canisters()[at]
    lab = Canisters()
    lab.network = network
    probe = lab.probe()
    network.step(30)
    for method in sorted(described - {"archive_append"}):
        values = tuple(some(each) for each in codec(method).args.types)
        query = codec(method).method.mode == "query"
        asked = network.query(ANONYMOUS, who, method, codec(method).args.encode(*values))
        assert asked.ok == query, (kind, method, asked)
        if query:
            codec(method).rets.decode(asked.data)
        user = network.submit(ANONYMOUS, who, method, codec(method).args.encode(*values))
        if method.startswith(("icrc72_", "icrc77_")):
            assert user.answer is not None
            assert (user.answer.code, user.answer.message) == (CANISTER_REJECT, "refused at inspect")
        answer = lab.answer(probe, who, method, *values)
        receives = method == "icrc72_handle_notification" and kind in {"publisher", "subscriber", "direct"}
        expected = CANISTER_REJECT if receives else 0
        assert getattr(answer, "code", 0) == expected, (kind, method, answer)
        unreadable = network.query(ANONYMOUS, who, method, b"DIDL\x00\x01\x7f\x00")
        assert unreadable.code == CANISTER_ERROR


def test_ic_36_the_list_interface_is_the_one_that_is_called() -> None:
    assert set(interface("list").methods) == {"icrc75_is_member"}
