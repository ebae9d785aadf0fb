"""ID-50: pallet `DomeEvents`, its errors, and the ledger that a chain with it is to an adapter."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interchain_events.distributor.adapter.chain import (
    AUTHOR,
    ChainLedger,
    DomeChain,
    publication_of,
)
from interchain_events.distributor.adapter.ledger import Published
from interchain_events.distributor.core.messages import No
from interchain_events.distributor.event import Event
from interchain_events.distributor.simulation.stories import event_of
from interchain_events.pallets.dome_events import PALLET, DomeEvents, Error, EventDOMEv1
from interchain_events.pallets.dome_events import pallet as items
from pubsub_emulator.emulator.runtimes import every_runtime
from pubsub_emulator.runtime.framework.dispatch import BadOrigin, Call, ModuleError, dispatch
from pubsub_emulator.runtime.framework.hooks import IntegrityError
from pubsub_emulator.runtime.framework.origin import Root, Signed
from pubsub_emulator.runtime.framework.storage import State, Storage

ID, EVENT = event_of(1)


def _pallet(*, unique: bool = True) -> tuple[DomeEvents, Storage]:
    pallet, storage = DomeEvents("a", unique=unique), Storage(State())
    pallet.integrity_test()
    pallet.genesis(storage)
    return pallet, storage


def _emit(pallet: DomeEvents, storage: Storage, event: Event = EVENT, network: str = "a") -> object:
    call = Call(PALLET.name, "emit_new_event", tuple(publication_of(event, network)))
    return dispatch(pallet, storage, Signed(AUTHOR), call).error


def test_id50_metadata_tells_what_each_error_means() -> None:
    assert [(error.name, int(error)) for error in Error] == [
        ("WrongNetwork", 0),
        ("BadGlobalId", 1),
        ("TooLong", 2),
        ("AlreadyPublished", 3),
    ]
    assert all(error.doc.endswith(".") for error in Error)


def test_id50_an_event_is_published_once_and_counted_from_0() -> None:
    pallet, storage = _pallet()
    assert _emit(pallet, storage) is None
    assert _emit(pallet, storage, event_of(2)[1]) is None
    assert _emit(pallet, storage) == ModuleError(Error.AlreadyPublished)
    assert items.COUNT.get(storage) == 2
    found = [record.event for record in storage.log if isinstance(record.event, EventDOMEv1)]
    assert [each.index for each in found] == [0, 1]
    assert (found[0].data_location.decode(), found[0].author) == (EVENT.data_location, AUTHOR)


def test_id50_without_unique_doubles_get_in() -> None:
    pallet, storage = _pallet(unique=False)
    assert [_emit(pallet, storage) for _ in range(3)] == [None] * 3
    assert items.COUNT.get(storage) == 3
    assert items.PUBLISHED.get(storage, ID.encode()) == 0


@pytest.mark.parametrize(
    ("event", "network", "error"),
    [
        (EVENT, "b", Error.WrongNetwork),
        (EVENT._replace(data_location="https://n.example/e"), "a", Error.BadGlobalId),
        (EVENT._replace(data_location="https://n.example/\u00e9?hl=1"), "a", Error.BadGlobalId),
        (
            EVENT._replace(data_location="https://n.example/?hl=1&x=" + "y" * 2048),
            "a",
            Error.TooLong,
        ),
        (EVENT._replace(event_type=""), "a", Error.TooLong),
        (EVENT._replace(event_type="\U0001f600" * 256), "a", Error.TooLong),
        (EVENT._replace(metadata=("x",) * 33), "a", Error.TooLong),
        (EVENT._replace(metadata=("x" * 1025,)), "a", Error.TooLong),
    ],
)
def test_id50_what_is_refused_changes_nothing(event: Event, network: str, error: Error) -> None:
    pallet, storage = _pallet()
    assert _emit(pallet, storage, event, network) == ModuleError(error)
    assert items.COUNT.get(storage) == 0
    assert not storage.log


def test_id50_only_accounts_publish() -> None:
    pallet, storage = _pallet()
    call = Call(PALLET.name, "emit_new_event", tuple(publication_of(EVENT, "a")))
    assert dispatch(pallet, storage, Root(), call).error == BadOrigin()


@pytest.mark.parametrize("name", ["", "x" * 33])
def test_id1_a_network_s_name_is_short(name: str) -> None:
    with pytest.raises(IntegrityError):
        DomeEvents(name).integrity_test()


@given(
    kind=st.binary(max_size=20),
    metadata=st.lists(st.binary(max_size=9), max_size=3),
    iss=st.none() | st.binary(min_size=32, max_size=32),
)
def test_the_event_is_read_back_from_its_scale_bytes(
    kind: bytes, metadata: list[bytes], iss: bytes | None
) -> None:
    made = EventDOMEv1(
        kind,
        b"l",
        metadata,
        entity_id=bytes(32),
        previous_entity_hash=bytes(32),
        iss=iss,
        network=b"a",
        author=AUTHOR,
        index=7,
    )
    assert every_runtime().read_event(every_runtime().reader(made.encode())) == made


def test_each_block_s_state_root_commits_to_its_event() -> None:
    first, second = DomeChain("a"), DomeChain("a")
    for chain in (first, second):
        assert chain.call(AUTHOR, publication_of(EVENT, "a"), 1_000).outcomes[0].ok
    assert first.header == second.header
    second.call(AUTHOR, publication_of(event_of(2)[1], "a"), 2_000)
    assert first.header.state_root != second.header.state_root


def test_a_chain_is_a_ledger() -> None:
    async def what() -> None:
        ledger = ChainLedger("a", clock=lambda: 1_700_000_000.5)
        assert await ledger.publish(EVENT) == Published(1_700_000_000, new=True)
        assert await ledger.publish(EVENT) == Published(1_700_000_000, new=False)
        refused = await ledger.publish(EVENT._replace(data_location="http://h/"))
        assert isinstance(refused, No)
        assert "BadGlobalId" in refused.reason
        page = await ledger.read(0, 10)
        assert page is not None
        assert page.complete
        assert [(notice.number, notice.id, notice.event) for notice in page.notices] == [
            (1, ID, EVENT)
        ]
        await ledger.wait(0, 5)

    asyncio.run(what())
