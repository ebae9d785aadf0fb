"""Single files: scenarios, sessions, fixtures, fuzz cases, differences, relay proofs, findings."""

import itertools
from collections import Counter
from pathlib import Path

from pubsub_emulator.emulator.fixtures import read_fixture
from pubsub_emulator.emulator.scenario.file import load_scenario, parse_document
from pubsub_emulator.emulator.scenario.model import Scenario, Subscriber
from pubsub_emulator.files.pages import Grid, Line
from pubsub_emulator.inspection.block import judged_block, node_figures, node_page
from pubsub_emulator.inspection.view import View, fields_of, header_figures, view
from pubsub_emulator.laboratory.cases import read_case
from pubsub_emulator.laboratory.differences import read_difference
from pubsub_emulator.runtime.rules import SHIPPED, Rules
from pubsub_emulator.spark_audit.compare import judged_fixture
from pubsub_emulator.spark_audit.judge.finding_file import check_finding
from pubsub_emulator.spark_audit.real_proofs.relay_proofs import read_relay_proof


def scenario(path: Path, rules: Rules = SHIPPED) -> View:
    """Return the view of a scenario file. Raises `SettingsError`."""
    parsed = load_scenario(path, rules)
    cheating_collators = 0
    for subscriber in parsed.subscribers:
        cheating_collators += sum(1 for collator in subscriber.collators if collator.strategies)
    figures = {
        **fields_of(parsed, "name", "description", "seed", "relay_blocks", "segment_length"),
        "publishers": len(parsed.publisher_ids()),
        "keys": sum(group.keys * len(group.paras) for group in parsed.publishers),
        "subscribers": len(parsed.subscribers),
        "subscribed_keys": sum(
            _subscribed(parsed, subscriber) for subscriber in parsed.subscribers
        ),
        "collators_that_cheat": cheating_collators,
        "scenario": parsed.document(),
    }
    publishers = []
    subscribers = []
    for group in parsed.publishers:
        ids = ", ".join(map(str, group.paras))
        ttls = ", ".join(map(str, group.ttls()))
        sizes = " to ".join(map(str, dict.fromkeys((group.sizes().min, group.sizes().max))))
        publishers.append((ids, group.keys, sizes, f"{group.update_rate / 1_000_000:g}", ttls))
    for subscriber in parsed.subscribers:
        strategies = itertools.chain.from_iterable(
            collator.strategies for collator in subscriber.collators
        )
        cheats = ", ".join(strategies)[:60] or "none"
        keys = _subscribed(parsed, subscriber)
        subscribers.append(
            (
                f"{subscriber.para} {subscriber.name}",
                keys,
                subscriber.cache,
                len(subscriber.collators),
                cheats,
            )
        )
    pages = (
        Grid("publishers", ("ids", "keys", "value bytes", "update rate", "ttl"), tuple(publishers)),
        Grid(
            "subscribers",
            ("subscriber", "keys", "cache", "collators", "cheats"),
            tuple(subscribers),
        ),
    )
    return view("scenario", path, figures, pages)


def _subscribed(parsed: Scenario, subscriber: Subscriber) -> int:
    """Return the number of keys that a subscriber of a scenario reads."""
    return sum(map(len, parsed.items(subscriber.subscribe).values()))


def session(path: Path, rules: Rules = SHIPPED) -> View:
    """Return the view of a session file. Raises `CommandError`, `SettingsError`."""
    from pubsub_emulator.session.saved import read_document

    document = read_document(path)
    figures = {
        "scenario_name": parse_document(document["scenario"], str(path), rules).name,
        **{name: document[name] for name in ("block", "hash", "commands", "scenario")},
    }
    lines = (Line("commands:"), *(Line(f"  {line}") for line in document["commands"]))
    return view(
        "session", path, figures, (*lines, Line(f"`pubsub step {path}` continues from there"))
    )


def fixture(path: Path, _rules: Rules = SHIPPED) -> View:
    """Return the view of a fixture, which is executed by the shipped rules.

    Raises `FixtureError`.
    """
    return judged_block(judged_fixture(read_fixture(path)), path, "fixture")


def case(path: Path, rules: Rules = SHIPPED) -> View:
    """Return the view of a case of a campaign. Raises `BadCase`, `OSError`."""
    parsed = read_case(path, rules)
    kinds = Counter(type(step).__name__ for step in parsed.shrunk)
    nodes = [node_figures(node) for node in parsed.proof]
    figures = {
        "label": parsed.label,
        "strategies": list(parsed.strategies),
        "strategy": " + ".join(parsed.strategies) or "the honest block",
        "judged": "a proof alone" if parsed.block is None else "a block",
        "steps": len(parsed.steps),
        "shrunk_to": len(parsed.shrunk),
        "due": ", ".join(parsed.expected) or "accepted",
        "found": ", ".join(parsed.verdicts) or "accepted",
        "relay_root": parsed.judging.root,
        "state_keys": sum(1 for _ in parsed.judging.parent.state.top_entries()),
        "proof_bytes": sum(node.cost for node in nodes),
        **({} if parsed.block is None else {"block": header_figures(parsed.block.header)}),
        "steps_by_kind": dict(kinds),
        "nodes": [node._asdict() for node in nodes],
    }
    pages = (Grid("steps", ("kind", "count"), tuple(sorted(kinds.items()))), node_page(nodes))
    return view(
        "case of a campaign",
        path,
        figures,
        (*pages, Line(f"`pubsub replay {path}` replays it")),
    )


def difference(path: Path, _rules: Rules = SHIPPED) -> View:
    """Return the view of a case on which two verifiers differ.

    Our verifier judges it again. Raises `BadCase`.
    """
    parsed = read_difference(path)
    ours_now = "undecodable"
    if parsed.found is not None:
        ours_now = ", ".join(parsed.found) or "accepted"
    figures = {
        "strategy": " + ".join(parsed.strategies) or "the honest block",
        "strategies": list(parsed.strategies),
        **fields_of(parsed, "steps", "chain", "ours", "theirs"),
        "ours_now": ours_now,
        "candidate_bytes": len(parsed.raw),
        "state_keys": sum(1 for _ in parsed.judging.parent.state.top_entries()),
        "parent": header_figures(parsed.judging.parent.header),
    }
    return view(
        "difference of two verifiers",
        path,
        figures,
        (Line(f"`pubsub replay {path}` replays it"),),
    )


def relay_proof(path: Path, _rules: Rules = SHIPPED) -> View:
    """Return the view of a real `setValidationData` inherent. Raises `ImportRefused`."""
    proof_record = read_relay_proof(path)
    nodes = [node_figures(node) for node in proof_record.proof]
    figures = {
        **fields_of(
            proof_record, "network", "chain", "number", "block", "relay_parent", "relay_root"
        ),
        "max_pov_size": proof_record.max_pov,
        "downward_messages": len(proof_record.downward),
        "horizontal_messages": sum(len(messages) for _, messages in proof_record.horizontal),
        "proof_nodes": len(nodes),
        "proof_bytes": sum(node.cost for node in nodes),
        "nodes": [node._asdict() for node in nodes],
    }
    return view("relay proof", path, figures, (node_page(nodes),))


def finding(path: Path, rules: Rules = SHIPPED) -> View:
    """Return the view of a finding, which is judged again. Raises `FindingError`."""
    checked = check_finding(path, rules)
    facts = {
        name: value
        for name, value in checked.finding.items()
        if name not in ("format", "digest", "evidence")
    }
    figures = {
        **facts,
        "evidence_bytes": len(checked.finding["evidence"]),
        "proven": checked.proven,
        "shows": checked.judgement.detail,
        "rests_on": list(checked.judgement.rests_on),
    }
    return view(
        "finding", path, figures, (Line(f"rests on: {line}") for line in checked.judgement.rests_on)
    )
