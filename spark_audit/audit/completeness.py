"""Whether a chain is verified: every segment judged, every seam closed, nothing missing that the history speaks of."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pubsub_emulator.spark_audit.audit import findings
from pubsub_emulator.spark_audit.audit.evidence import figures_evidence
from pubsub_emulator.spark_audit.audit.findings import Severity, finding_row
from pubsub_emulator.spark_audit.history.reader import Fault, History
from pubsub_emulator.spark_audit.history.rows import Row

Receipt = dict[str, Any]


@dataclass(slots=True)
class ChainSegments:
    """What judging a chain's segments gave, and which segments its network has."""

    network: str
    chain: int
    segments: list[int]
    """The network's, ascending."""
    receipts: list[Receipt] = field(default_factory=list)
    named_in: list[int] = field(default_factory=list)
    """Segments whose manifests speak of the chain."""


def chain_segments(history: History, receipts: Sequence[Receipt]) -> list[ChainSegments]:
    """Every chain that files or manifests speak of, by network and number."""
    segments: dict[str, list[int]] = {}
    out: dict[tuple[str, int], ChainSegments] = {}
    for commit in history.commits:
        segments.setdefault(commit.network, []).append(commit.segment)
        for chain in commit.next_positions:
            place = commit.network, chain
            found = out.setdefault(place, ChainSegments(*place, segments[commit.network]))
            found.named_in.append(commit.segment)
    for receipt in receipts:
        for each in receipt["chains"]:
            place = each["network"], each["chain"]
            found = out.setdefault(place, ChainSegments(*place, segments[each["network"]]))
            found.receipts.append(each)
    return [out[place] for place in sorted(out)]


def judge_chain(chain: ChainSegments, trusted: frozenset[str], faults: Sequence[Fault]) -> tuple[Row, list[Row], bool]:
    """A chain's row of `chains`, findings about the chain as a whole, and whether something of it is missing.

    A chain that was judged to its end and did wrong is not verified and misses nothing (AU-1, AU-7, AU-13).

    `faults` are those of manifests and of files that no task reads: they may concern segments that nothing else names.
    """
    receipts = chain.receipts
    notes: list[Row] = []
    reasons = [
        f"segment {receipt['segment']} was not judged to its end" for receipt in receipts if not receipt["complete"]
    ]
    imported = bool(receipts) and all(receipt["kind"] == "imported" for receipt in receipts)
    if not imported:
        missing = _missing(chain)
        if missing:
            detail = f"{missing[0]}, and {len(missing) - 1} more" if len(missing) > 1 else missing[0]
            reasons += missing[:8]
            evidence = figures_evidence({"missing": missing[:64], "segments": len(chain.segments)})
            notes.append(_note(chain, findings.MISSING_SEGMENT, b"", evidence, detail, None))
        if receipts:
            reasons += _start(chain, trusted, notes)
    reasons += [
        f"{fault.path}: {fault.error}" for fault in faults if fault.network in {None, chain.network} and _lost(fault)
    ]
    incomplete = bool(reasons)
    reasons += [
        f"segment {receipt['segment']} does not end where the next one starts"
        for receipt in receipts
        if receipt["seam"] == "mismatch"
    ]
    errors = sum(
        count for receipt in receipts for severity, _, count in receipt["findings"] if severity == Severity.ERROR.value
    )
    if errors:
        reasons.append(f"{errors} findings of severity error")
    end = next((receipt for receipt in reversed(receipts) if receipt["end"] is not None), None)
    row = {
        "network": chain.network,
        "chain": chain.chain,
        "status": "not verified" if reasons else "opened" if imported else "verified",
        "reasons": reasons,
        "segments": len(receipts),
        "complete": sum(receipt["complete"] for receipt in receipts),
        "candidates": sum(receipt["candidates"] for receipt in receipts),
        "judged": sum(receipt["judged"] for receipt in receipts),
        "proof_bytes": sum(receipt["proof_bytes"] for receipt in receipts),
        "end_number": None if end is None else end["end_number"],
        "end": None if end is None else bytes.fromhex(end["end"]),
    }
    return row, notes, incomplete


def _missing(chain: ChainSegments) -> list[str]:
    """Segments of the network in which the chain should be and is not, in words."""
    there = {receipt["segment"] for receipt in chain.receipts}
    known = there.union(chain.named_in)
    out = [
        f"the history holds nothing of segment {segment}"
        for segment in chain.segments
        if min(known) <= segment <= max(known) and segment not in there
    ]
    last = max(chain.segments)
    out += [
        f"segment {receipt['segment']} is not tied to the next one: its end is not in the history"
        for receipt in chain.receipts
        if receipt["seam"] == "open" and receipt["segment"] != last
    ]
    if max(known) < last:
        out.append(f"it ends with segment {max(known)}, its network goes on to {last}")
    return out


def _start(chain: ChainSegments, trusted: frozenset[str], notes: list[Row]) -> list[str]:
    first = chain.receipts[0]
    if first["genesis"] or first["start"] in trusted:
        return []
    start = first["start"]
    detail = (
        f"where segment {first['segment']} starts cannot be read"
        if start is None
        else f"segment {first['segment']} starts at {start}, which is neither genesis nor named as trusted"
    )
    evidence = figures_evidence({"start": first["start"]})
    notes.append(
        _note(chain, findings.UNTRUSTED_START, str(first["start"]).encode(), evidence, detail, first["segment"])
    )
    return [detail]


def _lost(fault: Fault) -> bool:
    """Whether a fault may hide something of a chain: that of a manifest may, that of a file nobody reads may not."""
    return fault.path.startswith("_commits/")


def _note(  # noqa: PLR0917  # what a finding is made of
    chain: ChainSegments, code: str, subject: bytes, evidence: bytes, detail: str, segment: int | None
) -> Row:
    return finding_row(
        network=chain.network,
        chain=chain.chain,
        code=code,
        severity=Severity.INFO,
        subject=subject,
        evidence=evidence,
        detail=detail,
        place={"segment": segment},
    )
