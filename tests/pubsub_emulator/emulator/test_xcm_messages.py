"""The binding of the message queue and XCM: what a message costs that the barrier refuses or that
nobody can read.
"""

import pytest

from pubsub_emulator.emulator.relay.runtime import RelayConfig, RelayRuntime
from pubsub_emulator.emulator.relay.xcm_messages import NeverRun, XcmMessages
from pubsub_emulator.primitives.types import Hash, ParaId
from pubsub_emulator.primitives.weights import WEIGHT_ZERO
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.relay.message_queue import (
    MessageError,
    MessageErrorKind,
    MessageResult,
)
from pubsub_emulator.xcm import encode
from pubsub_emulator.xcm.instructions import ClearOrigin, Instruction


def messages() -> XcmMessages:
    config = RelayConfig()
    return XcmMessages(config.pubsub, RelayRuntime(config).broadcaster)


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ((ClearOrigin(),), MessageErrorKind.BadFormat),
        ((ClearOrigin(),) * 65, MessageErrorKind.StackLimitReached),
    ],
)
def test_ps22_a_message_not_let_in_costs_its_weight(
    message: tuple[Instruction, ...], kind: MessageErrorKind
) -> None:
    binding, storage = messages(), Storage(State())
    prepared = binding.prepare(encode(message))
    result = binding.process(storage, ParaId(1000), prepared, Hash(bytes(32)))
    assert result == MessageResult(prepared.weight, success=False, error=MessageError(kind))
    assert storage.log == []


def test_ps20_a_message_that_does_not_decode_costs_only_its_decoding() -> None:
    binding = messages()
    prepared = binding.prepare(b"junk")
    assert isinstance(prepared, NeverRun)
    assert prepared.weight.any_gt(WEIGHT_ZERO)
    result = binding.process(Storage(State()), ParaId(1000), prepared, Hash(bytes(32)))
    assert result == MessageResult(
        WEIGHT_ZERO, success=False, error=MessageError(MessageErrorKind.Corrupt)
    )
