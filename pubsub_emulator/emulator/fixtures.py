"""Executable fixtures (`docs/fixtures.md`): files with one block each, and its expected verdict.

A file has all data that is needed to judge the block, and the expected result.
"""

import json
import re
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from pubsub_emulator.emulator.network.records import BlockRecord, CheckpointRecord, Observer
from pubsub_emulator.files.untrusted import parse_json, read_bytes
from pubsub_emulator.primitives.errors import PubsubError, ScaleError
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.hexadecimal import hexed, unhex
from pubsub_emulator.primitives.pubsub import encode_ttl_state
from pubsub_emulator.primitives.storage_keys import CHILD_STORAGE_PREFIX, CODE
from pubsub_emulator.primitives.types import U32_MAX, U64_MAX, Hash, ParaId, Slot
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.pallet_subscriber.apply import Delivery
from pubsub_emulator.runtime.pallet_subscriber.config import runtime_spec
from pubsub_emulator.runtime.pallet_subscriber.storage import PROCESSING_CURSOR
from pubsub_emulator.runtime.parachain.block import Candidate, ChainHead, InvalidBlock
from pubsub_emulator.runtime.parachain.execute import BlockOutcome
from pubsub_emulator.runtime.parachain.governance import transact
from pubsub_emulator.runtime.parachain.validate import BadState, RelayContext, judge_block

FIXTURE_VERSION: Final = 1
T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


def _hex(text: str) -> str:
    """Check that a text is bytes in the form of fixtures. Raises `ValueError`."""
    if not _HEX.fullmatch(text):
        raise ValueError("bytes are 0x and an even number of lower-case hexadecimal digits")
    return text


def _hash(text: str) -> str:
    """Check that a text is a hash in the form of fixtures. Raises `ValueError`."""
    if len(_hex(text)) != len("0x") + 2 * _HASH_BYTES:
        raise ValueError(f"a hash has {_HASH_BYTES} bytes")
    return text


_HEX: Final = re.compile("0x(?:[0-9a-f]{2})*")
_HASH_BYTES: Final = 32

Hex = Annotated[str, AfterValidator(_hex)]
HashHex = Annotated[str, AfterValidator(_hash)]
U32 = Annotated[int, Field(strict=True, ge=0, le=U32_MAX)]
U64 = Annotated[int, Field(strict=True, ge=0, le=U64_MAX)]


class FixtureError(PubsubError):
    """A fixture that cannot be read or has contradicting parts. The message names the field."""


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Relay(_Model):
    """Facts that the relay chain attests."""

    number: U32
    """The relay parent that the candidate names."""
    storage_root: HashHex | None
    """The storage root of the relay parent; null if the relay chain has no such block."""
    slot_now: U64
    """The newest Aura slot that the candidate may claim."""


class Claims(_Model):
    """The fields of the candidate, for readers; only `candidate` in the fixture counts."""

    parent_hash: HashHex
    number: U32
    slot: U64 | None
    relay_parent_number: U32
    relay_parent_storage_root: HashHex
    messages_used: U32
    post_state_root: HashHex
    proof: list[Hex]


class DeliveryModel(_Model):
    """One delivery to the subscriber's handler."""

    publisher: U32
    key: Hex
    kind: Literal["updated", "removed"]
    entry_hash: Hex
    """The hash of the entry. For a removal, it is the removed one."""
    ttl_state: Hex | None
    """The SCALE encoding of `Infinite`, `ValidFor(u32)` or `TimedOut`; null for a removal."""
    failed: bool
    """Whether the handler failed."""


class OffenceModel(_Model):
    """One failed check, and the bytes that it is about."""

    verdict: str
    subject: list[Hex]


class Expected(_Model):
    """The expected result: a verdict and the evidence, or no verdict and the post-state."""

    verdict: str | None
    """The name of the verdict; null for a valid block."""
    evidence: list[OffenceModel]
    """All offences, in the order in which the verdicts are defined."""
    post_state_root: HashHex
    """The state root after the block; that of the pre-state if the block is refused."""
    deliveries: list[DeliveryModel]
    """The deliveries in the order of the walk."""
    used: U64 | None
    """The bytes of the budget that the walk used; null if the block is refused."""
    cursor: tuple[U32, Hex] | None
    """The publisher and key at which the walk stopped; null if it did not, or without a walk."""


class Fixture(_Model):
    """One block, to be judged again."""

    version: Literal[1] = FIXTURE_VERSION
    """The version of the format. It grows when readers have to change."""
    name: str
    about: str
    """A description of the block for people."""
    chain: U32
    """The parachain's id."""
    parent_header: Hex
    """The SCALE bytes of the parent's header, with its seal."""
    pre_state: list[tuple[Hex, Hex]]
    """All keys and values of the parachain's top trie (state version 1), in ascending order."""
    relay: Relay
    candidate: Hex
    """The SCALE bytes of the whole block. Only these are judged."""
    claims: Claims
    expected: Expected


def make_fixture(name: str, about: str, parent: ChainHead, record: BlockRecord) -> Fixture:
    """Return the fixture of a candidate that was judged on top of `parent`."""
    candidate = record.candidate
    inherent = candidate.inherent
    return Fixture(
        name=name,
        about=about,
        chain=record.chain,
        parent_header=hexed(parent.header.encode()),
        pre_state=[(hexed(key), hexed(value)) for key, value in parent.state.top_entries()],
        relay=Relay(
            number=inherent.relay_parent_number,
            storage_root=(
                None if record.relay_storage_root is None else hexed(record.relay_storage_root)
            ),
            slot_now=record.slot_now,
        ),
        candidate=hexed(candidate.encode()),
        claims=_claims(candidate),
        expected=_expected(parent.state.root(), record.outcome, record.refusal),
    )


def _claims(candidate: Candidate) -> Claims:
    """Return the fields of a candidate for readers."""
    header = candidate.header
    inherent = candidate.inherent
    return Claims(
        parent_hash=hexed(header.parent_hash),
        number=header.number,
        slot=header.aura_slot(),
        relay_parent_number=inherent.relay_parent_number,
        relay_parent_storage_root=hexed(inherent.relay_parent_storage_root),
        messages_used=inherent.messages_used,
        post_state_root=hexed(header.state_root),
        proof=[hexed(node) for node in inherent.proof],
    )


def _expected(
    pre_state_root: Hash, outcome: BlockOutcome | None, refusal: InvalidBlock | None
) -> Expected:
    """Return the result of a block: `outcome` if it is valid, and otherwise `refusal`."""
    evidence = () if refusal is None else refusal.evidence
    cursor = None if outcome is None else outcome.plan.cursor
    return Expected(
        verdict=None if refusal is None else refusal.verdict.value,
        evidence=[
            OffenceModel(verdict=offence.verdict.value, subject=list(map(hexed, offence.subject)))
            for offence in evidence
        ],
        post_state_root=hexed(pre_state_root if outcome is None else outcome.state_root),
        deliveries=[] if outcome is None else list(map(_delivery, outcome.deliveries)),
        used=None if outcome is None else outcome.ledger.used,
        cursor=None if cursor is None else (cursor[0], hexed(cursor[1])),
    )


def _delivery(delivery: Delivery) -> DeliveryModel:
    """Return a delivery in the form of fixtures."""
    state = delivery.ttl_state
    return DeliveryModel(
        publisher=delivery.publisher,
        key=hexed(delivery.key),
        kind="removed" if delivery.value is None else "updated",
        entry_hash=hexed(delivery.entry_hash),
        ttl_state=None if state is None else hexed(encode_ttl_state(state)),
        failed=delivery.failed,
    )


def read_fixture(path: Path) -> Fixture:
    """Return the fixture in a file. Raises `FixtureError` with the file and the field."""
    return parse_fixture(read_bytes(path, error=FixtureError), str(path))


def parse_fixture(data: bytes, place: str) -> Fixture:
    """Return the fixture in `data`.

    Raises `FixtureError` if it cannot be read or its parts do not match. `place` names the data in
    the message.
    """
    document = parse_json(data, place, FixtureError)
    try:
        fixture = checked(Fixture, document, FixtureError)
        opened(fixture)
    except FixtureError as error:
        raise FixtureError(f"{place}: {error}") from error
    return fixture


_REASONS: Final = {
    "missing": "missing",
    "extra_forbidden": "no such field",
    **dict.fromkeys(("int_parsing", "int_type", "int_from_float"), "a whole number is expected"),
    **dict.fromkeys(("list_type", "tuple_type"), "a list is expected"),
    "dict_type": "an object is expected",
    "string_type": "text is expected",
    "too_short": "at least {min_length} is expected, not {actual_length}",
    "greater_than_equal": "a number of at least {ge} is expected",
    "less_than_equal": "a number of at most {le} is expected",
    "literal_error": "{expected} is expected",
}
"""Our words for pydantic's kinds of errors, with the names of their figures."""


def checked(kind: type[M], document: object, error: type[PubsubError]) -> M:
    """Convert a document to a model. Raises `error` with the first invalid field."""
    try:
        return kind.model_validate(document)
    except ValidationError as fault:
        raise error(first_fault(fault, "file")) from fault


def first_fault(fault: ValidationError, whole: str) -> str:
    """Return the first invalid field and the reason.

    `whole` stands for the field if the document as a whole is invalid.
    """
    first = fault.errors(include_url=False)[0]
    if first["type"] in _REASONS:
        reason = _REASONS[first["type"]].format(**first.get("ctx", {}))
    else:
        reason = first["msg"].removeprefix("Value error, ")
    return f"{'.'.join(map(str, first['loc'])) or whole}: {reason}"


class FixtureParts(NamedTuple):
    """The decoded parts of a fixture."""

    parent: ChainHead
    candidate: Candidate
    context: RelayContext


def opened(fixture: Fixture) -> FixtureParts:
    """Decode the parts of a fixture. Raises `FixtureError` that names the field."""
    parent = decoded("parent_header", Header.decode, fixture.parent_header, FixtureError)
    candidate = decoded("candidate", Candidate.decode, fixture.candidate, FixtureError)
    entries = state_entries("pre_state", fixture.pre_state, FixtureError)
    if any(key >= following for (key, _), (following, _) in pairwise(entries)):
        raise FixtureError("pre_state: keys are not strictly ascending")
    claimed = candidate.inherent.relay_parent_number
    if fixture.relay.number != claimed:
        raise FixtureError(
            f"relay.number: {fixture.relay.number}, but the candidate is built on relay block"
            f" {claimed}"
        )
    root = fixture.relay.storage_root
    context = RelayContext(
        claimed, None if root is None else Hash(unhex(root)), Slot(fixture.relay.slot_now)
    )
    return FixtureParts(ChainHead(parent, State.from_entries(entries)), candidate, context)


def decoded(field: str, decode: Callable[[bytes], T], text: str, error: type[PubsubError]) -> T:
    """Decode the hexadecimal digits of a field. Raises `error`, which names the field."""
    try:
        return decode(unhex(text))
    except ScaleError as fault:
        raise error(f"{field}: {fault}") from fault


def state_entries(
    field: str, entries: Iterable[tuple[str, str]], error: type[PubsubError]
) -> list[tuple[bytes, bytes]]:
    """Decode the entries of a parachain's state. Raises `error` if there are child tries."""
    pairs = [(unhex(key), unhex(value)) for key, value in entries]
    if any(key.startswith(CHILD_STORAGE_PREFIX) for key, _ in pairs):
        raise error(f"{field}: a parachain's state holds no child tries")
    return pairs


def write_fixture(fixture: Fixture, path: Path) -> None:
    """Write a fixture as JSON, one field per line."""
    path.write_text(json.dumps(fixture.model_dump(mode="json"), indent=1) + "\n", encoding="utf-8")


def schema() -> dict[str, object]:
    """Return the JSON Schema of a fixture."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Fixture.model_json_schema(),
    }


def replay_fixture(fixture: Fixture) -> list[str]:
    """Judge the block of a fixture and return the differences from the expected result.

    The list of texts is empty if there are none. Raises `FixtureError` if the parts of the fixture
    do not match.
    """
    try:
        parent, candidate, context = opened(fixture)
    except FixtureError as error:
        raise FixtureError(f"{fixture.name}: {error}") from error
    root = parent.state.root()
    committed = parent.header.state_root
    if root != committed:
        return [
            f"pre_state: its root is {hexed(root)}, the parent's header says {hexed(committed)}"
        ]
    try:
        outcome, refusal = judge_block(parent, candidate, context)
    except BadState as error:
        raise FixtureError(f"{fixture.name}: pre_state: {error}") from error
    actual = {**_claims(candidate).model_dump(), **_expected(root, outcome, refusal).model_dump()}
    wanted = {**fixture.claims.model_dump(), **fixture.expected.model_dump()}
    # Claims and results both have a post-state root, so one needs another name.
    actual["claimed post_state_root"] = hexed(candidate.header.state_root)
    wanted["claimed post_state_root"] = fixture.claims.post_state_root
    differing = [field for field in wanted if wanted[field] != actual[field]]
    return [f"{field}: expected {wanted[field]}, found {actual[field]}" for field in differing]


class FixtureMaker(Observer):
    """An observer that makes fixtures of candidates.

    It makes at most `per_kind` for each verdict and strategy, and for each feature of valid blocks.
    """

    def __init__(self, per_kind: int = 2) -> None:
        self.fixtures: list[Fixture] = []
        self.strategies: set[str] = set()
        """The strategies of all fixtures so far."""
        self._per_kind = per_kind
        self._seen: dict[str, int] = {}
        """The number of fixtures of each kind."""
        self._heads: dict[ParaId, ChainHead] = {}
        """The newest block of each chain."""

    def checkpoint(self, record: CheckpointRecord) -> None:
        """Store the genesis of a chain, which is its first checkpoint."""
        self._heads.setdefault(record.chain, ChainHead(record.header, record.state).fork())

    def candidate(self, record: BlockRecord) -> None:
        """Make a fixture unless there are enough of the candidate's kind. Follow the chain."""
        parent = self._heads[record.chain]
        kind, about = _kind(parent.state, record)
        count = self._seen.get(kind, 0)
        # Some cheats have values that cannot be encoded, such as a map with a duplicate key. A
        # fixture consists of bytes, so it cannot contain them.
        if (
            count < self._per_kind
            and Candidate.decode(record.candidate.encode()) == record.candidate
        ):
            self._seen[kind] = count + 1
            self.strategies.update(() if record.strategy is None else (record.strategy,))
            self.fixtures.append(make_fixture(f"{kind}-{count + 1}", about, parent, record))
        if record.outcome is not None:
            self._heads[record.chain] = ChainHead(
                record.candidate.header, record.outcome.state
            ).fork()


def _kind(state: State, record: BlockRecord) -> tuple[str, str]:
    """Return a short name and a description of the kind of a candidate on top of `state`."""
    if record.refusal is not None:
        verdict = record.refusal.verdict.value
        strategy = record.strategy or "unplanned"
        return (
            f"rejected-{verdict}-{strategy}".replace(" ", "-").lower(),
            f"{strategy}: {record.refusal}",
        )
    if record.outcome is None:
        return "unjudged", "a candidate that was not judged"
    storage = Storage(state)
    policy = runtime_spec(storage).cache.value
    kind, about = _accepted(storage, record.candidate, record.outcome)
    return f"accepted-{policy}-{kind}", f"cache policy {policy}: {about}"


def _accepted(storage: Storage, candidate: Candidate, outcome: BlockOutcome) -> tuple[str, str]:
    """Return the name and description of the most notable feature of a valid block."""
    plan = outcome.plan
    inherent = candidate.inherent
    if outcome.state.top.get(CODE) != storage.get(CODE):
        return "upgrade", "a downward message brings another runtime"
    if plan.cursor is not None:
        return "stopped", "the stop rule fired; the cursor is where the next walk starts"
    if PROCESSING_CURSOR.get(storage) is not None:
        return (
            "resumed",
            "a walk that was stopped goes on at the cursor, round to where it began, and ends",
        )
    if plan.changed_key_sets:
        return "new-subscriptions", "the key set of a publisher changed, its cache is not trusted"
    if any(message.msg.startswith(transact(b"")[:-1]) for message in inherent.messages.downward):
        return "order", "a downward message brings a root call"
    if any(delivery.value is None for delivery in outcome.deliveries):
        return "removal", "an entry that was delivered before is gone"
    if inherent.messages.downward or inherent.messages.horizontal:
        return "messages", "messages came, and the budget is what they leave"
    if outcome.deliveries:
        return "update", "entries are new or changed"
    return "unchanged", "nothing changed: the top paths prove it"
