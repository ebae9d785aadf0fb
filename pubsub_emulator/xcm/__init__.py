"""XCM v5 with `Publish`: types, codec, weigher, barriers and executor.

The types are in modules that keep Rust's enums apart (`location`, `assets`, `response`, `instructions`, `outcome`).
This package exports what most callers need.
"""

from pubsub_emulator.xcm.barriers import AllowPublishFrom, AllowUnpaidExecutionFrom, AnyOf, Barrier, only_parachains
from pubsub_emulator.xcm.errors import PublishFailure, UnsupportedXcmVersion, XcmDecodeError
from pubsub_emulator.xcm.executor import ExecutingChain, Execution, XcmExecutor
from pubsub_emulator.xcm.instructions import Instruction, Publish, Xcm, encode_instruction
from pubsub_emulator.xcm.location import Location, Parachain, parachain
from pubsub_emulator.xcm.message import decode, encode, message_of
from pubsub_emulator.xcm.outcome import (
    Complete,
    Incomplete,
    InstructionError,
    Outcome,
    ProcessMessageError,
    XcmError,
    XcmErrorKind,
)
from pubsub_emulator.xcm.render import to_json
from pubsub_emulator.xcm.weighed_message import WeighedMessage, weigh_message
from pubsub_emulator.xcm.weigher import FixedWeightBounds, XcmWeights

__all__ = [
    "AllowPublishFrom",
    "AllowUnpaidExecutionFrom",
    "AnyOf",
    "Barrier",
    "Complete",
    "ExecutingChain",
    "Execution",
    "FixedWeightBounds",
    "Incomplete",
    "Instruction",
    "InstructionError",
    "Location",
    "Outcome",
    "Parachain",
    "ProcessMessageError",
    "Publish",
    "PublishFailure",
    "UnsupportedXcmVersion",
    "WeighedMessage",
    "Xcm",
    "XcmDecodeError",
    "XcmError",
    "XcmErrorKind",
    "XcmExecutor",
    "XcmWeights",
    "decode",
    "encode",
    "encode_instruction",
    "message_of",
    "only_parachains",
    "parachain",
    "to_json",
    "weigh_message",
]
