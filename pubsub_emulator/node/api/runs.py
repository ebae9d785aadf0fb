"""Runs a block again on its parent and reports the storage that each part of the block wrote.

`dev_runBlock` uses this. The emulator adds some messages to parachains outside of a block's body.
Their writes are missing here.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from pubsub_emulator.emulator.relay.runtime import RelayRuntime
from pubsub_emulator.node.at import At
from pubsub_emulator.primitives.errors import PubsubError, ScaleError
from pubsub_emulator.primitives.header import DigestKind, Header
from pubsub_emulator.primitives.types import ParaBlockNumber
from pubsub_emulator.runtime.accounts.apply import apply_signed
from pubsub_emulator.runtime.accounts.chain import begin
from pubsub_emulator.runtime.accounts.extrinsic import BareExtrinsic, UndecodableExtrinsic, decode
from pubsub_emulator.runtime.framework.dispatch import DispatchOutcome
from pubsub_emulator.runtime.framework.executive import ExhaustsResources, Extrinsic, InherentFailed
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.framework.validity import InvalidTransaction
from pubsub_emulator.runtime.pallet_subscriber.config import RuntimeSpec, runtime_spec
from pubsub_emulator.runtime.pallet_subscriber.view import SubscriberView
from pubsub_emulator.runtime.parachain.accounts import ParachainRoom, parachain_accounts
from pubsub_emulator.runtime.parachain.block import Candidate
from pubsub_emulator.runtime.parachain.descendants import authority_keys
from pubsub_emulator.runtime.parachain.execute import execute_block
from pubsub_emulator.runtime.parachain.governance import root_calls
from pubsub_emulator.runtime.parachain.signed_body import BadBody, note_inherent
from pubsub_emulator.runtime.parachain.validate import judge_proof

INITIALIZATION: Final = "Initialization"
"""The phase before the first extrinsic."""
FINALIZATION: Final = "Finalization"
"""The phase after the last extrinsic."""

Writes = Mapping[bytes, bytes | None]
"""New values by storage key, or `None` for a key that was removed."""


class CannotRun(PubsubError):
    """A block that cannot be executed on the given parent."""


@dataclass(frozen=True, slots=True)
class Phase:
    """The storage that one part of a block wrote."""

    phase: str | int
    """The index of the extrinsic, or `INITIALIZATION` or `FINALIZATION`."""
    writes: Writes


@dataclass(frozen=True, slots=True)
class BlockRun:
    """The result of a block that was run again."""

    phases: tuple[Phase, ...]
    state: State
    """The state after the block."""
    successes: tuple[bool, ...]
    """Whether each extrinsic succeeded, in the order of the body."""


@dataclass(slots=True)
class _Phases:
    """Collects the phases of a block while it runs."""

    state: State
    """The state before the block."""
    known: dict[bytes, bytes | None] = field(default_factory=dict)
    """The keys that the block has written so far, with their present values."""
    ended: list[Phase] = field(default_factory=list)
    """The phases that have ended, in order."""

    def end(self, phase: str | int, written: Writes) -> None:
        """End a phase. `written` contains all writes of the block so far.

        The phase receives the keys whose values have changed since the end of the previous phase.
        """
        get = self.state.top.get
        before = {key: self.known[key] if key in self.known else get(key) for key in written}
        self.ended.append(
            Phase(phase, {key: value for key, value in written.items() if before[key] != value})
        )
        self.known.update(written)

    def finish(self, after: State) -> None:
        """End the block with the finalization phase.

        The phase receives all changes of the block that no earlier phase has. These include the
        roots of child tries, which are only written when the state is completed.
        """
        changed = {key: old for key, old, _ in self.state.top.differences(after.top)}
        before_phase = {**changed, **self.known}
        get = after.top.get
        self.ended.append(
            Phase(
                FINALIZATION,
                {key: get(key) for key, value in before_phase.items() if get(key) != value},
            )
        )


def run_block(parent: At, header: Header, body: Iterable[bytes]) -> BlockRun:
    """Run a block on its parent and return the writes of its phases.

    The parent's state is not changed, and the roots in `header` are not compared with the result.
    Raises `CannotRun` if the block does not follow the parent or cannot be executed.
    """
    extrinsics = tuple(body)
    if header.number != parent.header.number + 1:
        raise CannotRun(f"block {header.number} does not follow block {parent.header.number}")
    try:
        if parent.relay is not None:
            return _run_relay(parent, parent.relay, header, extrinsics)
        return _run_parachain(parent, header, extrinsics)
    except (
        ScaleError,
        UndecodableExtrinsic,
        InvalidTransaction,
        ExhaustsResources,
        InherentFailed,
        BadBody,
    ) as error:
        raise CannotRun(f"{type(error).__name__}: {error}") from error


def _run_relay(
    parent: At, relay: RelayRuntime, header: Header, body: tuple[bytes, ...]
) -> BlockRun:
    """Run a relay block: initialization, inherents, signed extrinsics and finalization."""
    executive, runtime = relay.executive, parent.runtime
    storage = Storage(parent.state.fork())
    phases = _Phases(parent.state)
    # Pallets add all other items while the block runs, and the author adds the seal after it.
    digest = tuple(item for item in header.digest if item.kind is DigestKind.PRE_RUNTIME)
    executive.initialize_block(storage, header.number, parent.header.hash(), digest)
    phases.end(INITIALIZATION, storage.written())
    room = executive.room(storage)
    successes = []
    for index, raw in enumerate(body):
        extrinsic = decode(raw, runtime.calls)
        if isinstance(extrinsic, BareExtrinsic):
            call = runtime.calls.decode(extrinsic.body)
            # The emulator stores the calls of its own accounts and of root as
            # `Utility.dispatch_as(origin, call)`.
            if (call.pallet, call.name) == ("Utility", "dispatch_as"):
                dispatched = Extrinsic(*call.args)  # type: ignore[arg-type]  # its codecs
                outcome = executive.apply_extrinsic(storage, index, dispatched)
            else:
                outcome = executive.apply_inherent(storage, index, call)
        else:
            outcome = apply_signed(runtime.signing, storage, index, raw, room)
        successes.append(outcome.ok)
        phases.end(index, storage.written())
    executive.finalize_block(storage, body)
    phases.finish(storage.state)
    return BlockRun(tuple(phases.ended), storage.state, tuple(successes))


@dataclass(slots=True)
class _WatchedBody:
    """The signed extrinsics of a parachain block, recording a phase for each one that runs.

    `execute_block` runs this instead of the block's usual body.
    """

    extrinsics: tuple[bytes, ...]
    phases: _Phases

    @property
    def length(self) -> int:
        """Return the size of all extrinsics in bytes."""
        return sum(map(len, self.extrinsics))

    def run(self, storage: Storage, spec: RuntimeSpec) -> tuple[DispatchOutcome, ...]:
        """Run all extrinsics after the inherent, which has index 0.

        Raises `InvalidTransaction` if one of them cannot be part of a block.
        """
        note_inherent(storage)
        self.phases.end(0, storage.written())
        signing = parachain_accounts(spec).signing
        room = ParachainRoom()
        outcomes = []
        for index, raw in enumerate(self.extrinsics, 1):
            outcomes.append(apply_signed(signing, storage, index, raw, room))
            self.phases.end(index, storage.written())
        return tuple(outcomes)


def _run_parachain(parent: At, header: Header, body: tuple[bytes, ...]) -> BlockRun:
    """Run a parachain block.

    The subscriber's proof is judged first, as in `validate_block`. Raises `CannotRun` if a trie
    node is missing from it.
    """
    # The inherent is the first extrinsic. It can only be decoded as part of a candidate, so one is
    # built with a body of that extrinsic alone.
    inherent = Candidate.decode(
        header.encode() + bytes((len(body[:1]) << 2,)) + b"".join(body[:1])
    ).inherent
    digest = header.initial_digest()
    storage = Storage(parent.state.fork())
    spec = runtime_spec(storage)
    phases = _Phases(parent.state)
    phases.end(INITIALIZATION, begin(parent.state, parent.header, digest).written())
    storage.start_recording()
    weight = inherent.messages.weight
    calls = root_calls(spec, inherent.messages)
    view = SubscriberView(storage, spec, parent.rules)
    walked, offences = judge_proof(
        view,
        inherent.relay_parent_storage_root,
        inherent.proof,
        spec.budget(weight),
        calls,
        authorities=authority_keys(spec, inherent.descendants),
    )
    if walked.missing is not None:
        raise CannotRun(f"the proof does not hold: {offences[0].detail}")
    number = ParaBlockNumber(header.number)
    watched = _WatchedBody(body[1:], phases)
    outcome = execute_block(
        storage, spec, parent.header, number, digest, inherent, walked, extrinsics=watched
    )
    phases.finish(outcome.state)
    # The inherent always succeeds: a block in which it fails cannot be executed.
    successes = (True, *(extrinsic.ok for extrinsic in outcome.extrinsics))
    return BlockRun(tuple(phases.ended), outcome.state, successes)
