"""Each service offers what its interface description says, over Candid bytes: IC-10, IC-36, the `.did` files."""

from typing import Any

import pytest

from pubsub_emulator.events.log.memory import MemoryStore
from pubsub_emulator.icrc72 import messages as m
from pubsub_emulator.icrc72.archive import Archive
from pubsub_emulator.icrc72.client import App
from pubsub_emulator.icrc72.deployment import deploy, deploy_direct
from pubsub_emulator.icrc72.ic.candid.types import Variant
from pubsub_emulator.icrc72.ic.canister import CANISTER_ERROR, CANISTER_REJECT
from pubsub_emulator.icrc72.ic.network import CanisterNetwork
from pubsub_emulator.icrc72.ic.principal import ANONYMOUS, Principal
from pubsub_emulator.icrc72.ledger import TokenLedger
from pubsub_emulator.icrc72.role import RoleCanister
from pubsub_emulator.icrc72.services import codec, interface
from pubsub_emulator.icrc72.values import boolean, nat
from pubsub_emulator.testing.canisters import Canisters

NAME = "org.example.a"
WHO = Principal(b"\1\2\3")
NAMED = Variant("namespace", NAME)
NOTE = m.EventNotification(1, 1, None, 1, NAME, nat(1), None, WHO, None)
BANK = m.Account(WHO)

ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "icrc72_register_publication": ((m.PublicationRegistration(NAME, ()),),),
    "icrc72_register_subscription": ((m.SubscriptionRegistration(NAME, ()),),),
    "icrc72_update_publication": ((m.PublicationUpdate(NAMED, ("own", boolean(True))),),),
    "icrc72_update_subscription": ((m.SubscriptionUpdate(NAMED, ("own", boolean(True))),),),
    "icrc72_delete_publication": ((m.PublicationDelete(NAMED),),),
    "icrc72_delete_subscription": ((m.SubscriptionDelete(NAMED),),),
    "icrc72_get_valid_broadcasters": (),
    "icrc72_get_valid_broadcaster": (),
    "icrc72_confirm_notifications": ((1,),),
    "icrc72_get_publishers": (m.ByPrincipal(),),
    "icrc72_get_publications": (m.ByText(),),
    "icrc72_get_subscribers": (m.ByPrincipal(),),
    "icrc72_get_subscriptions": (m.ByNat(),),
    "icrc72_get_broadcasters": (m.ByPrincipal(),),
    "icrc77_register_replay": ((m.ReplayRegistration(NAME, (1, 2), ()),),),
    "icrc77_cancel_replay": ((1,),),
    "icrc3_get_blocks": (((0, 1),),),
    "icrc3_get_archives": ((None,),),
    "icrc3_supported_block_types": (),
    "icrc77_replay_status": ((m.ReplayStatusUpdate(1, Variant("running")),),),
    "icrc77_get_replays": (m.ByNat(),),
    "icrc72_publish": ((m.Event(1, None, 1, NAME, nat(1), WHO, None),),),
    "icrc72_handle_notification": ((NOTE,),),
    "icrc72_handle_notification_trusted": ((NOTE,),),
    "icrc72_get_broadcaster_stats": (),
    "icrc72_get_subscriber_stats": (),
    "icrc1_fee": (),
    "icrc1_balance_of": (BANK,),
    "icrc1_transfer": (m.TransferArg(None, BANK, 1),),
    "icrc2_approve": (m.ApproveArgs(None, BANK, 1),),
    "icrc2_transfer_from": (m.TransferFromArgs(None, BANK, BANK, 1),),
    "icrc2_allowance": ((BANK, BANK),),
    "archive_page": ((NAME, 1, 2, 10),),
}


class Teller(App):
    publications = {NAME: {}}  # noqa: RUF012 — as authors write it


class Reader(App):
    subscriptions = {NAME: {}}  # noqa: RUF012 — as authors write it


def canisters() -> list[tuple[str, CanisterNetwork, Principal, set[str]]]:
    """Every kind of canister that a deployment has, with the methods that its services describe."""
    services = ("orchestrator", "broadcaster", "publisher", "subscriber", "ledger", "archive")
    orchestrator, broadcaster, publisher, subscriber, ledger, archive = (set(interface(s).methods) for s in services)
    network = CanisterNetwork()
    system = deploy(network)
    found = [
        ("orchestrator", network, system.orchestrator, orchestrator),
        ("broadcaster", network, system.broadcasters[0], broadcaster),
        ("publisher", network, system.install(0, Teller), subscriber),
        ("subscriber", network, system.install(0, Reader), subscriber),
        ("ledger", network, network.create(0, RoleCanister([TokenLedger({})])), ledger),
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
def test_ic_10_ic_11_every_method_is_served_over_candid_and_users_call_no_update_of_the_standards(at: int) -> None:
    kind, network, who, described = canisters()[at]
    lab = Canisters()
    lab.network = network
    probe = lab.probe()
    network.step(30)
    for method in sorted(described - {"archive_append"}):
        values = ARGUMENTS[method]
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
    assert set(ARGUMENTS) | {"icrc75_is_member", "archive_append"} == {
        name
        for service in ("orchestrator", "broadcaster", "publisher", "subscriber", "list", "ledger", "archive")
        for name in interface(service).methods
    }
