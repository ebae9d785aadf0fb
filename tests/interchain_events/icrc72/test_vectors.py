"""Every vector holds, each service is what its `.did` says, every acceptance row has a test: IC-10,
IC-36.
"""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.icrc72.canister_apps import NAME, Lab

from interchain_events.events.log.memory import MemoryStore
from interchain_events.icrc72 import App, Archive, CanisterNetwork, RoleCanister
from interchain_events.icrc72.deployment import deploy, deploy_direct
from interchain_events.icrc72.ic.candid import types as t
from interchain_events.icrc72.ic.canister import CANISTER_ERROR, CANISTER_REJECT
from interchain_events.icrc72.ic.principal import ANONYMOUS, Principal
from interchain_events.icrc72.services import codec, interface
from interchain_events.icrc72.vectors import FORMATS
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.vectors import Case

VECTORS = Path(__file__).parents[2] / "vectors" / "icrc"
FILES = sorted(each.stem for each in VECTORS.glob("*.json"))
STATED = (
    "valid",
    "matches",
    "delivered",
    "hash",
    "want",
    "json",
    "value",
    "nat",
    "bytes",
    "filter",
)
"""The fields that say what is due, the first that a file has."""


def document(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))
    return found


def cases(found: dict[str, Any]) -> Iterator[Case]:
    (form,) = [each for each in FORMATS if each.fits(found)]
    return form.cases(found)


@pytest.mark.parametrize("name", FILES)
def test_ic_2_ic_3_ic_11_ic_21_ic_24_ic_25_ic_26_ic_27_every_vector_holds(name: str) -> None:
    failed: list[str] = []
    for case, check in cases(document(name)):
        try:
            check()
        except PubsubError as error:
            failed.append(f"{case}: {error}")
    assert failed == []


@pytest.mark.parametrize("name", FILES)
def test_a_vector_that_states_something_else_does_not_hold(name: str) -> None:
    found = document(name)
    first, rows = found["vectors"][0], found["vectors"]
    field = next(each for each in STATED if each in first)
    others = [row[field] for row in rows if row.get(field) not in [None, first[field]]]
    first[field] = {"bad_filters": "a", "candid_messages": ["x"]}.get(
        name, others[0] if others else None
    )
    _, check = next(cases(found))
    with pytest.raises(PubsubError):
        check()


def test_ic_11_a_message_has_one_record_class_per_named_record() -> None:
    for service in ("orchestrator", "broadcaster", "publisher", "subscriber", "ledger", "list"):
        for name, type_ in interface(service).types.items():
            make = getattr(type_, "make", None)
            if make is None:
                continue
            fields = tuple(each.name for each in type_.fields)  # type: ignore[union-attr]
            expected = tuple(
                "from" if name == "TransferFromArgs" and f == "source" else f
                for f in make.args[0]._fields
            )
            assert fields == expected, name


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
    orchestrator, broadcaster, publisher, subscriber, archive = (
        set(interface(s).methods) for s in services
    )
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
    found.append(
        (
            "both in one",
            network,
            deploy(network, "broadcaster").orchestrator,
            orchestrator | broadcaster,
        )
    )
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
    lab = Lab()
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
            assert (user.answer.code, user.answer.message) == (
                CANISTER_REJECT,
                "IC0406: refused at inspect",
            )
        answer = lab.answer(probe, who, method, *values)
        receives = method == "icrc72_handle_notification" and kind in {
            "publisher",
            "subscriber",
            "direct",
        }
        expected = CANISTER_REJECT if receives else 0
        assert getattr(answer, "code", 0) == expected, (kind, method, answer)
        unreadable = network.query(ANONYMOUS, who, method, b"DIDL\x00\x01\x7f\x00")
        assert unreadable.code == CANISTER_ERROR


def test_ic_36_the_list_interface_is_the_one_that_is_called() -> None:
    assert set(interface("list").methods) == {"icrc75_is_member"}


HERE = Path(__file__).parent
OF_REPLAYS = {HERE / "test_acceptance_77.py", HERE / "test_draft_replays.py"}


def _rows(files: Iterable[Path]) -> set[int]:
    found: set[int] = set()
    for path in files:
        for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE):
            rows = re.match(r"test_rows?_((?:\d+_(?:and_)?)+)", name) or re.search(
                r"acceptance_(\d+)_", name
            )
            if rows is not None:
                found.update(int(each) for each in re.findall(r"\d+", rows[1]))
    return found


def test_every_row_is_named() -> None:
    assert _rows({*HERE.rglob("test_*.py")} - OF_REPLAYS) == set(range(1, 36))
    assert _rows([*OF_REPLAYS, HERE / "test_upgrades.py"]) == set(range(1, 25))
