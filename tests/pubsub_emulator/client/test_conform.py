"""`pubsub conform`: our own node keeps every rule, and a node that breaks one is caught by the
rule's name.
"""

import asyncio
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click.testing
import pytest
from click.testing import CliRunner
from support.node.nodes import serving
from support.plumbing.broken import breaks

from pubsub_emulator.cli.commands.conform import exit_code
from pubsub_emulator.cli.main import pubsub
from pubsub_emulator.client import live_state, node
from pubsub_emulator.client.conform import Finding, Mapping, Trial, conform, read_mapping
from pubsub_emulator.client.conform.mapping import PublishCall
from pubsub_emulator.client.conform.trial import Broken, Verdict, expect
from pubsub_emulator.client.errors import BadAnswer, ClientError, NodeRefused
from pubsub_emulator.client.metadata import Metadata, parse_metadata
from pubsub_emulator.emulator.scenario.file import load_bundled
from pubsub_emulator.emulator.scenario.model import RelaySettings, published_key
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.files.settings import SettingsError
from pubsub_emulator.node.server.options import Build
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.pubsub import derive_child_key
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.framework.storage import State
from pubsub_emulator.runtime.pallet_pubsub import Broadcaster, registry
from pubsub_emulator.runtime.pallet_pubsub.expiry import sweep
from pubsub_emulator.runtime.pallet_pubsub.publish import _set_lifetime, publish, remove_key
from pubsub_emulator.runtime.pallet_pubsub.storage import rows_of
from pubsub_emulator.runtime.pallet_subscriber.apply import _Deliverer, apply
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
WHOLE = Mapping(
    offboard_blocks=30, subscribed=(published_key(ParaId(1000), 0).hex(),), upgrade=str(UPGRADE)
)
"""Everything that a mapping can say, so that no rule is left out that can be tested."""


def held(
    mapping: Mapping = WHOLE, only: Collection[str] = (), relay: RelaySettings = SMALL
) -> dict[str, Finding]:
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


def test_the_default_node_with_its_default_limits_is_judged() -> None:
    """The second largest value and many calls in one extrinsic take more than 10,000 characters."""
    findings = held(Mapping(), relay=RelaySettings())
    assert Counter(each.verdict for each in findings.values()) == {
        "holds": 28,
        "not testable here": 9,
    }
    assert not any(each.is_unreadable for each in findings.values())
    assert findings["PS-8 size"].verdict == "holds"


def test_expensive_limits_and_leaving_are_tested_only_on_request() -> None:
    rules = ("PS-8 keys", "PS-8 size", "PS-8 publishers", "PS-21", "PS-11")
    findings = held(Mapping(most_calls=2), rules, RelaySettings())
    assert {each.verdict for each in findings.values()} == {"not testable here"}
    assert "and the limit is 2" in findings["PS-8 keys"].reason


def test_a_chain_with_another_prefix_and_another_entry_needs_a_mapping(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows_of.cache_clear()
    breaks(monkeypatch, derive_child_key, 'b"pubsub"', 'b"stored"')
    breaks(
        monkeypatch,
        publish,
        "encode_compact(size) + value + lifetime",
        "lifetime + encode_compact(size) + value",
    )
    other = Mapping(child_prefix="stored", entry=("ttl", "when_inserted", "value"))
    found = held(other, ["PS-1"])["PS-1"], held(Mapping(), ["PS-1"])["PS-1"]
    rows_of.cache_clear()
    assert [each.verdict for each in found] == ["holds", "broken"]


def test_a_chain_with_other_names_needs_a_mapping(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
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
    file.write_text(
        "[names]\n" + "".join(f'{ours} = "{theirs}"\n' for ours, theirs in others.items())
    )
    rules = ("Publish", "PS-12", "force_delete_keys")
    assert {each.verdict for each in held(read_mapping(file), rules).values()} == {"holds"}
    assert held(only=["Publish"])["Publish"].verdict == "broken"
    assert held(only=["PS-12"])["PS-12"].reason == "the chain has no constant PublisherDeposit"
    unnamed = held(only=["force_delete_keys"])["force_delete_keys"]
    assert unnamed.reason == "the chain has no call Broadcaster.force_delete_keys"


def test_xcm_publishes_where_the_mapping_says_so() -> None:
    by_xcm = WHOLE.model_copy(update={"publish": PublishCall(by="message")})
    rules = ("PS-1", "PS-7", "Publish", "PS-8", "PS-14", "PS-21")
    assert {name: each.verdict for name, each in held(by_xcm, rules).items()} == dict.fromkeys(
        rules, "holds"
    )
    other = by_xcm.model_copy(update={"instruction": 53})
    assert held(other, ["Publish"])["Publish"].seen == "'Corrupt'"


def test_the_mapping_on_the_page_is_the_default_one(tmp_path: Path) -> None:
    page = Path(__file__).parents[3] / "docs" / "howto" / "hold-a-chain-to-the-rules.md"
    block = page.read_text().partition("```toml\n")[2].partition("```")[0]
    file = tmp_path / "chain.toml"
    file.write_text(block)
    expected = Mapping(names={"DataPublished": "EntryWritten"})
    assert read_mapping(file) == expected


def test_a_mapping_is_refused_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "chain.toml"
    file.write_text('pallet = "Broadcaster"\nchild_prefx = "pubsub"\n')
    with pytest.raises(SettingsError, match=r"chain\.toml:2: child_prefx"):
        read_mapping(file)


def test_the_command_reports_each_rule_and_exits_1_if_any_is_broken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def run() -> click.testing.Result:
        async with serving(build=Build.INSTANT) as served, asyncio.timeout(60):
            words = [
                "conform",
                served.urls[None] or "",
                "--rule",
                "PS-13",
                "--rule",
                "PS-2",
                "--json",
            ]
            return await asyncio.to_thread(CliRunner().invoke, pubsub, words)

    good = asyncio.run(run())
    assert good.exit_code == 0, good.output
    assert "testing 2 rules" in good.stderr
    assert "2 hold\n" in good.stderr
    breaks(monkeypatch, sweep, "row.expiry <= now", "row.expiry < now")
    bad = asyncio.run(run())
    report = json.loads(bad.stdout)
    assert bad.exit_code == 1
    assert report["counts"] == {"broken": 1, "holds": 1}
    assert "1 broken, 1 holds\n" in bad.stderr
    assert [each["rule"] for each in report["rules"] if each["verdict"] == "broken"] == ["PS-13"]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(5, id="a number"),
        pytest.param(ScaleError("4 trailing bytes at offset 0"), id="an error"),
    ],
)
def test_an_answer_of_another_type_makes_its_rule_untestable(
    answer: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def item(*_arguments: object) -> object:
        if isinstance(answer, ScaleError):
            raise answer
        return answer

    monkeypatch.setattr(node.SubstrateNode, "item", item)
    found = held(only=["PS-12", "PS-4"])
    assert found["PS-12"].verdict == "not testable here"
    assert "the chain's types are not those of the rules: " in found["PS-12"].reason
    assert found["PS-12"].is_unreadable


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        pytest.param(
            BadAnswer("the answer is not a number"), "the answer is not a number", id="a bad answer"
        ),
        pytest.param(
            NodeRefused("state_getStorage", -32000, "State discarded"),
            "State discarded",
            id="a refusal",
        ),
    ],
)
def test_an_answer_that_cannot_be_used_costs_one_rule_only(
    error: ClientError, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PS-4 reads no balances, so it does not meet the answer that PS-12 meets."""
    item = node.SubstrateNode.item

    async def without_accounts(
        chain: node.SubstrateNode, block: bytes, pallet: str, name: str, *keys: bytes
    ) -> object:
        if name == "Account":
            raise error
        return await item(chain, block, pallet, name, *keys)

    monkeypatch.setattr(node.SubstrateNode, "item", without_accounts)
    found = held(only=["PS-12", "PS-4"])
    assert {name: each.verdict for name, each in found.items()} == {
        "PS-12": "not testable here",
        "PS-4": "holds",
    }
    assert reason in found["PS-12"].reason


def test_a_proof_that_the_node_refuses_does_not_break_a_rule(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A node that pruned a state says nothing about the rule, and no proof contradicts it."""
    ask = live_state.BlockingNode.ask

    def refusing(chain: live_state.BlockingNode, method: str, *params: object) -> object:
        if method == "state_getReadProof":
            raise NodeRefused(method, 4003, "State already discarded")
        return ask(chain, method, *params)

    monkeypatch.setattr(live_state.BlockingNode, "ask", refusing)
    found = held(only=["PS-4"])["PS-4"]
    assert (found.verdict, found.is_unreadable) == ("not testable here", True)
    assert "State already discarded" in found.reason


def test_the_command_ends_with_four_if_unreadable_answers_leave_no_rule_judged() -> None:
    def finding(verdict: Verdict, *, unreadable: bool = False) -> Finding:
        return Finding("PS-1", "", verdict, is_unreadable=unreadable)

    held_one = finding("holds")
    broken = finding("broken")
    unreadable = finding("not testable here", unreadable=True)
    untestable = finding("not testable here")
    assert exit_code([held_one, unreadable, untestable]) == 0
    assert exit_code([untestable]) == 0
    assert exit_code([unreadable, untestable]) == 4
    assert exit_code([unreadable, broken]) == 1


def test_long_values_are_cut_to_where_they_differ() -> None:
    value = bytes(300)
    with pytest.raises(Broken) as broken:
        expect(value, value + b"\1", 7)
    assert broken.value.expected.endswith("00")
    assert broken.value.seen.endswith("01")


def test_a_node_that_nobody_runs_is_the_infrastructure() -> None:
    with (
        Trial("ws://127.0.0.1:9", Mapping(), {}) as trial,
        pytest.raises(ClientError, match="nobody") as failed,
    ):
        conform(trial, ["PS-2"])
    assert failed.value.is_infrastructure


MUTANTS: dict[Callable[..., Any], str] = {
    Broadcaster.register_publisher: (
        """
        register_publisher | the owner is not asked for
            | registry.ensure_owner(self.registrar, storage, origin, para)
            -> pass
        PS-12 | half the deposit is held | self.config.deposit_of(para))
            -> Balance(self.config.deposit_of(para) // 2))
    """
    ),
    registry.ensure_vacant: (
        """
        register_publisher | a para is registered twice
            | if RegisteredPublishers.contains(storage, para): -> if False:
        PS-8 publishers | a publisher too many | >= config.max_publishers -> > config.max_publishers
    """
    ),
    registry.register: (
        """
        register_publisher | the event names another manager | PublisherRegistered(para, manager)
            -> PublisherRegistered(para, AccountId(bytes(32)))
        register_publisher | a registration has no event
            | deposit_event(storage, PublisherRegistered(para, manager))
            -> pass
        PS-12 | no deposit is held | balances.hold(storage, PUBLISHER_DEPOSIT, manager, amount)
            -> pass
        PS-12 | another deposit is stored than is held | manager, amount)) -> manager, Balance(0)))
    """
    ),
    registry.remove: (
        """
        PS-12 | the deposit is not released | else: -> elif False:
        deregister_publisher | a deregistration has no event
            | deposit_event(storage, PublisherDeregistered(para))
            -> pass
    """
    ),
    Broadcaster.deregister_publisher: (
        """
        PS-12 | the deposit is lost | balances, storage, para)
            -> balances, storage, para, slash=True)
        deregister_publisher | anybody deregisters | registry.ensure_manager(info, origin, para)
            -> pass
    """
    ),
    Broadcaster.force_register_publisher: (
        """
        force_register_publisher | anybody registers as root | ensure_root(origin) -> pass
        force_register_publisher | root's deposit is the usual one | manager, deposit)
            -> manager, self.config.publisher_deposit)
    """
    ),
    registry._remove_data: (
        """
        deregister_publisher | the data outlives its publisher
            | return storage.child_clear(child, prefix) -> return 0
        deregister_publisher | the lifetimes outlive their publisher | TtlData.clear(storage, para)
            -> pass
        deregister_publisher | the size outlives its publisher
            | TotalStorageSize.remove(storage, para) -> pass
    """
    ),
    Broadcaster.force_deregister_publisher: (
        """
        force_deregister_publisher | anybody deregisters as root | ensure_root(origin) -> pass
        force_deregister_publisher | root deregisters what is not there
            | if not registry.is_known(storage, para):
            -> if False:
    """
    ),
    publish: (
        """
        PS-7 | anybody publishes | if not allowed: -> if False:
        PS-7 | system parachains must register | config.is_system(para) or -> False or
        PS-1 | an entry lacks its ttl | value + lifetime -> value + lifetime[4:]
        PS-1 | an entry's lifetime is big endian | to_bytes(8, "little") -> to_bytes(8, "big")
        PS-1 | an entry is dated a block late | now << 32 -> now + 1 << 32
        PS-1 | an entry lacks its value's length | encode_compact(size) + value -> value
        PS-4 | keys are stored backwards | storage.child_put(child, stored_key,
            -> storage.child_put(child, stored_key[::-1],
        PS-5 | a write goes into two child tries | storage.child_put(child, stored_key,
            -> storage.child_put(rows_of(ParaId(2000)).child, key, value)
            \\n    storage.child_put(child, stored_key,
        Publish | a publish has no event | deposit(storage, DataPublished(para, key, size)) -> pass
        Publish | the event counts the key | DataPublished(para, key, size)
            -> DataPublished(para, key, size + 32)
        PS-9 | the same value again is no write | growth = size - value_length(old)
            -> growth = size - value_length(old)
            \\n        if old[:-8] == encode_compact(size) + value:\\n            return
        PS-8 | a value is refused a byte early | size > config.max_value_length
            -> size >= config.max_value_length
        PS-8 | a key costs nothing | growth = KEY_LENGTH + size -> growth = size
        PS-8 | what shrinks frees nothing | if growth: -> if growth > 0:
        PS-8 keys | a key too many | stored >= config.max_stored_keys
            -> stored > config.max_stored_keys
        PS-8 keys | a key too few | stored >= config.max_stored_keys
            -> stored + 1 >= config.max_stored_keys
        PS-8 keys | no update at the limit of keys | growth = size - value_length(old)
            -> growth = size - value_length(old)
            \\n        if _counter(storage, rows.published_keys) >= config.max_stored_keys:
            \\n            raise ModuleError(Error.TooManyStoredKeys)
        PS-8 size | a byte too many | total > config.max_total_storage_size
            -> total > config.max_total_storage_size + 1
        PS-8 size | a byte too few | total > config.max_total_storage_size
            -> total >= config.max_total_storage_size
        PS-6 | a write renews a list of all keys | lifetime = (ttl
            -> storage.put(rows.published_keys + b'all', (storage.get(rows.published_keys + b'all')
            or b'') + key)
            \\n    lifetime = (ttl
        PS-17 | what is expired counts as absent | stored = 0
            -> old = None if old is not None and 0 < old[-8] + old[-4] <= now else old
            \\n    stored = 0
    """
    ),
    derive_child_key: (
        """
        PS-1 | child tries have another prefix | b"pubsub" -> b"pubsus"
        PS-1 | child tries are named big endian | "little" -> "big"
    """
    ),
    State._apply_child: (
        "PS-2 | the root of an empty child trie stays | return None -> return trie.root()"
    ),
    State.apply: (
        """
        PS-2 | a root is not updated
            | roots[child_root_key(child_key)] = self._apply_child(child_key, changes)
            -> new = self._apply_child(child_key, changes)
            \\n            old = self.top.get(child_root_key(child_key))
            \\n            roots[child_root_key(child_key)] = new if new is None or old is None else
            old
    """
    ),
    Broadcaster._remove: (
        """
        PS-10 | deleting nothing succeeds | if not removed: -> if False:
        delete_keys | keys that are absent are counted | return removed -> return len(list(keys))
    """
    ),
    Broadcaster.delete_keys: (
        "delete_keys | anybody deletes | registry.ensure_manager(info, origin, para) -> pass"
    ),
    remove_key: (
        """
        delete_keys | a deletion keeps the entry | storage.child_kill(child, stored_key) -> pass
        delete_keys | a deletion keeps the lifetime
            | _set_lifetime(config, storage, rows, key, old[-8:], _INFINITE)
            -> pass
        PS-16 | an expiry is not counted | rows.published_keys) - 1 -> rows.published_keys)
        PS-18 | a row goes with its neighbour
            | remaining = _counter(storage, rows.published_keys) - 1
            -> storage.kill(next(iter(storage.next_keys(rows.ttl_prefix)), b'none'))
            \\n    remaining = _counter(storage, rows.published_keys) - 1
    """
    ),
    Broadcaster.force_delete_keys: (
        """
        force_delete_keys | anybody deletes as root | ensure_root(origin) -> pass
        force_delete_keys | root's deletion is said to be the manager's | KeysForcedDeleted(para
            -> KeysDeleted(para
    """
    ),
    _Machine._publish: (
        """
        PS-21 | a refused key does not stop its message
            | raise _Failed(XcmError(XcmErrorKind.PublishFailed), failure.error) from failure
            -> return
    """
    ),
    sweep: (
        """
        PS-13 | an entry expires a block early | row.expiry <= now -> row.expiry <= now + 1
        PS-13 | an entry expires a block late | row.expiry <= now -> row.expiry < now
        PS-13 | the longest lifetime wraps | row.expiry <= now -> row.expiry % 2**32 <= now
        PS-13 | nothing expires | row.expiry <= now -> False
        PS-16 | an expiry has no event | deposit(storage, KeyExpired(row.para, row.key)) -> pass
        PS-16 | an expiry names another key | KeyExpired(row.para, row.key)
            -> KeyExpired(row.para, row.key[::-1])
        PS-15 | a sweep examines what it likes | config.max_ttl_scans_per_idle - examined
            -> 99 - examined
        PS-19 | a sweep examines half of what it may | scans_per_idle - examined
            -> scans_per_idle // 2 - examined
    """
    ),
    _set_lifetime: (
        """
        PS-14 | a lifetime is not renewed | if is_finite:\\n        storage.put(rows.ttl_row
            -> if is_finite and not was_finite:\\n        storage.put(rows.ttl_row
        PS-14 | what lasts forever keeps its row | elif was_finite: -> elif False:
    """
    ),
    message.decode: (
        """
        PS-20 | bytes may follow a message | read_to_end(XcmReader(data, 1), XCM.read)
            -> XCM.read(XcmReader(data, 1))
        PS-20 | an instruction of v5 is not known | if version != VERSION:
            -> if version != VERSION or len(data) == 21:
    """
    ),
    AllowPublishFrom.should_execute: (
        """
        PS-22 | every message is admitted | if not isinstance(instruction, Publish): -> if False:
        PS-22 | a message is as long as it likes | count > self.max_instructions -> count > 250
        PS-22 | a message too few is admitted | count > self.max_instructions
            -> count >= self.max_instructions
    """
    ),
    MessageQueue._service_queue: (
        """
        PS-23 | the last message is the first | for message in types.waiting(raw):
            -> for message in types.waiting(raw)[::-1]:
    """
    ),
    _Deliverer.deliver: (
        """
        PS-30 | the subscriber is not told
            | deposit(self._storage, events.DataProcessed(para, key, len(value)))
            -> pass
    """
    ),
    apply: (
        """
        PS-31 | a subscriber stores another root than it walked | put_or_kill(storage, roots)
            -> put_or_kill(storage, {para: Hash(bytes(32)) for para in roots})
        PS-32 | relay parents go back and forth | put(storage, relay_parent)
            -> put(storage, relay_parent ^ 1)
    """
    ),
    upgrade: (
        """
        PS-33 | an upgrade forgets the subscriptions | storage.put(CODE, spec.encode())
            -> storage.put(CODE, __import__('dataclasses').replace(spec, subscriptions={}).encode())
    """
    ),
    Broadcaster.on_offboard: (
        """
        PS-11 | data stays when its para leaves
            | self._offboard(storage, para) if registry.is_known(storage, para) else 0 -> 0
    """
    ),
    Broadcaster._offboard: (
        """
        PS-11 | the deposit is lost when its para leaves | balances, storage, para)
            -> balances, storage, para, slash=True)
    """
    ),
}
"""What to replace in a function of the node by what, and the rule that it then breaks:
`rule | what | old -> new`. A line with a deeper indent continues the one before it.
"""


def mutants() -> Iterator[Any]:
    for function, rows in MUTANTS.items():
        for row in rows.replace("\n            ", " ").replace(" \\n", "\\n").strip().split("\n"):
            rule, name, change = row.strip().split(" | ")
            old, new = change.replace("\\n", "\n").split(" -> ")
            yield pytest.param(rule, function, old, new, id=name)


@pytest.mark.parametrize(("rule", "function", "old", "new"), [*mutants()])
def test_a_node_that_breaks_a_rule_is_caught_by_its_name(
    rule: str, function: Callable[..., Any], old: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        rows_of.cache_clear()
        breaks(patch, function, old, new)
        found = held(only=[rule])[rule]
    rows_of.cache_clear()
    assert found.verdict == "broken", found
    assert found.expected != found.seen
    assert found.block is not None
