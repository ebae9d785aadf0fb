"""The archive as an ICRC-3 log."""

import pytest
from support.canister_apps import NAME, Source, emit

from pubsub_emulator.events.log.memory import MemoryStore
from pubsub_emulator.icrc72.archive import BLOCK_TYPE, Archive
from pubsub_emulator.icrc72.client import REPLAY
from pubsub_emulator.icrc72.ic.candid.decode import Decoder
from pubsub_emulator.icrc72.ic.candid.did import parse
from pubsub_emulator.icrc72.ic.candid.encode import Encoder
from pubsub_emulator.icrc72.ic.principal import ANONYMOUS, Principal
from pubsub_emulator.icrc72.role import RoleCanister
from pubsub_emulator.icrc72.value_hash import icrc3_value, value_hash
from pubsub_emulator.icrc72.values import Value, blob, class_, first, map_, nat, of
from pubsub_emulator.testing.canisters import Canisters

ICRC3 = """
type Value = variant {
  Blob : blob; Text : text; Nat : nat; Int : int; Array : vec Value; Map : vec record { text; Value };
};
type GetBlocksArgs = vec record { start : nat; length : nat };
type GetBlocksResult = record {
  log_length : nat; blocks : vec record { id : nat; block : Value };
  archived_blocks : vec record { args : GetBlocksArgs; callback : func (GetBlocksArgs) -> (GetBlocksResult) query };
};
service : { icrc3_get_blocks : (GetBlocksArgs) -> (GetBlocksResult) query };
"""


def test_s001_003_the_archive_is_an_icrc_3_log_whose_blocks_are_chained() -> None:
    lab = Canisters()
    archive = Archive(MemoryStore("kept"))
    where = lab.network.create(0, RoleCanister([archive]))
    app = Source(lab.orchestrator, lab.settings, publications={NAME: {REPLAY: True}}, archive=where, keep=0)
    source = archive.writer = lab.network.create(0, app)
    lab.step(60)
    emit(lab, source, *range(1, 8), rounds=2)
    lab.step(100)
    method = parse(ICRC3).methods["icrc3_get_blocks"]
    found: list[Value] = []
    for start, length in ((0, 3), (3, 100)):
        arg = Encoder(method.arguments).encode(((start, length),))
        answer = lab.network.query(ANONYMOUS, where, "icrc3_get_blocks", arg)
        ((log_length, blocks, archived),) = Decoder(method.results).decode(answer.data)  # type: ignore[misc]
        assert (log_length, archived) == (7, ())
        assert [number for number, _ in blocks] == list(range(start, min(start + length, 7)))
        found += [block for _, block in blocks]
    parent: bytes | None = None
    for number, block in enumerate(found, 1):
        parts = dict(block.value)  # type: ignore[arg-type]
        assert parts["btype"] == ("Text", BLOCK_TYPE)
        assert parts.get("phash") == (None if parent is None else ("Blob", parent))
        assert first(parts["tx"].value, "data") == map_({"n": nat(number)})
        assert first(parts["tx"].value, "source") == blob(source)
        parent = value_hash(block)
    assert lab.ask("icrc3_supported_block_types", to=where)[0][0] == BLOCK_TYPE


@pytest.mark.parametrize(
    "value",
    [of(True), of(1.5), of(None), of({"a": [True, None, b"x", -3]}), class_(("a", of(True))), of(Principal(b"x"))],
)
def test_a_value_has_the_hash_of_its_icrc_3_form(value: Value) -> None:
    made = icrc3_value(value)
    assert value_hash(made) == value_hash(value)
    encoder = Encoder((parse(ICRC3).types["Value"],))
    assert Decoder((parse(ICRC3).types["Value"],)).decode(encoder.encode(made)) == (made,)
