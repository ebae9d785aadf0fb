"""The header of a block that applied new code says so (UP-18)."""

from dataclasses import replace

import pytest
from support.runtime.world import ME, Governed, Relay, make_spec, seal

from pubsub_emulator.primitives.header import (
    AURA_ENGINE,
    ENVIRONMENT_UPDATED,
    DigestItem,
    DigestKind,
)
from pubsub_emulator.primitives.storage_keys import dmq_mqc_head
from pubsub_emulator.primitives.types import RelayBlockNumber
from pubsub_emulator.runtime.framework import system
from pubsub_emulator.runtime.framework.message_chains import (
    ZERO_HEAD,
    InboundDownwardMessage,
    message_chain,
)
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.parachain import governance
from pubsub_emulator.runtime.parachain.block import Candidate, InvalidBlock

SPEC = make_spec({})
UPGRADE = governance.transact(governance.set_code(replace(SPEC, spec_version=2)))
REFUSED = governance.transact(governance.set_code(replace(SPEC, para_id=ME + 1)))


def _kinds(governed: Governed) -> list[DigestKind]:
    return [item.kind for item in governed.chain.head.header.digest]


def test_the_digest_of_an_upgrade_has_the_item_between_slot_and_seal() -> None:
    governed = Governed(SPEC)
    governed.block({}, UPGRADE)
    assert _kinds(governed) == [
        DigestKind.PRE_RUNTIME,
        DigestKind.RUNTIME_ENVIRONMENT_UPDATED,
        DigestKind.SEAL,
    ]
    header = governed.chain.head.header
    assert header.aura_slot() is not None
    assert header.aura_seal() is not None
    assert system.DIGEST.get(Storage(governed.chain.state)) == list(header.unsealed())
    governed.block({})
    assert _kinds(governed) == [DigestKind.PRE_RUNTIME, DigestKind.SEAL]


@pytest.mark.parametrize(
    ("messages", "applied"),
    [
        ((UPGRADE, UPGRADE), True),
        ((REFUSED,), False),
    ],
)
def test_a_block_reports_applied_code_once_and_refused_code_never(
    messages: tuple[bytes, ...], applied: bool
) -> None:
    governed = Governed(SPEC)
    governed.block({}, *messages)
    assert governed.chain.head.header.digest.count(ENVIRONMENT_UPDATED) == applied


def _block(message: bytes) -> tuple[Governed, Candidate, Relay]:
    governed = Governed(SPEC)
    head = message_chain(ZERO_HEAD, [(RelayBlockNumber(1), message)])
    relay = Relay(1, {}, top={dmq_mqc_head(ME): head})
    inbound = [InboundDownwardMessage(RelayBlockNumber(1), message)]
    return governed, governed.chain.author(relay, inbound), relay


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(
            UPGRADE,
            id="upgrade",
        ),
        pytest.param(
            REFUSED,
            id="refused",
        ),
    ],
)
def test_a_header_that_says_another_thing_about_new_code_is_refused(message: bytes) -> None:
    governed, honest, relay = _block(message)
    governed.chain.judge(honest, relay)
    slot, *others = honest.header.unsealed()
    applied = [ENVIRONMENT_UPDATED]
    assert others == (applied if message == UPGRADE else [])
    other = DigestItem(DigestKind.CONSENSUS, AURA_ENGINE, b"")
    for digest, verdict in (
        ((slot,), "StateRootMismatch"),
        ((slot, *applied), "StateRootMismatch"),
        ((*applied, slot), "StateRootMismatch"),
        ((slot, *applied, *applied), "StateRootMismatch"),
        ((slot, other), "BadSeal"),
        ((slot, other, *applied), "BadSeal"),
    ):
        candidate = seal(replace(honest, header=replace(honest.header, digest=digest)))
        if list(digest) == [slot, *others]:
            governed.chain.judge(candidate, relay)
            continue
        with pytest.raises(InvalidBlock) as refused:
            governed.chain.judge(candidate, relay)
        assert refused.value.verdict.value == verdict
