"""`pubsub conform`: our own node keeps every rule, and a node that breaks one is caught by the rule's name."""

import asyncio
import json
import tempfile
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import click.testing
import pytest
from click.testing import CliRunner
from support.broken import breaks
from support.node import serving

from pubsub_emulator.cli.main import pubsub
from pubsub_emulator.client import node
from pubsub_emulator.client.conform import Finding, Mapping, Trial, conform, read_mapping
from pubsub_emulator.client.conform.mapping import Publish
from pubsub_emulator.client.errors import ClientError
from pubsub_emulator.client.metadata import Metadata, parse_metadata
from pubsub_emulator.emulator.scenario.file import load_bundled
from pubsub_emulator.emulator.scenario.model import RelaySettings, published_key
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.emulator.settings import SettingsError
from pubsub_emulator.node.server.options import Build
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.pubsub import derive_child_key
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.framework.storage import State
from pubsub_emulator.runtime.pallet_pubsub import Broadcaster, registry
from pubsub_emulator.runtime.pallet_pubsub.calls import Calls
from pubsub_emulator.runtime.pallet_pubsub.expiry import sweep
from pubsub_emulator.runtime.pallet_pubsub.publish import _set_lifetime, publish, remove_key
from pubsub_emulator.runtime.pallet_pubsub.storage import rows_of
from pubsub_emulator.runtime.pallet_subscriber.apply import _Deliverer, _put_roots, apply
from pubsub_emulator.runtime.parachain.governance import upgrade
from pubsub_emulator.runtime.relay.message_queue.pallet import MessageQueue
from pubsub_emulator.xcm import message
from pubsub_emulator.xcm.barriers import AllowPublishFrom
from pubsub_emulator.xcm.executor import _Machine

SMALL = RelaySettings(
    session_length=10,
    max_stored_keys=20,
    max_total_storage_size=1700,
    max_value_length=128,
    max_publishers=3,
    max_ttl_scans_per_idle=2,
)
"""Limits that few calls reach."""
UPGRADE = Path(tempfile.mkdtemp(prefix="conform-")) / "runtime.scale"
WHOLE = Mapping(offboard_blocks=30, subscribed=(published_key(ParaId(1000), 0).hex(),), upgrade=str(UPGRADE))
"""Everything that a mapping can say, so that no rule is left out that can be tested."""


def held(mapping: Mapping = WHOLE, only: Collection[str] = (), relay: RelaySettings = SMALL) -> dict[str, Finding]:
    """The findings about our own node, by rule."""

    def run(url: str) -> list[Finding]:
        with Trial(url, mapping, {}) as trial:
            return conform(trial, only)

    async def serve() -> list[Finding]:
        scenario = load_bundled("node").model_copy(update={"relay": relay})
        if not UPGRADE.exists():
            spec = Simulation(scenario, accounts=True).network.parachain(2000).spec()
            UPGRADE.write_bytes(replace(spec, spec_version=spec.spec_version + 1).encode())
        async with serving(scenario, build=Build.INSTANT) as served, asyncio.timeout(120):
            return await asyncio.to_thread(run, served.urls[None])

    return {each.rule: each for each in asyncio.run(serve())}


OUT_OF_SIGHT = {"PS-3"}


def test_our_own_node_keeps_every_rule() -> None:
    findings = held()
    assert {name: each for name, each in findings.items() if each.verdict == "broken"} == {}
    assert {name for name, each in findings.items() if each.verdict != "holds"} == OUT_OF_SIGHT
    assert all(findings[name].reason for name in OUT_OF_SIGHT)
    assert len(findings) == 36 + len(OUT_OF_SIGHT)


def test_limits_that_take_too_many_calls_and_leaving_are_not_tested_unless_asked_for() -> None:
    rules = ("PS-8 keys", "PS-8 size", "PS-8 publishers", "PS-21", "PS-11")
    findings = held(Mapping(most_calls=2), rules, RelaySettings())
    assert {each.verdict for each in findings.values()} == {"not testable here"}
    assert "may be spent" in findings["PS-8 keys"].reason


def test_a_chain_with_another_prefix_and_another_entry_needs_a_mapping(monkeypatch: pytest.MonkeyPatch) -> None:
    rows_of.cache_clear()
    breaks(monkeypatch, derive_child_key, 'b"pubsub"', 'b"stored"')
    breaks(monkeypatch, publish, "encode_compact(size) + value + lifetime", "lifetime + encode_compact(size) + value")
    other = Mapping(child_prefix="stored", entry=("ttl", "when_inserted", "value"))
    found = held(other, ["PS-1"])["PS-1"], held(Mapping(), ["PS-1"])["PS-1"]
    rows_of.cache_clear()
    assert [each.verdict for each in found] == ["holds", "broken"]


def test_a_chain_with_other_names_needs_a_mapping(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    others = {
        "DataPublished": "EntryRecorded",
        "PublisherDeposit": "RegistrationBond",
        "force_delete_keys": "root_removes_keys",
    }

    def parse(data: bytes) -> Metadata:
        for ours, theirs in others.items():
            data = data.replace(ours.encode(), theirs.encode())
        return parse_metadata(data)

    monkeypatch.setattr(node, "parse_metadata", parse)
    file = tmp_path / "chain.toml"
    file.write_text("[names]\n" + "".join(f'{ours} = "{theirs}"\n' for ours, theirs in others.items()))
    rules = ("Publish", "PS-12", "force_delete_keys")
    assert {each.verdict for each in held(read_mapping(file), rules).values()} == {"holds"}
    assert held(only=["Publish"])["Publish"].verdict == "broken"
    assert held(only=["PS-12"])["PS-12"].reason == "the chain has no constant PublisherDeposit"
    with pytest.raises(ClientError, match=r"no call Broadcaster\.force_delete_keys"):
        held(only=["force_delete_keys"])


def test_xcm_publishes_where_the_mapping_says_so() -> None:
    by_xcm = WHOLE.model_copy(update={"publish": Publish(by="message")})
    rules = ("PS-1", "PS-7", "Publish", "PS-8", "PS-14", "PS-21")
    assert {name: each.verdict for name, each in held(by_xcm, rules).items()} == dict.fromkeys(rules, "holds")
    other = by_xcm.model_copy(update={"instruction": 53})
    assert held(other, ["Publish"])["Publish"].seen == "'Corrupt'"


def test_a_mapping_is_refused_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "chain.toml"
    file.write_text('pallet = "Broadcaster"\nchild_prefx = "pubsub"\n')
    with pytest.raises(SettingsError, match=r"chain\.toml:2: child_prefx"):
        read_mapping(file)


def test_the_command_reports_each_rule_and_ends_with_one_if_any_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> click.testing.Result:
        async with serving(build=Build.INSTANT) as served, asyncio.timeout(60):
            words = ["conform", served.urls[None] or "", "--rule", "PS-13", "--rule", "PS-2", "--json"]
            return await asyncio.to_thread(CliRunner().invoke, pubsub, words)

    good = asyncio.run(run())
    assert good.exit_code == 0, good.output
    breaks(monkeypatch, sweep, "row.expiry <= now", "row.expiry < now")
    bad = asyncio.run(run())
    report = json.loads(bad.stdout)
    assert bad.exit_code == 1
    assert report["counts"] == {"broken": 1, "holds": 1}
    assert [each["rule"] for each in report["rules"] if each["verdict"] == "broken"] == ["PS-13"]


@pytest.mark.parametrize("answer", [5, ScaleError("4 trailing bytes at offset 0")])
def test_an_answer_of_another_type_is_one_line_and_the_infrastructure(
    answer: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def item(*_arguments: object) -> object:
        if isinstance(answer, ScaleError):
            raise answer
        return answer

    monkeypatch.setattr(node.SubstrateNode, "item", item)
    with pytest.raises(ClientError, match=r"PS-12: the chain's types are not those of the rules: ") as failed:
        held(only=["PS-12"])
    assert failed.value.is_infrastructure


def test_a_node_that_nobody_runs_is_the_infrastructure() -> None:
    with Trial("ws://127.0.0.1:9", Mapping(), {}) as trial, pytest.raises(ClientError, match="nobody") as failed:
        conform(trial, ["PS-2"])
    assert failed.value.is_infrastructure


class Mutant(NamedTuple):
    """A function of the node with a part of it replaced, and the rule that it then breaks."""

    rule: str
    function: Callable[..., Any]
    old: str
    new: str


DEREGISTERED = "deposit_event(storage, PublisherDeregistered(para))"
HELD = "balances.hold(storage, PUBLISHER_DEPOSIT, manager, amount)"
RELEASED = "balances.release(storage, PUBLISHER_DEPOSIT, info.manager, info.deposit, Precision.BEST_EFFORT)"
SET_ROOT = "roots[child_root_key(child_key)] = self._apply_child(child_key, changes)"
OLD_ROOT = """new = self._apply_child(child_key, changes)
            old = self.top.get(child_root_key(child_key))
            roots[child_root_key(child_key)] = new if new is None or old is None else old"""
PUT = "storage.child_put(child, at,"
UPDATE = "growth = size - value_length(old)"
FULL = """
        if _counter(storage, rows.published_keys) >= config.max_stored_keys:
            raise ModuleError(Error.TooManyStoredKeys)"""
SAME = """
        if old[:-8] == encode_compact(size) + value:
            return"""
SCANS = "config.max_ttl_scans_per_idle - examined"
ADMITTED = "if not isinstance(instruction, Publish):"
RENEWED = "if is_finite and not was_finite:\n        storage.put(rows.ttl_row"
SYSTEM = "config.is_system(para) or "

MUTANTS: dict[str, Mutant] = {
    "the owner is not asked for": Mutant(
        "register_publisher",
        Calls.register_publisher,
        "registry.ensure_owner(self.registrar, storage, origin, para)",
        "pass",
    ),
    "a para is registered twice": Mutant(
        "register_publisher", registry.ensure_vacant, "if RegisteredPublishers.contains(storage, para):", "if False:"
    ),
    "the event names another manager": Mutant(
        "register_publisher",
        registry.register,
        "PublisherRegistered(para, manager)",
        "PublisherRegistered(para, AccountId(bytes(32)))",
    ),
    "a registration has no event": Mutant(
        "register_publisher", registry.register, "deposit_event(storage, PublisherRegistered(para, manager))", "pass"
    ),
    "no deposit is held": Mutant("PS-12", registry.register, HELD, "pass"),
    "half the deposit is held": Mutant(
        "PS-12",
        Calls.register_publisher,
        "self.config.deposit_of(para))",
        "Balance(self.config.deposit_of(para) // 2))",
    ),
    "the deposit is not released": Mutant("PS-12", registry.remove, RELEASED, "pass"),
    "the deposit is lost": Mutant(
        "PS-12",
        Calls.deregister_publisher,
        "registry.remove(self.config, self.balances, storage, para)",
        "registry.remove(self.config, self.balances, storage, para, slash=True)",
    ),
    "another deposit is stored than is held": Mutant(
        "PS-12", registry.register, "PublisherInfo(manager, amount)", "PublisherInfo(manager, Balance(0))"
    ),
    "anybody registers as root": Mutant(
        "force_register_publisher", Calls.force_register_publisher, "ensure_root(origin)", "pass"
    ),
    "root's deposit is the usual one": Mutant(
        "force_register_publisher",
        Calls.force_register_publisher,
        "manager, deposit)",
        "manager, self.config.publisher_deposit)",
    ),
    "anybody deregisters": Mutant(
        "deregister_publisher", Calls.deregister_publisher, "registry.ensure_manager(info, origin, para)", "pass"
    ),
    "the data outlives its publisher": Mutant(
        "deregister_publisher", registry._remove_data, "return storage.child_clear(child, prefix)", "return 0"
    ),
    "the lifetimes outlive their publisher": Mutant(
        "deregister_publisher", registry._remove_data, "TtlData.clear(storage, para)", "pass"
    ),
    "the size outlives its publisher": Mutant(
        "deregister_publisher", registry._remove_data, "TotalStorageSize.remove(storage, para)", "pass"
    ),
    "a deregistration has no event": Mutant("deregister_publisher", registry.remove, DEREGISTERED, "pass"),
    "anybody deregisters as root": Mutant(
        "force_deregister_publisher", Calls.force_deregister_publisher, "ensure_root(origin)", "pass"
    ),
    "root deregisters what is not there": Mutant(
        "force_deregister_publisher",
        Calls.force_deregister_publisher,
        "if not registry.is_known(storage, para):",
        "if False:",
    ),
    "anybody publishes": Mutant("PS-7", publish, "if not allowed:", "if False:"),
    "system parachains must register": Mutant("PS-7", publish, SYSTEM, ""),
    "an entry lacks its ttl": Mutant("PS-1", publish, "value + lifetime", "value + lifetime[4:]"),
    "an entry's lifetime is big endian": Mutant("PS-1", publish, 'to_bytes(8, "little")', 'to_bytes(8, "big")'),
    "an entry is dated a block late": Mutant("PS-1", publish, "now << 32", "now + 1 << 32"),
    "an entry lacks its value's length": Mutant("PS-1", publish, "encode_compact(size) + value", "value"),
    "child tries have another prefix": Mutant("PS-1", derive_child_key, 'b"pubsub"', 'b"pubsus"'),
    "child tries are named big endian": Mutant("PS-1", derive_child_key, '"little"', '"big"'),
    "the root of an empty child trie stays": Mutant("PS-2", State._apply_child, "return None", "return trie.root()"),
    "a root is not updated": Mutant("PS-2", State.apply, SET_ROOT, OLD_ROOT),
    "keys are stored backwards": Mutant("PS-4", publish, PUT, "storage.child_put(child, at[::-1],"),
    "a write goes into two child tries": Mutant(
        "PS-5", publish, PUT, f"storage.child_put(rows_of(ParaId(2000)).child, key, value)\n    {PUT}"
    ),
    "a publish has no event": Mutant("Publish", publish, "deposit(storage, DataPublished(para, key, size))", "pass"),
    "the event counts the key": Mutant(
        "Publish", publish, "DataPublished(para, key, size)", "DataPublished(para, key, size + 32)"
    ),
    "the same value again is no write": Mutant("PS-9", publish, UPDATE, f"{UPDATE}{SAME}"),
    "deleting nothing succeeds": Mutant("PS-10", Calls._remove, "if not removed:", "if False:"),
    "anybody deletes": Mutant("delete_keys", Calls.delete_keys, "registry.ensure_manager(info, origin, para)", "pass"),
    "a deletion keeps the entry": Mutant("delete_keys", remove_key, "storage.child_kill(child, at)", "pass"),
    "a deletion keeps the lifetime": Mutant(
        "delete_keys", remove_key, "_set_lifetime(config, storage, rows, key, old[-8:], _INFINITE)", "pass"
    ),
    "keys that are absent are counted": Mutant(
        "delete_keys", Calls._remove, "return removed", "return len(list(keys))"
    ),
    "anybody deletes as root": Mutant("force_delete_keys", Calls.force_delete_keys, "ensure_root(origin)", "pass"),
    "root's deletion is said to be the manager's": Mutant(
        "force_delete_keys", Calls.force_delete_keys, "KeysForcedDeleted(para", "KeysDeleted(para"
    ),
    "a value is refused a byte early": Mutant(
        "PS-8", publish, "size > config.max_value_length", "size >= config.max_value_length"
    ),
    "a key costs nothing": Mutant("PS-8", publish, "growth = KEY_LENGTH + size", "growth = size"),
    "what shrinks frees nothing": Mutant("PS-8", publish, "if growth:", "if growth > 0:"),
    "a key too many": Mutant(
        "PS-8 keys", publish, "stored >= config.max_stored_keys", "stored > config.max_stored_keys"
    ),
    "a key too few": Mutant(
        "PS-8 keys", publish, "stored >= config.max_stored_keys", "stored + 1 >= config.max_stored_keys"
    ),
    "no update at the limit of keys": Mutant("PS-8 keys", publish, UPDATE, f"{UPDATE}{FULL}"),
    "a refused key does not stop its message": Mutant(
        "PS-21",
        _Machine._publish,
        "raise _Failed(XcmError(XcmErrorKind.PublishFailed), failure.error) from failure",
        "return",
    ),
    "a subscriber stores another root than it walked": Mutant(
        "PS-31", _put_roots, "dict(roots)", "{para: Hash(bytes(32)) for para in roots}"
    ),
    "a byte too many": Mutant(
        "PS-8 size", publish, "total > config.max_total_storage_size", "total > config.max_total_storage_size + 1"
    ),
    "a byte too few": Mutant(
        "PS-8 size", publish, "total > config.max_total_storage_size", "total >= config.max_total_storage_size"
    ),
    "a publisher too many": Mutant(
        "PS-8 publishers", registry.ensure_vacant, ">= config.max_publishers", "> config.max_publishers"
    ),
    "an entry expires a block early": Mutant("PS-13", sweep, "row.expiry <= now", "row.expiry <= now + 1"),
    "an entry expires a block late": Mutant("PS-13", sweep, "row.expiry <= now", "row.expiry < now"),
    "the longest lifetime wraps": Mutant("PS-13", sweep, "row.expiry <= now", "row.expiry % 2**32 <= now"),
    "nothing expires": Mutant("PS-13", sweep, "row.expiry <= now", "False"),
    "a lifetime is not renewed": Mutant(
        "PS-14", _set_lifetime, "if is_finite:\n        storage.put(rows.ttl_row", RENEWED
    ),
    "what lasts forever keeps its row": Mutant("PS-14", _set_lifetime, "elif was_finite:", "elif False:"),
    "an expiry has no event": Mutant("PS-16", sweep, "deposit(storage, KeyExpired(row.para, row.key))", "pass"),
    "an expiry names another key": Mutant(
        "PS-16", sweep, "KeyExpired(row.para, row.key)", "KeyExpired(row.para, row.key[::-1])"
    ),
    "an expiry is not counted": Mutant(
        "PS-16",
        remove_key,
        "left = _counter(storage, rows.published_keys) - 1",
        "left = _counter(storage, rows.published_keys)",
    ),
    "a write renews a list of all keys": Mutant(
        "PS-6",
        publish,
        "lifetime = (ttl",
        (
            "storage.put(rows.published_keys + b'all', (storage.get(rows.published_keys + b'all') or b'') + key)\n"
            "    lifetime = (ttl"
        ),
    ),
    "a sweep examines what it likes": Mutant("PS-15", sweep, SCANS, "99 - examined"),
    "what is expired counts as absent": Mutant(
        "PS-17",
        publish,
        "    stored = 0",
        "    old = None if old is not None and 0 < old[-8] + old[-4] <= now else old\n    stored = 0",
    ),
    "a row goes with its neighbour": Mutant(
        "PS-18",
        remove_key,
        "left = _counter(storage, rows.published_keys) - 1",
        (
            "storage.kill(next(iter(storage.next_keys(rows.ttl_prefix)), b'none'))\n"
            "    left = _counter(storage, rows.published_keys) - 1"
        ),
    ),
    "a sweep examines half of what it may": Mutant(
        "PS-19", sweep, SCANS, "config.max_ttl_scans_per_idle // 2 - examined"
    ),
    "bytes may follow a message": Mutant(
        "PS-20",
        message.decode,
        "read_to_end(XcmReader(data, 1), read_instructions)",
        "read_instructions(XcmReader(data, 1))",
    ),
    "an instruction of v5 is not known": Mutant(
        "PS-20", message.decode, "if version != VERSION:", "if version != VERSION or len(data) == 21:"
    ),
    "every message is admitted": Mutant("PS-22", AllowPublishFrom.should_execute, ADMITTED, "if False:"),
    "a message is as long as it likes": Mutant(
        "PS-22", AllowPublishFrom.should_execute, "count > self.max_instructions", "count > 250"
    ),
    "a message too few is admitted": Mutant(
        "PS-22", AllowPublishFrom.should_execute, "count > self.max_instructions", "count >= self.max_instructions"
    ),
    "the last message is the first": Mutant(
        "PS-23", MessageQueue._service_queue, "for message in waiting(raw):", "for message in waiting(raw)[::-1]:"
    ),
    "the subscriber is not told": Mutant(
        "PS-30", _Deliverer.deliver, "deposit(self._storage, DataProcessed(para, key, len(value)))", "pass"
    ),
    "relay parents go back and forth": Mutant(
        "PS-32",
        apply,
        "items.LAST_RELAY_PARENT.put(storage, relay_parent)",
        "items.LAST_RELAY_PARENT.put(storage, relay_parent ^ 1)",
    ),
    "an upgrade forgets the subscriptions": Mutant(
        "PS-33",
        upgrade,
        "storage.put(CODE, spec.encode())",
        "storage.put(CODE, __import__('dataclasses').replace(spec, subscriptions={}).encode())",
    ),
    "data stays when its para leaves": Mutant(
        "PS-11",
        Broadcaster.on_offboard,
        "self._offboard(storage, para) if registry.is_known(storage, para) else 0",
        "0",
    ),
    "the deposit is lost when its para leaves": Mutant(
        "PS-11",
        Broadcaster._offboard,
        "return with_storage_layer(storage, lambda: registry.remove(self.config, self.balances, storage, para))",
        "return registry.remove(self.config, self.balances, storage, para, slash=True)",
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_node_that_breaks_a_rule_is_caught_by_its_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant = MUTANTS[name]
    with monkeypatch.context() as patch:
        rows_of.cache_clear()
        breaks(patch, mutant.function, mutant.old, mutant.new)
        found = held(only=[mutant.rule])[mutant.rule]
    rows_of.cache_clear()
    assert found.verdict == "broken", found
    assert found.expected != found.seen
    assert found.block is not None
