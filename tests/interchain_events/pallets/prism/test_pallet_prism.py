"""PR-1: pallet `Prism`, its errors, its weight, its event."""

import pytest

from interchain_events.pallets.prism import PALLET, Error, ObjectAnchored, Prism
from interchain_events.pallets.prism.pallet import MOST_OBJECT
from pubsub_emulator.primitives.types import AccountId
from pubsub_emulator.runtime.framework.dispatch import (
    BadOrigin,
    Call,
    ModuleError,
    call_info,
    dispatch,
)
from pubsub_emulator.runtime.framework.origin import Origin, Root, Signed
from pubsub_emulator.runtime.framework.storage import State, Storage

WHO = AccountId(bytes(range(32)))


def _anchor(raw: bytes, origin: Origin | None = None) -> tuple[object, Storage]:
    storage = Storage(State())
    return dispatch(
        Prism(), storage, origin or Signed(WHO), Call(PALLET.name, "anchor", (raw,))
    ).error, storage


@pytest.mark.parametrize("size", [1, 33, MOST_OBJECT])
def test_pr_1_the_event_carries_the_bytes_as_they_are(size: int) -> None:
    raw = bytes(each % 256 for each in range(size))
    error, storage = _anchor(raw)
    assert error is None
    assert [record.event for record in storage.log] == [ObjectAnchored(WHO, raw)]


@pytest.mark.parametrize(
    ("size", "wanted"),
    [
        (0, Error.ObjectEmpty),
        (MOST_OBJECT + 1, Error.ObjectTooLarge),
    ],
)
def test_pr_1_an_object_has_1_to_16384_bytes(size: int, wanted: Error) -> None:
    error, storage = _anchor(bytes(size))
    assert error == ModuleError(wanted)
    assert list(storage.log) == []


def test_pr_1_only_a_signed_account_anchors() -> None:
    assert isinstance(_anchor(b"x", Root())[0], BadOrigin)


def test_pr_1_the_weight_grows_with_the_length() -> None:
    short, long = (
        call_info(Prism(), "anchor").weight(Prism(), bytes(size)) for size in (1, 16_384)
    )
    assert long.ref_time > short.ref_time
    assert long.proof_size > short.proof_size
