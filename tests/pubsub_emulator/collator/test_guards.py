"""The table of guards: every check of the verifier, switched off one at a time, and the attack that
then succeeds.

A check is switched off by changing its source: `old` becomes `new` in the function that holds it,
and nothing else.
"""

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import CodeType, FunctionType

import pytest
from support.collator.guard_attacks import (
    HOSTILE,
    Attack,
    blocks_of,
    blocks_over_an_epoch_hold,
    changed_key_sets_start_anew,
    charges_add_up,
    deep_paths_disable,
    delivers_everything_once,
    digest_with_a_third_item,
    digest_with_an_upgrade_that_is_none,
    disabled_are_skipped,
    divergent_paths_are_absent,
    faults_disable,
    hashed_before_full,
    malformed_is_refused,
    parent_state_is_left_alone,
    proofs_of,
    stops_where_it_must,
    too_many_horizontal_messages,
)

from pubsub_emulator.runtime.framework import abridged
from pubsub_emulator.runtime.pallet_subscriber.cache.nodes import NodeCache
from pubsub_emulator.runtime.pallet_subscriber.cache.slots import SlotCache
from pubsub_emulator.runtime.pallet_subscriber.child_trie import ChildTrie
from pubsub_emulator.runtime.pallet_subscriber.config import CachePolicy
from pubsub_emulator.runtime.pallet_subscriber.delivered import DeliveredReader, PackedReader
from pubsub_emulator.runtime.pallet_subscriber.meter import Meter
from pubsub_emulator.runtime.pallet_subscriber.plan import _Walk
from pubsub_emulator.runtime.parachain import block, descendants, execute, validate
from pubsub_emulator.trie import step
from pubsub_emulator.trie.descent import Descent


@dataclass(frozen=True, slots=True)
class Guard:
    """A check, how it is switched off, and what then gets through."""

    name: str
    function: Callable[..., object]
    old: str
    new: str
    attack: str


NODES, NONE, SLOTS = CachePolicy.NODES, CachePolicy.NONE, CachePolicy.SLOTS

ATTACKS: dict[str, Callable[[], Attack]] = {
    "third digest item": lambda: digest_with_a_third_item,
    "upgrade that is none": lambda: digest_with_an_upgrade_that_is_none,
    "signatures": lambda: blocks_of("stranger", "stretched-seal", "seal-of-another-header"),
    "wrong turn": lambda: blocks_of("wrong-turn"),
    "future slot": lambda: blocks_of("future-slot"),
    "past slot": lambda: blocks_of("past-slot"),
    "another body": lambda: blocks_of("another-body"),
    "bad parent": lambda: blocks_of("bad-parent"),
    "decreased relay parent": lambda: blocks_of("decreased-relay-parent"),
    "parent head": lambda: blocks_of("wrong-parent-head"),
    "proof size": lambda: blocks_of("wrong-proof-size"),
    "descendants": lambda: blocks_of("unwanted-descendants"),
    "number of descendants": lambda: blocks_of("another-offset", "cut-descendants"),
    "other descendants": lambda: blocks_of("descendants-of-another-block"),
    "swapped descendants": lambda: blocks_of("swap-descendants"),
    "forged descendants": lambda: blocks_of("forge-descendant"),
    "descendants of two epochs": lambda: blocks_over_an_epoch_hold,
    "too many messages": lambda: blocks_of("beyond-the-share", "stuff-messages"),
    "too many horizontal messages": lambda: too_many_horizontal_messages,
    "hashed before full": lambda: hashed_before_full,
    "held back": lambda: blocks_of("hold-back-downward"),
    "held back horizontal": lambda: blocks_of("hold-back-horizontal"),
    "held back whole": lambda: blocks_of("hold-back-downward", "hold-back-horizontal"),
    "hashes of no message": lambda: blocks_of("hash-of-no-message", "hash-before-full"),
    "marks": lambda: blocks_of("wrong-mark", "drop-and-restore"),
    "requested keys": lambda: proofs_of(
        "omit-requested-key", "omit-requested-absence", "omit-requested-trie"
    ),
    "forged messages": lambda: blocks_of("drop-message", "alter-message", "forge-message"),
    "unknown relay parent": lambda: blocks_of("unknown-relay-parent"),
    "claimed root": lambda: blocks_of("claimed-root"),
    "post-state": lambda: blocks_of("wrong-state-root", "withheld-delivery", "moved-cursor"),
    "additions": lambda: proofs_of("add-junk", "add-needless-node", "over-budget"),
    "omissions": lambda: proofs_of("omit-node", "omit-publisher", "truncate-early"),
    "empty proof": lambda: proofs_of("empty-proof"),
    "duplicates": lambda: proofs_of("duplicate-node", "duplicate-apart", "duplicate-instead"),
    "order": lambda: proofs_of("reorder-list", "walk-order-list"),
    "state left alone": lambda: parent_state_is_left_alone,
    **{
        f"stops, {policy.value}": lambda policy=policy: partial(stops_where_it_must, policy)
        for policy in CachePolicy
    },
    "charges": lambda: charges_add_up,
    "deliveries": lambda: partial(delivers_everything_once, *CachePolicy),
    "deliveries, slots": lambda: partial(delivers_everything_once, SLOTS),
    "deliveries, parts of slots": lambda: partial(delivers_everything_once, SLOTS, tight=True),
    "faults": lambda: partial(faults_disable, "short-root", "long-root", "no-node"),
    "no entries": lambda: partial(faults_disable, "no-entry", "no-entry"),
    "deep paths": lambda: deep_paths_disable,
    "disabled": lambda: disabled_are_skipped,
    "changed keys": lambda: changed_key_sets_start_anew,
    "divergent paths": lambda: divergent_paths_are_absent,
    **{
        f"node: {reason}": lambda reason=reason: partial(malformed_is_refused, reason)
        for reason in HOSTILE
    },
}

GUARDS = [
    # The seal
    Guard(
        "digest-shape",
        validate.check_seal,
        " or len(header.initial_digest()) != 1",
        "",
        "third digest item",
    ),
    Guard(
        "new-code",
        validate.check_digest,
        "header.unsealed() == outcome.digest",
        "True",
        "upgrade that is none",
    ),
    Guard(
        "signature",
        validate.check_seal,
        "if not verify(expected, message, seal)",
        "if False",
        "signatures",
    ),
    Guard(
        "turn",
        validate.check_seal,
        "if not verify(expected, message, seal)",
        "if not any(verify(key, message, seal) for key in authorities)",
        "wrong turn",
    ),
    Guard("slot-not-in-the-future", validate.check_seal, "slot > slot_now or ", "", "future slot"),
    Guard(
        "slot-after-the-parents",
        validate.check_seal,
        " or (before is not None and slot <= before)",
        "",
        "past slot",
    ),
    Guard(
        "body",
        validate.check_seal,
        "header.extrinsics_root != candidate.extrinsics_root()",
        "False",
        "another body",
    ),
    # The chain
    Guard(
        "parent-hash",
        validate.check_parent,
        "header.parent_hash == parent.hash() and ",
        "",
        "bad parent",
    ),
    Guard(
        "number", validate.check_parent, " and header.number == parent.number + 1", "", "bad parent"
    ),
    Guard(
        "relay-parent",
        validate.check_relay_parent,
        "inherent.relay_parent_number >= last",
        "True",
        "decreased relay parent",
    ),
    # The validation data
    Guard(
        "parent-head",
        validate.check_validation_data,
        "inherent.parent_head != parent.encode()",
        "False",
        "parent head",
    ),
    Guard(
        "proof-size",
        validate.check_validation_data,
        "inherent.max_pov_size != spec.max_pov_size",
        "False",
        "proof size",
    ),
    Guard(
        "no-descendants",
        descendants.count_fault,
        "len(headers) == wanted",
        "not wanted or len(headers) == wanted",
        "descendants",
    ),
    Guard(
        "number-of-descendants",
        descendants.count_fault,
        "len(headers) == wanted",
        "wanted or len(headers) == wanted",
        "number of descendants",
    ),
    Guard(
        "first-descendant",
        descendants.descendant_fault,
        "headers[0].state_root != relay_root",
        "False",
        "other descendants",
    ),
    Guard(
        "chain-of-descendants",
        descendants.descendant_fault,
        "header.parent_hash != parent",
        "False",
        "swapped descendants",
    ),
    Guard(
        "seals-of-descendants",
        descendants._seal_fault,
        "None if _is_sealed(header, key) else",
        "None if True else",
        "forged descendants",
    ),
    Guard(
        "seal-of-the-authority",
        descendants._seal_fault,
        "_is_sealed(header, key)",
        "babe.sealed_by(header) is not None",
        "forged descendants",
    ),
    Guard(
        "authorities-of-the-next-epoch",
        descendants.descendant_fault,
        "authorities = following",
        "pass",
        "descendants of two epochs",
    ),
    Guard(
        "descendants-are-checked",
        validate._walk,
        "offences += check_descendants(spec, inherent, relay_root, walked.statics)",
        "pass",
        "forged descendants",
    ),
    # The messages
    Guard(
        "downward-share",
        abridged.share_faults,
        "if downward > shares.limit",
        "if False",
        "too many messages",
    ),
    Guard(
        "horizontal-share",
        abridged.share_faults,
        "if horizontal > room",
        "if False",
        "too many horizontal messages",
    ),
    Guard(
        "full-before-hashed",
        abridged.order_faults,
        "if first < last",
        "if False",
        "hashed before full",
    ),
    Guard(
        "basic-rule",
        abridged.advancement_faults,
        "if not messages.downward",
        "if False",
        "held back",
    ),
    Guard(
        "advanced-rule",
        abridged.advancement_faults,
        "horizontal + longest <= limit",
        "False",
        "held back horizontal",
    ),
    Guard(
        "advancement",
        validate._walk,
        "offences += check_advancement(spec, inherent, walked.statics, view.rules)",
        "pass",
        "held back whole",
    ),
    Guard(
        "hashed-messages-count",
        block._extended,
        "linked_chain(kept, links.hashed)",
        "kept",
        "hashes of no message",
    ),
    Guard(
        "marks-are-state",
        execute._note_messages,
        "LAST_PROCESSED_HRMP.put(storage, present.marks.horizontal)",
        "pass",
        "marks",
    ),
    Guard(
        "requested-keys",
        _Walk.requested_keys,
        "if not keys",
        "if True",
        "requested keys",
    ),
    Guard(
        "downward-head",
        validate.check_message_heads,
        "if head != statics.dmq_head",
        "if False",
        "forged messages",
    ),
    Guard(
        "channels-exist",
        validate.check_message_heads,
        "if strangers:",
        "if False:",
        "forged messages",
    ),
    Guard(
        "channel-heads",
        validate.check_message_heads,
        "if end != target",
        "if False",
        "forged messages",
    ),
    # The proof
    Guard(
        "relay-parent-exists",
        validate._walk,
        "return None, [Offence(Verdict.ROOT_MISMATCH, detail)]",
        "return None, []",
        "unknown relay parent",
    ),
    Guard(
        "claimed-root",
        validate._walk,
        "inherent.relay_parent_storage_root != relay_root",
        "False",
        "claimed root",
    ),
    Guard(
        "missing", validate.judge_proof, "missing = walked.missing", "missing = None", "omissions"
    ),
    Guard(
        "missing-root",
        validate.judge_proof,
        "missing.node_hash == relay_root",
        "False",
        "empty proof",
    ),
    Guard("unused", validate._unused, "source.keys() == walked.taken.keys()", "True", "additions"),
    Guard("duplicates", validate.check_node_order, "if repeated:", "if False:", "duplicates"),
    Guard(
        "duplicates-apart",
        validate.check_node_order,
        "pairwise(sorted(proof))",
        "pairwise(proof)",
        "duplicates",
    ),
    Guard("ascending", validate.check_node_order, "if unsorted is not None:", "if False:", "order"),
    # The state
    Guard(
        "post-state",
        validate._validated,
        "outcome.state_root != claimed",
        "False",
        "post-state",
    ),
    Guard(
        "fork",
        validate._validated,
        "Storage(parent.state.fork())",
        "Storage(parent.state)",
        "state left alone",
    ),
    # The meter
    Guard("stop-rule", Meter.check, "self.used > self._last_start", "False", "stops, none"),
    Guard("stop-reserve", Meter.__init__, " - spec.max_item_cost - ROW_COST", "", "stops, none"),
    Guard(
        "stop-at-a-node-or-value",
        Meter.read,
        "self.used > self._last_start",
        "False",
        "stops, none",
    ),
    Guard(
        "stop-at-a-node-or-value-not-early",
        Meter.read,
        "self.used > self._last_start",
        "self.used >= self._last_start",
        "stops, none",
    ),
    Guard("charge", Meter.read, "self.used += ", "self.used += 0 * ", "charges"),
    Guard("missing-node", Meter.read, "if node is None", "if False", "omissions"),
    Guard("missing-static-node", Meter.take, "if node is None", "if False", "empty proof"),
    Guard("stop-at-a-row", DeliveredReader.read, "self._meter.check()", "pass", "stops, none"),
    Guard("stop-at-a-packed-row", PackedReader.read, "self._meter.check()", "pass", "stops, slots"),
    Guard("stop-at-a-slot", SlotCache._read, "self.meter.check()", "pass", "stops, slots"),
    Guard("stop-at-a-cached-node", NodeCache.lookup, "self.meter.check()", "pass", "stops, nodes"),
    # The walk
    Guard(
        "node-charged-once",
        ChildTrie.child,
        "node = self.taken.get(reference)",
        "node = None",
        "charges",
    ),
    Guard("root-length", _Walk.top_path, " and len(value) == len(EMPTY_TRIE_ROOT)", "", "faults"),
    Guard(
        "bad-child-node", _Walk.publisher, "except BadNode", "except ZeroDivisionError", "faults"
    ),
    Guard(
        "bad-entry",
        ChildTrie.value,
        "except (ScaleError, RuleFailed)",
        "except ZeroDivisionError",
        "no entries",
    ),
    Guard("depth", ChildTrie.child, "above >= self.most_nodes", "False", "deep paths"),
    Guard("disabled", _Walk.rotation, " if not self.view.is_disabled(para)", "", "disabled"),
    Guard("key-set", _Walk.top_path, "trusted and self.roots", "self.roots", "changed keys"),
    Guard(
        "cache-of-another-key-set",
        NodeCache.lookup,
        "if not self.trusted",
        "if False",
        "changed keys",
    ),
    Guard("changed-entry", ChildTrie.resolve, "delivered != entry_hash", "True", "deliveries"),
    Guard(
        "new-entry", ChildTrie.resolve, "delivered != entry_hash", "delivered is None", "deliveries"
    ),
    Guard(
        "removed-entry", ChildTrie.resolve, "if delivered is not None:", "if False:", "deliveries"
    ),
    Guard(
        "slot-reference",
        SlotCache.covers,
        "if row[begin : begin + 32] != reference",
        "if False",
        "deliveries, slots",
    ),
    Guard(
        "slot-written-when-whole",
        SlotCache.store,
        " if all_resolved else NOTHING",
        "",
        "deliveries, parts of slots",
    ),
    # Proof reading
    Guard(
        "partial-key",
        step._matches,
        "return node[at : at + (nibbles >> 1)] == ",
        "return True or ",
        "divergent paths",
    ),
    Guard("no-such-child", step.step, "if not bitmap & bit", "if False", "divergent paths"),
    Guard(
        "no-such-child-of-a-branch-of-hashes",
        Descent.find,
        "if not bitmap & bit",
        "if False",
        "divergent paths",
    ),
    *(
        Guard(
            f"refuses-{reason}",
            step._compact if reason.startswith("length") else step.step,
            f'_refuse(key, depth, {"f" * ("{" in reason)}"{reason}")',
            "None",
            f"node: {reason}",
        )
        for reason in HOSTILE
    ),
]


def without(guard: Guard) -> CodeType:
    """The code of the function that holds the check, with the check switched off."""
    function = guard.function
    assert isinstance(function, FunctionType)
    source = textwrap.dedent(inspect.getsource(function))
    assert source.count(guard.old) == 1, f"{guard.name}: {guard.old!r} is not in the function once"
    scope: dict[str, object] = {}
    code = compile(source.replace(guard.old, guard.new), f"<without {guard.name}>", "exec")
    exec(code, function.__globals__, scope)  # noqa: S102  # the project's own source, one expression apart
    changed = scope[function.__name__]
    assert isinstance(changed, FunctionType)
    return changed.__code__


def holds(attack: Attack) -> bool:
    """Whether the verifier withstands. An attack that ends in any failure has found something."""
    try:
        attack()
    except (Exception, pytest.fail.Exception):  # noqa: BLE001  # as said
        return False
    return True


@pytest.mark.parametrize("name", ATTACKS)
def test_with_every_guard_in_place_the_attack_finds_nothing(name: str) -> None:
    ATTACKS[name]()()


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_with_this_guard_switched_off_its_attack_goes_red(
    guard: Guard, monkeypatch: pytest.MonkeyPatch
) -> None:
    attack = ATTACKS[guard.attack]()  # its material is made while the guard stands
    # Answers of the function with the check would hide that it is gone, and the other way round.
    step.remembered_step.cache_clear()
    try:
        with monkeypatch.context() as switched:
            switched.setattr(guard.function, "__code__", without(guard))
            assert not holds(attack), f"nothing notices that {guard.name} is gone"
    finally:
        step.remembered_step.cache_clear()


def test_every_attack_guards_something() -> None:
    assert {guard.attack for guard in GUARDS} == set(ATTACKS)
    assert len({guard.name for guard in GUARDS}) == len(GUARDS)
