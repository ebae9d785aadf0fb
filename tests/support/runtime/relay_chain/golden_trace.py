"""Traces of 200 relay blocks of mixed activity, each with its state root.

There is one trace for each TTL policy. It is printed as JSON.

    # the trace, all state checked after every block
    python tests/support/runtime/relay_chain/golden_trace.py scan --checked
    # both fixtures anew: see their README first
    python tests/support/runtime/relay_chain/golden_trace.py --write

What happens in a block depends on its number, on draws from a hash of its number, and on the state
before it.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[4]), str(Path(__file__).parents[3])]

from support.runtime.relay_chain import world
from support.runtime.relay_chain.world import (
    ALICE,
    BOB,
    BOUNDARY,
    PUBLIC,
    ROOT,
    SECOND,
    SMALL,
    SYSTEM,
    THIRD,
    UNIT,
    para_origin,
)

from pubsub_emulator.emulator.relay.chain import Genesis, RelayChain
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.framework.executive import Block, Extrinsic
from pubsub_emulator.runtime.framework.message_chains import OutboundHrmpMessage
from pubsub_emulator.runtime.framework.origin import Signed
from pubsub_emulator.runtime.pallet_pubsub import ForcedDeposit, TtlPolicy
from pubsub_emulator.runtime.pallet_pubsub.registry import sovereign_account
from pubsub_emulator.runtime.relay.inclusion import BackedCandidate, CandidateCommitments
from pubsub_emulator.xcm import Instruction, Publish
from pubsub_emulator.xcm.instructions import ClearOrigin, SetTopic

BLOCKS = 200
FIXTURES = Path(__file__).parents[3] / "vectors" / "golden_trace"
FORMAT = 1
PARAS = (SYSTEM, BOUNDARY, PUBLIC, SECOND, THIRD)


def draw(label: str, among: int) -> int:
    return int.from_bytes(blake2_256(label.encode())[:8], "little") % among


@dataclass
class Trace:
    """A relay chain and the rows of its trace."""

    policy: TtlPolicy
    checked: bool
    rows: list[dict[str, object]] = field(default_factory=list)

    def __post_init__(self) -> None:
        config = world.small(SMALL, ttl_policy=self.policy, forced_deposit=ForcedDeposit.SLASHED)
        managers = {ParaId(para): world.MANAGERS[para] for para in PARAS}
        channels = ((ParaId(SYSTEM), ParaId(PUBLIC)), (ParaId(PUBLIC), ParaId(SYSTEM)))
        genesis = Genesis(
            dict.fromkeys(managers, b"genesis"), managers, (ParaId(SECOND),), channels
        )
        self.chain = RelayChain.start(config, genesis)
        self.row({"Genesis": 1})

    def run(self) -> "Trace":
        for number in range(1, BLOCKS + 1):
            self.row(counts(self.step(number)))
        return self

    def step(self, number: int) -> Block:
        if number % 9 == 4:
            self.chain.send_downward(ParaId(PARAS[number % 5]), b"downward %d" % number)
        block = self.chain.build(list(self.candidates(number)), list(self.calls(number)))
        if self.checked:
            world.check(self.chain)
        return block

    def row(self, told: dict[str, int]) -> None:
        header = self.chain.header
        self.rows.append(
            {
                "number": header.number,
                "state_root": header.state_root.hex(),
                "hash": header.hash().hex(),
                "told": told,
            }
        )

    # What happens

    def candidates(self, number: int) -> Iterator[BackedCandidate]:
        """Yield the blocks of parachains.

        Most parachains have a block most of the time. Around every 30th block, they send more
        messages than are served.
        """
        for para in PARAS:
            if draw(f"block {number} {para}", 4) == 0:
                continue
            crowded = number % 30 < 4
            sent = [
                self.message(number, para, i)
                for i in range(draw(f"sent {number} {para}", 3) + 3 * crowded)
            ]
            horizontal: tuple[OutboundHrmpMessage, ...] = ()
            if (para in {SYSTEM, PUBLIC}) and number % 7 == 3 and self.alive(para, SYSTEM, PUBLIC):
                other = ParaId(SYSTEM + PUBLIC - para)
                horizontal = (OutboundHrmpMessage(other, b"sideways %d" % number),)
            commitments = CandidateCommitments(
                tuple(sent),
                horizontal,
                b"head %d of %d" % (number, para),
                self.waiting(para),
                self.chain.number,
            )
            yield BackedCandidate(ParaId(para), self.chain.number, commitments)

    def alive(self, *paras: int) -> bool:
        storage = self.chain.storage()
        return all(self.chain.runtime.paras.is_parachain(storage, ParaId(para)) for para in paras)

    def waiting(self, para: int) -> int:
        """Return how many downward messages a block takes: those that its relay parent knows."""
        return len(self.chain.runtime.dmp.contents(self.chain.storage(), ParaId(para)))

    def message(self, number: int, para: int, index: int) -> bytes:
        label = f"message {number} {para} {index}"
        match draw(label, 16):
            case 0:
                return world.message(ClearOrigin(), self.publish(label))
            case 1:
                return world.message(self.publish(label))[:-1]
            case 2:
                return world.message(*(self.publish(f"{label} {i}") for i in range(4)))
            case 3:
                return b"\x04" + world.message(self.publish(label))[1:]
            case 4:
                return world.message(
                    self.publish(label), Publish(world.key(0), bytes(65), 0), self.publish(label)
                )
            case 5:
                return world.message(self.publish(label), SetTopic(blake2_256(label.encode())))
            case kind:
                return world.message(*(self.publish(f"{label} {i}") for i in range(kind % 3)))

    @staticmethod
    def publish(label: str) -> Instruction:
        """Return an instruction that publishes under one of nine keys.

        So many publishes are updates. Values have four lengths, and some are equal.
        """
        fill = draw(f"fill {label}", 2)
        ttl = (0, 0, 1, 3, 8, 30, 2**32 - 1)[draw(f"ttl {label}", 7)]
        return Publish(
            world.key(draw(f"key {label}", 9)),
            bytes([fill]) * (0, 5, 40, 64)[draw(f"size {label}", 4)],
            ttl,
        )

    def calls(self, number: int) -> Iterator[Extrinsic]:
        """Yield the calls of a block: some belong to this block, the rest is drawn."""
        yield from AT_BLOCK.get(number, ())
        para = PARAS[draw(f"para {number}", 5)]
        keys = [world.key(draw(f"delete {number} {i}", 9)) for i in range(3)]
        match draw(f"call {number}", 12):
            case 0:
                yield world.call(para_origin(para), "delete_keys", para, [*keys, keys[0]])
            case 1:
                yield world.call(ROOT, "force_delete_keys", para, keys)
            case 2:
                yield world.call(Signed(BOB), "delete_keys", para, keys)
            case 3:
                yield world.call(Signed(ALICE), "register_publisher", para)
            case 4:
                yield world.call(para_origin(para), "register_publisher", para)
            case 5:
                yield world.call(Signed(ALICE), "force_register_publisher", ALICE, 0, para)


AT_BLOCK: dict[int, list[Extrinsic]] = {
    2: [world.call(Signed(ALICE), "register_publisher", PUBLIC)],
    3: [world.call(ROOT, "force_register_publisher", ALICE, UNIT // 2, THIRD)],
    9: [world.call(ROOT, "force_register_publisher", BOB, UNIT // 4, 77)],
    17: [
        world.call(Signed(ALICE), "deregister_publisher", THIRD),
        world.call(ROOT, "force_deregister_publisher", 77),
    ],
    21: [world.call(Signed(sovereign_account(ParaId(SECOND))), "register_publisher", THIRD)],
    33: [world.call(Signed(BOB), "deregister", SECOND, pallet="Registrar")],
    48: [world.call(Signed(ALICE), "register", SECOND, b"again", pallet="Registrar")],
    61: [world.call(Signed(ALICE), "register_publisher", SECOND)],
    72: [world.call(ROOT, "force_deregister_publisher", PUBLIC)],
    80: [world.call(Signed(ALICE), "register_publisher", PUBLIC)],
    95: [world.call(ROOT, "deregister", SYSTEM, pallet="Registrar")],
    111: [
        world.call(
            ROOT,
            "set_config",
            replace(SMALL.host, max_upward_queue_count=9, max_head_data_size=100),
            24,
            pallet="Configuration",
        )
    ],
    118: [
        world.call(Signed(BOB), "register", SYSTEM, b"another", pallet="Registrar"),
        world.call(ROOT, "force_register", BOB, SYSTEM, b"another", pallet="Registrar"),
    ],
    140: [world.call(para_origin(PUBLIC), "deregister", PUBLIC, pallet="Registrar")],
    170: [world.call(ROOT, "force_register", ALICE, PUBLIC, b"third", pallet="Registrar")],
    185: [world.call(ROOT, "force_register_publisher", ALICE, UNIT, PUBLIC)],
}


def counts(block: Block) -> dict[str, int]:
    """Return how many events of each kind a block has, and failed calls by their error."""
    told: Counter[str] = Counter()
    for record in block.events:
        event = record.event
        name = type(event).__name__
        error = getattr(event, "dispatch_error", None) or getattr(event, "error", None)
        why = (
            f" {str(error) or type(error).__name__}"
            if name in {"ExtrinsicFailed", "CandidateRefused"}
            else ""
        )
        told[f"{event.PALLET}::{name}{why}"] += 1
    return dict(sorted(told.items()))


def fixture(policy: TtlPolicy, *, checked: bool) -> str:
    rows = ",\n".join(json.dumps(row) for row in Trace(policy, checked).run().rows)
    return f'{{"format": {FORMAT}, "policy": "{policy.value}", "blocks": [\n{rows}\n]}}\n'


def main(arguments: list[str]) -> None:
    if arguments == ["--write"]:
        FIXTURES.mkdir(exist_ok=True)
        for policy in TtlPolicy:
            (FIXTURES / f"{policy.value}.json").write_text(
                fixture(policy, checked=True), encoding="utf-8"
            )
        return
    checked = "--checked" in arguments
    for name in arguments:
        if name != "--checked":
            sys.stdout.write(fixture(TtlPolicy(name), checked=checked))


if __name__ == "__main__":
    main(sys.argv[1:])
