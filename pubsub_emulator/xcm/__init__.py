"""XCM v5 with `Publish`: types, codec, weigher, barriers and executor.

The types are in modules that separate Rust's enums: `location`, `assets`, `response`,
`instructions` and `outcome`.
"""

from pubsub_emulator.xcm.barriers import AllowPublishFrom as AllowPublishFrom
from pubsub_emulator.xcm.barriers import AllowUnpaidExecutionFrom as AllowUnpaidExecutionFrom
from pubsub_emulator.xcm.barriers import AnyOf as AnyOf
from pubsub_emulator.xcm.barriers import Barrier as Barrier
from pubsub_emulator.xcm.barriers import only_parachains as only_parachains
from pubsub_emulator.xcm.errors import PublishFailure as PublishFailure
from pubsub_emulator.xcm.errors import UnsupportedXcmVersion as UnsupportedXcmVersion
from pubsub_emulator.xcm.errors import XcmDecodeError as XcmDecodeError
from pubsub_emulator.xcm.executor import ExecutingChain as ExecutingChain
from pubsub_emulator.xcm.executor import Execution as Execution
from pubsub_emulator.xcm.executor import XcmExecutor as XcmExecutor
from pubsub_emulator.xcm.instructions import Instruction as Instruction
from pubsub_emulator.xcm.instructions import Publish as Publish
from pubsub_emulator.xcm.instructions import Xcm as Xcm
from pubsub_emulator.xcm.instructions import encode_instruction as encode_instruction
from pubsub_emulator.xcm.location import Location as Location
from pubsub_emulator.xcm.location import Parachain as Parachain
from pubsub_emulator.xcm.location import parachain as parachain
from pubsub_emulator.xcm.message import decode as decode
from pubsub_emulator.xcm.message import encode as encode
from pubsub_emulator.xcm.message import message_of as message_of
from pubsub_emulator.xcm.outcome import Complete as Complete
from pubsub_emulator.xcm.outcome import Incomplete as Incomplete
from pubsub_emulator.xcm.outcome import InstructionError as InstructionError
from pubsub_emulator.xcm.outcome import Outcome as Outcome
from pubsub_emulator.xcm.outcome import ProcessMessageError as ProcessMessageError
from pubsub_emulator.xcm.outcome import XcmError as XcmError
from pubsub_emulator.xcm.outcome import XcmErrorKind as XcmErrorKind
from pubsub_emulator.xcm.render import to_json as to_json
from pubsub_emulator.xcm.weigher import FixedWeightBounds as FixedWeightBounds
from pubsub_emulator.xcm.weigher import WeighedMessage as WeighedMessage
from pubsub_emulator.xcm.weigher import XcmWeights as XcmWeights
from pubsub_emulator.xcm.weigher import weigh_message as weigh_message
