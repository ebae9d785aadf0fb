"""A session takes lines and gives pages; no terminal is needed to try all of it."""

import gc
import json
from pathlib import Path

import pytest
from support.plumbing.command import told
from support.plumbing.scenarios import scenario
from support.plumbing.snapshots import Snapshot

from pubsub_emulator import child_root_key, derive_child_key, key_from_data
from pubsub_emulator.emulator.network.records import BlockRecord
from pubsub_emulator.emulator.scenario.file import parse_document, parse_scenario
from pubsub_emulator.emulator.scenario.model import Scenario
from pubsub_emulator.files.pages import Doing, Grid
from pubsub_emulator.node.chain.block import Moment
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.types import AccountId, ParaId
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.framework.system import ACCOUNT
from pubsub_emulator.runtime.pallet_pubsub.storage import PublishedKeys
from pubsub_emulator.runtime.pallet_subscriber.handler import VALUES
from pubsub_emulator.runtime.parachain.block import Verdict
from pubsub_emulator.runtime.relay.babe import EPOCH_INDEX
from pubsub_emulator.session import CommandError, Session
from pubsub_emulator.session.completion import complete
from pubsub_emulator.session.table import COMMANDS, find

KEY_IN_XCM = "34"
"""The number of `Publish`, before the key."""

SCENARIO = scenario("session")


@pytest.fixture
def scenario() -> Scenario:
    return parse_scenario(SCENARIO, "tiny.toml")


@pytest.fixture
def session(scenario: Scenario) -> Session:
    return Session.of(scenario)


@pytest.fixture(scope="module")
def stepped() -> Session:
    """Stands at relay block 4, for tests that must not move it."""
    session = Session.of(parse_scenario(SCENARIO, "tiny.toml"))
    told(session, "step 4", "save kept")
    return session


def _moments(session: Session) -> tuple[Moment, ...]:
    return session.node.local().timeline.moments()


def _refused(moment: Moment) -> list[BlockRecord]:
    return [record for record in moment.records if record.refusal is not None]


def _hash(session: Session) -> bytes:
    return session.network.relay.header.hash()


def test_a_value_published_in_a_session_is_delivered_with_ttl_and_name(
    session: Session,
) -> None:
    told(session, "step 3", "subscribe 3000 1000 DOT/USD", "step 3", "publish 1000 DOT/USD 7.42 25")
    shown = told(session, "step 3", "deliveries 3000 1")
    assert "| 1000 | DOT/USD | 7.42 | 2" in shown
    assert "DOT/USD | 4 | 7.42" in told(session, "child 1000 DOT/USD")
    assert "value: 0x372e3432" in told(session, "child 1000 DOT/USD")


def test_a_deleted_key_is_reported_gone(session: Session) -> None:
    told(
        session,
        "step 4",
        "unsubscribe 3000 1000",
        "step 3",
        "delete 2100 2100/0",
        "until removal 3000 5",
    )
    assert "| 2100 | 2100/0 | removed" in told(session, "deliveries 3000 1")


def test_unsubscribing_takes_single_keys_or_all_of_a_publisher(session: Session) -> None:
    told(session, "step 3", "unsubscribe 3000 1000 1000/0", "unsubscribe 3000 2100", "step 3")
    shown = told(session, "subscriptions 3000")
    assert "1000 | 4 | 1000/1" in shown
    assert "2100" not in shown


def test_a_snapshot_restores_an_order_that_is_not_in_force_yet(
    session: Session,
) -> None:
    told(
        session, "step 3", "save before", "unsubscribe 3000 2100", "save ordered", "restore before"
    )
    assert "2100 | 5" in told(session, "subscriptions 3000")
    assert "sent, not in force yet" not in told(session, "subscriptions 3000")
    told(session, "restore ordered")
    assert "sent, not in force yet" in told(session, "subscriptions 3000")
    told(session, "subscribe 3000 1000 more", "step 4")
    shown = told(session, "subscriptions 3000")
    assert "2100" not in shown
    assert "1000 | 6" in shown


def test_a_cheat_is_met_by_its_verdict_and_an_honest_collator_follows(session: Session) -> None:
    told(session, "step 4", "cheat 3000 omit-node 1", "publish 1000 1000/0 changed")
    assert "omit-node" in told(session, "collators 3000")
    assert "refused (OmittedBelowBudget" in told(session, "until verdict OmittedBelowBudget 20")
    assert f"3000 | {session.network.parachain(3000).header.number}" in told(
        session, "verdicts 3000"
    )
    told(session, "honest 3000", "save now-honest", "step 6")
    assert not any(_refused(moment) for moment in _moments(session)[-6:])


def test_without_a_number_the_next_collator_in_turn_cheats(
    session: Session,
) -> None:
    for blocks in (3, 2):
        told(session, f"step {blocks}", "honest 3000", "cheat 3000 stranger", "step")
        [refused] = _refused(_moments(session)[-1])
        assert refused.refusal is not None
        assert refused.refusal.verdict is Verdict.BAD_SEAL


def test_a_restored_snapshot_and_a_branch_go_on_to_the_same_bytes(session: Session) -> None:
    told(session, "step 3", "publish 1000 DOT 1", "save a", "step 4")
    straight = _hash(session)
    told(session, "restore a", "step 4")
    assert _hash(session) == straight
    told(session, "branch other a", "publish 1000 DOT 2", "step 4")
    assert _hash(session) != straight
    told(session, "switch main")
    assert _hash(session) == straight
    shown = told(session, "diff main other")
    assert "relay | 7 | 7" in shown
    assert "differences on relay" in shown
    assert (
        "child trie 1000 | DOT | 1 (no expiry" in shown
        or "child trie 1000 | DOT | nothing | 2 (no expiry" in shown
    )
    assert told(session, "diff main now").endswith("equal: every key of every chain")


def test_a_difference_can_be_asked_for_by_chain(session: Session) -> None:
    told(session, "step 3", "save a", "step")
    shown = told(session, "diff a now 3000")
    assert "differences on 3000" in shown
    assert "the first key that differs in the state trie of 3000" in shown
    assert "differences on relay" not in shown
    with pytest.raises(CommandError, match=r"unknown chain '9'\. Chains: relay, 1000"):
        told(session, "diff a now 9")


def test_a_difference_is_decoded_whole_and_what_every_block_writes_comes_last(
    session: Session,
) -> None:
    told(session, "step 3", "save a", "publish 1000 DOT 7.42 100", "step 3")
    pages = [page for page in session.execute("diff a now relay") if isinstance(page, Grid)]
    [grid] = pages
    rows = {(str(item), str(key)): (str(a), str(b)) for item, key, a, b in grid.rows}
    assert rows["child trie 1000", "DOT"] == ("nothing", "7.42 (ttl 100, published in 5)")
    assert rows["System.Number", ""] == ("3", "6")
    items = [str(item) for item, *_ in grid.rows]
    assert items.index("System.Number") > items.index("Broadcaster.PublishedKeys")
    only = [
        page for page in session.execute("diff a now relay CurrentSlot") if isinstance(page, Grid)
    ]
    assert [row[0] for row in only[0].rows] == ["Babe.CurrentSlot"]
    assert "no entry of Babe.Nonsense differs on relay" in told(
        session, "diff a now relay Babe.Nonsense"
    )


def test_a_publish_of_what_nobody_reads_says_so(session: Session) -> None:
    said = told(session, "publish 1000 DOT/USD 7.42")
    assert (
        "no parachain subscribes to this key; `subscribe 3000 1000 DOT/USD` has it delivered"
        in said
    )
    told(session, "subscribe 3000 1000 DOT/USD")
    assert "nobody" not in told(session, "publish 1000 DOT/USD 7.43")


def test_a_step_says_what_was_refused_and_why(session: Session) -> None:
    told(session, "step 2", f"publish 1000 DOT 0x{'00' * 3000}", "delete 1000 nothing-of-that-name")
    shown = told(session, "step 2")
    assert "refused: instruction" in shown
    assert "of the message of 1000: Broadcaster::ValueTooLong" in shown
    assert "refused: a call on the relay chain: Broadcaster::NoKeysToDelete" in shown


def test_a_session_written_to_a_file_comes_back_to_the_same_block(
    session: Session, tmp_path: Path
) -> None:
    path = tmp_path / "attack.json"
    lines = (
        "step 2",
        "step 2",
        "publish 1000 'two words' 0x00ff 9",
        "cheat 3000 omit-node 1 0.5",
        "until delivery",
    )
    told(session, *lines, "subscribe 3000 1000 'two words'", "step 3", f"write {path}")
    document = json.loads(path.read_text())
    assert document["commands"][0] == "step 4"
    assert document["scenario"]["publishers"][0]["update_rate"] == 0.3
    again = Session.of(parse_scenario(SCENARIO.replace("tiny", "other"), "other.toml"))
    told(again, "save gone", f"load {path}")
    gc.collect()
    assert _hash(again) == _hash(session)
    assert again.journal == session.journal
    assert not again.snapshots
    told(again, "step 3")
    told(session, "step 3")
    assert _hash(again) == _hash(session)


NOT_SESSIONS: tuple[tuple[str, object], ...] = (
    ("hash", "0x00"),
    ("hash", 3),
    ("block", 3),
    ("block", "2"),
    ("block", -1),
    ("block", 10**9),
    ("commands", ["step 2", "fly"]),
    ("commands", "step 2"),
    ("scenario", {"name": "x"}),
    ("format", "other"),
)


def test_a_file_that_is_not_a_session_changes_nothing(
    session: Session, tmp_path: Path, snapshot: Snapshot
) -> None:
    path = tmp_path / "bad.json"
    told(session, "step 2", f"write {path}", "step 1")
    document, before = json.loads(path.read_text()), _hash(session)
    texts = []
    for field, value in NOT_SESSIONS:
        path.write_text(json.dumps(document | {field: value}))
        with pytest.raises(PubsubError) as refused:
            told(session, f"load {path}")
        assert _hash(session) == before
        message = str(refused.value).replace(str(tmp_path), "FOLDER")
        texts.append(f"{field} = {json.dumps(value)}\n{message}\n")
    snapshot("not-sessions", "\n".join(texts))


def test_whoever_stops_taking_pages_interrupts_after_the_last_whole_block(
    session: Session, scenario: Scenario
) -> None:
    pages = session.execute("step 20")
    for page in pages:
        if page == Doing("building blocks", 3, 20):
            break
    pages.close()
    assert session.network.number == 3
    assert session.commands() == ["step 3"]
    straight = Session.of(scenario)
    told(straight, "step 7")
    told(session, "step 4")
    assert _hash(session) == _hash(straight)


def test_an_error_in_the_middle_of_a_block_restores_the_network(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    told(session, "step 3")
    before, journal = _hash(session), list(session.journal)

    def fail(*_arguments: object) -> None:
        raise PubsubError("in the middle")

    with monkeypatch.context() as patched:
        patched.setattr(type(session.network.relay), "build", fail)
        with pytest.raises(PubsubError, match="in the middle"):
            told(session, "step")
    assert (_hash(session), session.journal) == (before, journal)
    straight = Session.of(session.scenario)
    told(straight, "step 5")
    told(session, "step 2")
    assert _hash(session) == _hash(straight)


REFUSED = (
    "stepp",
    "step 0",
    "step -1",
    "step 1 2",
    "to 0",
    "until rain",
    "until verdict Bad",
    "until delivery 77",
    "publish",
    "publish 77 k v",
    "publish 1000 k v -1",
    "publish 1000 k v 99999999999",
    "publish 1000 0x00 v",
    "publish 1000 '' v",
    "publish 1000 k 0xabc",
    "delete 1000",
    "subscribe 1000 2100 k",
    "unsubscribe 3000 1000 other",
    "unsubscribe 3000 77",
    "cheat 3000 omit-nod",
    "cheat 3000 omit-node 9",
    "cheat 3000 omit-node 1 often",
    "order 3000 dance 1000",
    "events relay 7",
    "ledger 3000 9",
    "storage 3000 Nothing",
    "storage relay 0xzz",
    "child 3000",
    "child 1000 other",
    "cache 3000 77",
    "restore a",
    "switch a",
    "branch main",
    "save now",
    "forget main",
    "diff a",
    "load nothing.json",
    "write /nowhere/x.json",
    "help fly",
    "publish 1000 'k v",
    "draw a.png block 3000",
    "draw a.svg block 3000 999",
    "draw a.svg child 3000 x",
    "draw a.svg keys relay",
    "draw /nowhere/a.svg block 3000",
    "runtime 3000 cache all",
    "runtime 3000 max_pov_size big",
    "runtime 3000 reserve_minimum 1",
    "runtime 3000 cash none",
    "runtime 3000 relay_parent_offset 1",
    "set relay 0x12 0x34",
    "call pubsub_nonsense",
)
"""Lines that a session at relay block 4 refuses."""


def test_a_refused_line_is_explained_and_changes_nothing(
    stepped: Session, snapshot: Snapshot
) -> None:
    before, journal = _hash(stepped), list(stepped.journal)
    texts = []
    for line in REFUSED:
        with pytest.raises(PubsubError) as refused:
            told(stepped, line)
        texts.append(f"> {line}\n{refused.value}\n")
        assert (_hash(stepped), stepped.journal) == (before, journal), line
    snapshot("refused-lines", "\n".join(texts))


def test_waiting_for_what_does_not_happen_ends_after_so_many_blocks(session: Session) -> None:
    with pytest.raises(
        CommandError, match="no such event within 2 blocks; the network is at relay block 2"
    ):
        told(session, "until event NoSuchEvent 2")
    assert session.commands() == ["step 2"]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_command_has_help_and_examples_that_it_can_read(
    stepped: Session, command: object
) -> None:
    found = find(command.name)  # type: ignore[attr-defined]  # parametrize gives objects
    assert found.examples
    for example in found.examples:
        name, *arguments = example.replace("'", "").split()
        assert find(name) is found
        found.read(arguments)
        assert example in told(stepped, f"help {found.name}")
    assert found.summary in told(stepped, "help")


def test_a_ledger_is_that_of_the_block_asked_for(session: Session) -> None:
    told(session, "step 5")
    record = next(each for each in _moments(session)[3].records if each.chain == 3000)
    assert record.outcome is not None
    shown = told(session, "ledger 3000 3")
    assert f"block {record.candidate.header.number} of 3000, in relay block 3" in shown
    assert f"proof | {record.outcome.ledger.proof_bytes}\n" in shown


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("che", ["cheat"]),
        ("cheat ", ["1000", "2100", "3000"]),
        ("cheat 3000 omit-v", ["omit-value"]),
        ("cheat 3000 omit-node,omit-v", ["omit-node,omit-value"]),
        ("ledger ", ["3000"]),
        ("events re", ["relay"]),
        ("publish 1000 1000/", ["1000/0", "1000/1", "1000/2", "1000/3", "1000/never/0"]),
        ("delete 1000 1000/0 1000/3", ["1000/3"]),
        ("storage relay Broadcaster.Pub", ["Broadcaster.PublishedKeys"]),
        ("storage 3000 Subscriber.ProcessingC", ["Subscriber.ProcessingCursor"]),
        ("until del", ["delivery"]),
        ("restore ", ["now", "main", "kept"]),
        ("help snap", ["snapshots"]),
        ("status ", []),
        ("nothing ", []),
    ],
)
def test_completion_offers_what_may_stand_there(
    stepped: Session, line: str, offered: list[str]
) -> None:
    assert complete(stepped, line) == offered


def test_quit_ends_it(session: Session) -> None:
    told(session, "quit")
    assert session.over


def test_a_dry_run_shows_what_would_be_and_keeps_nothing(session: Session) -> None:
    told(session, "step 3", "publish 1000 DOT 7.42", "cheat 3000 omit-node")
    before, journal = _hash(session), list(session.journal)
    shown = told(session, "dry-run 3")
    assert "relay block 4: " in shown
    assert "what would be refused" in shown
    assert (_hash(session), session.journal, session.network.number) == (before, journal, 3)
    assert "child trie 1000 | DOT" not in shown
    told(session, "step 3")
    assert "7.42" in told(session, "child 1000 DOT"), "what was asked for before still happens"


def test_budgets_and_policies_change_from_the_block_after_the_message(session: Session) -> None:
    told(
        session,
        "step 2",
        "runtime 3000 cache none",
        "runtime 3000 reserve_minimum yes",
        "runtime 3000 max_pov_size 2097152",
    )
    assert "sent, not in force yet" in told(session, "runtime 3000")
    told(session, "step 4")
    spec = session.chain(3000).spec()
    assert (spec.cache.value, spec.max_pov_size, spec.reserve_minimum) == ("none", 2_097_152, True)
    assert "in force" not in told(session, "runtime 3000")
    with pytest.raises(PubsubError, match="max_pov_size 2097152"):
        told(session, "runtime 3000 reserve_minimum no")


def test_an_offset_changes_where_the_relay_chain_seals_its_headers() -> None:
    """UP-12: 3001 has an offset from the start, so the relay chain has validators."""
    document = {
        "name": "behind",
        "seed": "behind",
        "relay_blocks": 20,
        "publishers": [{"paras": [1000], "keys": 1}],
        "subscribers": [
            {"para": 3000, "subscribe": []},
            {"para": 3001, "subscribe": [], "relay_parent_offset": 1},
        ],
    }
    session = Session.of(parse_document(document, "behind"))
    told(session, "step 2", "runtime 3000 relay_parent_offset 2", "step 6")
    [record] = (each for each in session.simulation.step().records if each.chain == 3000)
    assert len(record.candidate.inherent.descendants) == 3


def test_storage_is_set_and_removed_on_chains_with_accounts(tmp_path: Path) -> None:
    session = Session.of(parse_scenario(SCENARIO, "tiny.toml"), accounts=True)
    told(session, "step", "set relay 0x1234 0xabcd", "set 3000 0x5678 0x01", "step 4")
    assert session.network.relay.state.top.get(b"\x12\x34") == b"\xab\xcd"
    assert session.chain(3000).state.top.get(b"\x56\x78") == b"\x01"
    told(
        session,
        "set relay 0x1234 nothing",
        "set 3000 0x5678 nothing",
        "step 4",
        f"write {tmp_path / 's.json'}",
    )
    assert session.network.relay.state.top.get(b"\x12\x34") is None
    assert session.chain(3000).state.top.get(b"\x56\x78") is None
    again = Session.of(parse_scenario(SCENARIO, "tiny.toml"))
    told(again, f"load {tmp_path / 's.json'}")
    assert (_hash(again), again.facts.accounts) == (_hash(session), True)


def test_storage_is_set_by_the_names_of_items() -> None:
    session = Session.of(parse_scenario(SCENARIO, "tiny.toml"), accounts=True)
    session.key("1000/1")
    account = "0x" + "07" * 32
    told(
        session,
        "step",
        "set relay Broadcaster.PublishedKeys 1000 7",
        "set relay EpochIndex 12",
        "set relay broadcaster::ttldata 1000 mine 0x0500000009000000",
        f"set relay System.Account {account} 0x{'00' * 80}",
        "set 3000 Consumer.Values 1000 mine text",
        "step 4",
    )
    relay, chain = session.network.relay.storage(), Storage(session.chain(3000).state)
    assert PublishedKeys.get(relay, ParaId(1000)) == 7
    assert EPOCH_INDEX.get(relay) == 12
    assert ACCOUNT.contains(relay, AccountId(bytes((7,)) * 32))
    assert VALUES.get(chain, ParaId(1000), session.key("mine")) == b"text"
    told(session, "set relay Broadcaster.PublishedKeys 1000 nothing", "step")
    assert PublishedKeys.get(session.network.relay.storage(), ParaId(1000)) == 0


NOT_VALUES = (
    "set relay Broadcaster.PublishedKey 1000 7",
    "set relay Broadcaster.PublishedKeys 7",
    "set relay EpochIndex 1 2",
    "set relay EpochIndex -1",
    "set relay EpochIndex 0x01",
    "set relay PublishedKeys price 7",
    "set relay 0x12 0x34 0x56",
    "set relay EpochIndex",
)


def test_a_value_that_no_item_can_have_is_refused(snapshot: Snapshot) -> None:
    session = Session.of(parse_scenario(SCENARIO, "tiny.toml"), accounts=True)
    texts = []
    for line in NOT_VALUES:
        with pytest.raises(PubsubError) as refused:
            told(session, line)
        texts.append(f"> {line}\n{refused.value}\n")
    snapshot("refused-values", "\n".join(texts))


def test_any_proof_is_drawn(session: Session, tmp_path: Path) -> None:
    told(session, "step 3", "cheat 3000 omit-node 1", "step 3")
    for line in (
        f"draw {tmp_path / 'a.svg'} block 3000",
        f"draw {tmp_path / 'b.svg'} block 3000 3",
        f"draw {tmp_path / 'c.svg'} child 1000 1000/1 1000/never",
        (
            f"draw {tmp_path / 'd.svg'} keys relay"
            " 0x1cb6f36e027abb2091cfb5110ab5087f06155b3cd9a8c9e5e9a23fd5dc13a5ed"
        ),
    ):
        assert "written" in told(session, line)
    for name in "abcd":
        assert (tmp_path / f"{name}.svg").read_text().startswith("<svg")


def test_a_session_that_went_back_saves_only_the_acts_that_led_there(
    session: Session, tmp_path: Path
) -> None:
    told(
        session,
        "step 3",
        "publish 1000 DOT 1",
        "step 4",
        "publish 1000 DOT 2",
        "head 5",
        "cheat 3000 omit-node",
        "step",
    )
    assert session.commands() == [
        "step 3",
        "publish 1000 DOT 1",
        "step 2",
        "cheat 3000 omit-node",
        "step 1",
    ]
    path = tmp_path / "s.json"
    told(session, f"write {path}")
    again = Session.of(parse_scenario(SCENARIO, "tiny.toml"))
    told(again, f"load {path}")
    assert _hash(again) == _hash(session)
    told(session, "head 3")
    assert session.commands() == ["step 3"]
    with pytest.raises(CommandError, match="the relay blocks 0 to 3, not 4"):
        told(session, "head 4")


def test_a_waiting_message_is_shown_byte_by_byte(session: Session) -> None:
    said = told(
        session, "publish 1000 DOT/USD 7.42 100", "step", "storage relay MessageQueue.Pages 1000"
    )
    message = (
        KEY_IN_XCM
        + key_from_data(b"DOT/USD").hex()
        + b"\x107.42".hex()
        + (100).to_bytes(4, "little").hex()
    )
    assert message in said
    assert "bytearray" not in said


def test_an_answer_too_long_for_a_table_is_printed_whole(stepped: Session) -> None:
    child = child_root_key(derive_child_key(ParaId(1000))).hex()
    answer = stepped.ask("state_getChildReadProof", f"0x{child}", ["0x" + "00" * 32])
    said = told(stepped, f"call state_getChildReadProof 0x{child} '[\"0x{'00' * 32}\"]'")
    assert json.loads(said) == answer
