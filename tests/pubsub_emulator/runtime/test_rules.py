"""Rules that take the place of shipped ones: how a state names them, and who refuses what."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pubsub_emulator.emulator.observers.summary import Summary
from pubsub_emulator.emulator.scenario.model import Scenario
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.laboratory.experiments.experiment import Workload, measure
from pubsub_emulator.primitives.draws import MILLION
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.pubsub import ValidFor, derive_child_key
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.pallet_pubsub import Config
from pubsub_emulator.runtime.pallet_pubsub.storage import PublishedKeys, TotalStorageSize
from pubsub_emulator.runtime.pallet_subscriber.config import (
    ImpossibleConfig,
    RuntimeSpec,
    decode_spec,
)
from pubsub_emulator.runtime.parachain.genesis import genesis
from pubsub_emulator.runtime.rules import (
    SEAMS,
    SHIPPED,
    RuleFailed,
    Rules,
    RulesError,
    make_rules,
    rule,
)

PLAIN = RuntimeSpec(ParaId(2000), {})
DIGEST = bytes(range(32))


@given(st.booleans(), st.one_of(st.just(b""), st.binary(min_size=32, max_size=32)))
def test_a_runtime_has_its_rules_digest_and_shipped_rules_add_no_byte(
    accounts: bool, digest: bytes
) -> None:
    spec = replace(PLAIN, accounts=accounts, rules=digest)
    assert decode_spec(spec.encode()) == spec
    assert len(spec.encode()) == len(PLAIN.encode()) + (accounts or bool(digest)) + len(digest)


@pytest.mark.parametrize(
    "tail",
    [b"\x00", b"\x04", b"\x02", b"\x02" + bytes(31), b"\x02" + bytes(33), b"\x01" + bytes(32)],
)
def test_any_other_bytes_after_a_runtime_are_refused(tail: bytes) -> None:
    with pytest.raises(ScaleError):
        decode_spec(PLAIN.encode() + tail)


def test_a_runtime_whose_rules_are_not_loaded_is_refused_by_their_digest() -> None:
    with pytest.raises(ImpossibleConfig, match=f"the rules 0x{DIGEST[::-1].hex()} are not loaded"):
        genesis(replace(PLAIN, rules=DIGEST[::-1]), (bytes(32),))


def test_every_seam_is_a_field_and_every_field_a_seam() -> None:
    assert set(Rules.__dataclass_fields__) - {"digest", "path"} == set(SEAMS)


@pytest.mark.parametrize(
    ("name", "arguments", "result", "said"),
    [
        ("lifetime", (1, 1, 1, 1), -1, "which is not a u32"),
        ("lifetime", (1, 1, 1, 1), True, "returned True, not int"),
        ("deposit", (1, 1), -1, "which is negative"),
        ("share", (1, 1, 1), -1, "which is negative"),
        ("message_limit", (1, 1), -1, "which is negative"),
        ("horizontal_room", (1, 1, 1), -1, "which is negative"),
        ("may_hash", (1, 1, 1), 1, "returned 1, not bool"),
        ("reserve", (1,), 1.0, "returned 1.0, not int"),
        ("may_publish", (1, True, True), None, "returned None, not bool"),
        ("resume", (None, ()), 3, "not tuple or None"),
        ("order", ([], 1), [(1,)], "TypeError"),
        ("order", ([], 1), 1, "returned 1, not list"),
        ("checks", ((),), [], "not tuple"),
        ("encode", (b"", 0, 0), "text", "returned 'text', not bytes"),
        ("decode", (b"",), (b"", 1), "not value, u32 and u32"),
        ("decode", (b"",), (b"", 1, 1 << 32), "not value, u32 and u32"),
        ("clock", (1, 1), 1 << 32, "which is not a u32"),
        ("place", (1,), (b"", ""), "not two bytes values"),
    ],
)
def test_a_result_that_a_seam_does_not_take_is_refused(
    name: str, arguments: tuple[object, ...], result: object, said: str
) -> None:
    rules = make_rules("mine.py", DIGEST, {name: lambda *_arguments: result})
    with pytest.raises(RuleFailed, match="mine.py, line [0-9]+: .*" + said):
        getattr(rules, name)(*arguments)


BACKWARDS = make_rules(
    "mine.py",
    DIGEST,
    {
        "encode": lambda value, ttl, inserted: (
            (ttl << 32 | inserted).to_bytes(8, "big") + value[::-1]
        ),
        "decode": lambda data: (
            data[:7:-1],
            int.from_bytes(data[:4], "big"),
            int.from_bytes(data[4:8], "big"),
        ),
    },
)


SHARED = make_rules("mine.py", DIGEST, {"place": lambda para: (b"all", para.to_bytes(4, "little"))})


@pytest.mark.parametrize(
    ("other", "cache"),
    [
        (BACKWARDS, "nodes"),
        (SHARED, "slots"),
        (SHARED, "none"),
    ],
    ids=["encoding", "place", "bare"],
)
def test_entries_of_another_encoding_or_place_are_counted_expired_and_delivered_alike(
    other: Rules, cache: str
) -> None:
    group = {"paras": [1000, 1001], "keys": 30, "value_size": {"min": 0, "max": 300}, "ttl": [0, 3]}
    seen = []
    for rules in (SHIPPED, other):
        simulation = _simulation(
            {**group, "update_rate": 0.1, "delete_rate": 0.1}, {"cache": cache}, rules=rules
        )
        deliveries = [
            sorted(
                (each.publisher, each.key, each.value or b"", str(each.ttl_state)) for each in made
            )
            for made in (simulation.step().deliveries(2000) for _ in range(25))
        ]
        relay = simulation.network.relay
        relay.runtime.executive.try_state(relay.storage())
        counters = [
            item.get(relay.storage(), ParaId(1001)) for item in (PublishedKeys, TotalStorageSize)
        ]
        seen.append((deliveries, counters, relay.state.root()))
    assert any(value == b"" for made in seen[0][0] for _, _, value, _ in made)
    assert seen[0][:2] == seen[1][:2]
    assert seen[0][2] != seen[1][2]


@pytest.mark.parametrize("other", [BACKWARDS, SHARED], ids=["encoding", "place"])
def test_an_experiment_stores_entries_as_the_rules_do(other: Rules) -> None:
    found = measure(Workload(publishers=2, keys=3, update_rate=MILLION, spread=2), other)
    assert (found.latency_max, found.undelivered) == (1, 0)


def test_one_trie_for_all_loses_only_the_leaving_publishers_entries() -> None:
    other = {"paras": [2102], "keys": 5}
    leaving = {"paras": [2100, 2101], "keys": 5, "offboard_at": 8}
    simulation = _simulation(leaving, {}, other, rules=SHARED, session_length=10)
    for _ in range(25):
        simulation.step()
    relay = simulation.network.relay
    relay.runtime.executive.try_state(relay.storage())
    assert {key[:4] for key, _ in relay.state.child_entries(b"all")} == {
        (2102).to_bytes(4, "little")
    }


def test_lifetimes_count_slots_for_relay_chain_and_subscriber_if_the_clock_does() -> None:
    child, seen = derive_child_key(ParaId(1000)), []
    for rules in (SHIPPED, make_rules("mine.py", DIGEST, {"clock": lambda _number, slot: slot})):
        group = {"paras": [1000], "keys": 1, "ttl": 8}
        simulation = _simulation(group, {}, rules=rules, missed_slots=1)
        summary = Summary()
        simulation.network.observe(summary)
        told = [each.ttl_state for _ in range(4) for each in simulation.step().deliveries(2000)]
        while simulation.network.relay.state.child_root(child) is not None:
            simulation.step()
        late = summary.chains[ParaId(2000)].latest
        seen.append((told, simulation.network.number, dict(summary.lags), late))
    # published in block 2, delivered on block 2: two slots pass with each block
    assert seen == [([ValidFor(8)], 10, {0: 1}, 1), ([ValidFor(8)], 6, {0: 1}, 1)]


def _simulation(
    group: object,
    subscriber: dict[str, object],
    *others: object,
    rules: Rules = SHIPPED,
    **relay: object,
) -> Simulation:
    scenario = {
        "name": "n",
        "seed": "n",
        "relay_blocks": 25,
        "relay": relay,
        "publishers": [group, *others],
        "subscribers": [{"para": 2000, "subscribe": [{"publishers": "all"}], **subscriber}],
    }
    return Simulation(Scenario.model_validate(scenario), rules=rules)


def test_constants_and_a_runtime_of_another_kind_are_refused() -> None:
    rules = make_rules(
        "mine.py", DIGEST, {"constants": lambda _config: 1, "runtime": lambda _spec: 1}
    )
    with pytest.raises(RuleFailed, match="not the configuration"):
        Config(rules=rules).ruled()
    with pytest.raises(RuleFailed, match="not the runtime"):
        RuntimeSpec(ParaId(1), {}).ruled(rules)


def test_a_function_of_no_seam_or_of_other_arguments_is_no_rule() -> None:
    def lifetimes(ttl: int) -> int:
        return ttl

    def expired(*rows: int) -> bool:
        return bool(rows)

    with pytest.raises(RulesError, match="did you mean lifetime"):
        rule(lifetimes)
    with pytest.raises(RulesError, match="takes 2 arguments: expiry, now"):
        rule(expired)
