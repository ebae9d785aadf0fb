"""One judged block: its header, findings, bytes by use, deliveries and proof."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from pubsub_emulator.files.pages import Grid, Line, Shown
from pubsub_emulator.inspection.view import View, header_figures, view
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.pubsub import node_cost
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.runtime.framework.words import words
from pubsub_emulator.runtime.parachain.block import ChainHead
from pubsub_emulator.runtime.parachain.validate import judge_block
from pubsub_emulator.session.blocks import ledger_pages
from pubsub_emulator.spark_audit.compare import RecordedBlock
from pubsub_emulator.spark_audit.real_proofs.open_proof import ProofError, decode_node


def judged_block(judged: RecordedBlock, path: Path, kind: str = "block") -> View:
    """Return the view of a block that is executed again on its parent.

    It is executed by the rules in its record. Raises `CompareError` if the state before it is not
    known.
    """
    parent, state = judged.pre()
    outcome, refusal = judge_block(
        ChainHead(parent, state, judged.rules), judged.candidate, judged.relay
    )
    inherent = judged.candidate.inherent
    evidence = (
        []
        if refusal is None
        else [(offence.verdict.value, offence.detail) for offence in refusal.evidence]
    )
    nodes = [node_figures(node) for node in inherent.proof]
    deliveries = [dict(zip(_DELIVERED, delivery, strict=True)) for delivery in judged.deliveries]
    figures = {
        "chain": judged.chain,
        **header_figures(judged.candidate.header),
        "relay_parent": inherent.relay_parent_number,
        "verdict_recorded": judged.verdict or "accepted",
        "verdict_now": "accepted" if refusal is None else refusal.verdict.value,
        "downward_messages": len(inherent.messages.downward),
        "horizontal_messages": sum(len(messages) for _, messages in inherent.messages.horizontal),
        "hashed_messages": inherent.messages.hashed_count,
        "descendants": len(inherent.descendants),
        "messages_used": inherent.messages_used,
        "proof_nodes": len(nodes),
        "proof_bytes": sum(node.cost for node in nodes),
        "evidence": [{"verdict": verdict, "detail": detail} for verdict, detail in evidence],
        "ledger": None if outcome is None else asdict(outcome.ledger),
        "deliveries": deliveries,
        "nodes": [node._asdict() for node in nodes],
    }
    pages: list[Shown] = []
    if evidence:
        pages.append(Grid("faults", ("verdict", "why"), tuple(evidence)))
    if outcome is not None:
        pages += ledger_pages(judged.place, outcome.ledger)
    if deliveries:
        rows = tuple(
            (str(publisher), words(key), str(delivery_kind), words(entry, 8))
            for publisher, key, delivery_kind, entry, *_ in judged.deliveries
        )
        pages.append(Grid("deliveries", ("publisher", "key", "what", "entry hash"), rows))
    else:
        pages.append(Line("nothing was delivered\n"))
    pages.append(node_page(nodes))
    return view(
        kind, path, {name: value for name, value in figures.items() if value is not None}, pages
    )


_DELIVERED = ("publisher", "key", "kind", "entry_hash", "ttl_state", "failed")


class NodeFigures(NamedTuple):
    """The figures of a proof node."""

    hash: Hash
    bytes: int
    cost: int
    """The charge for the node against the budget, in bytes."""
    kind: str
    partial: str
    """The node's part of the key, in hex digits."""
    children: int


def node_figures(node: bytes) -> NodeFigures:
    """Return the figures of a proof node. A detached value has the kind `value`."""
    kind = "value"
    partial = ""
    children = 0
    with suppress(ProofError):
        parts = decode_node(node)
        partial = parts.partial
        children = len(parts.children)
        kind = "branch" if children else "leaf"
        if children and parts.value is not None:
            kind = "branch with a value"
    return NodeFigures(
        hash=blake2_256(node),
        bytes=len(node),
        cost=node_cost(len(node)),
        kind=kind,
        partial=partial,
        children=children,
    )


def node_page(nodes: Iterable[NodeFigures]) -> Grid:
    """Return a table of proof nodes, in the order of the proof."""
    rows: list[tuple[str | int, ...]] = []
    for node in nodes:
        partial = node.partial if len(node.partial) <= 20 else f"{node.partial[:20]}…"
        rows.append((words(node.hash), node.bytes, node.kind, node.children, partial))
    return Grid("proof nodes", ("hash", "bytes", "kind", "children", "partial key"), tuple(rows))
