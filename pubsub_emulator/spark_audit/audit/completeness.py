"""Whether a chain is verified: every segment judged, every seam closed, nothing missing that the history speaks of."""

from collections.abc import Sequence

from pubsub_emulator.spark_audit.history.reader import Fault
from pubsub_emulator.spark_audit.history.row import Row, fields_of
from pubsub_emulator.spark_audit.judge import findings
from pubsub_emulator.spark_audit.judge.account import ChainAccount, NetworkAccount
from pubsub_emulator.spark_audit.judge.evidence import figures_evidence
from pubsub_emulator.spark_audit.judge.findings import Severity, finding_row

_MOST_REASONS = 8
_MOST_SHOWN = 64


def judge_chain(
    network: NetworkAccount, number: int, trusted: frozenset[str], faults: Sequence[Fault]
) -> tuple[Row, list[Row], bool]:
    """A chain's row of `chains`, findings about the chain as a whole, and whether something of it is missing.

    One that was judged to its end and did wrong is not verified and misses nothing (AU-1, AU-7, AU-13). `faults` are
    those of manifests: they may concern segments that nothing else names.
    """
    chain = network.chains[number]
    notes: list[Row] = []
    reasons = [f"segment {segment} was not judged to its end" for segment in chain.incomplete]
    imported = bool(chain.segments) and chain.imported
    if not imported:
        missing = _missing(network, chain)
        if missing:
            detail = f"{missing[0]}, and {len(missing) - 1} more" if len(missing) > 1 else missing[0]
            reasons += missing[:_MOST_REASONS]
            evidence = figures_evidence({"missing": missing[:_MOST_SHOWN], "segments": network.segments})
            place = network.network, number
            notes.append(finding_row(place, findings.MISSING_SEGMENT, Severity.INFO, b"", evidence, detail, {}))
        if chain.segments:
            reasons += _start(network, number, trusted, notes)
    reasons += [f"{fault.path}: {fault.error}" for fault in faults if fault.network in {None, network.network}]
    incomplete = bool(reasons)
    reasons += [f"segment {segment} does not end where the next one starts" for segment in chain.mismatched]
    if chain.errors:
        reasons.append(f"{chain.errors} findings of severity error")
    names = ("segments", "complete", "candidates", "judged", "proof_bytes", "end_number")
    status = "not verified" if reasons else "opened" if imported else "verified"
    row = {"network": network.network, "chain": number, "status": status, "reasons": reasons, **fields_of(chain, names)}
    return {**row, "end": None if chain.end is None else bytes.fromhex(chain.end)}, notes, incomplete


def _missing(network: NetworkAccount, chain: ChainAccount) -> list[str]:
    """Segments of the network in which the chain should be and is not, in words."""
    out = [f"the history holds nothing of segment {segment}" for segment in chain.absent]
    untied = (segment for segment in chain.untied if segment != network.last)
    out += [f"segment {segment} is not tied to the next one: its end is not in the history" for segment in untied]
    if chain.last < network.last:
        out.append(f"it ends with segment {chain.last}, its network goes on to {network.last}")
    return out


def _start(network: NetworkAccount, number: int, trusted: frozenset[str], notes: list[Row]) -> list[str]:
    chain = network.chains[number]
    if chain.genesis or chain.start in trusted:
        return []
    detail = f"where segment {chain.started_in} starts cannot be read"
    if chain.start is not None:
        detail = f"segment {chain.started_in} starts at {chain.start}, which is neither genesis nor named as trusted"
    about = str(chain.start).encode(), figures_evidence({"start": chain.start}), detail, {"segment": chain.started_in}
    notes.append(finding_row((network.network, number), findings.UNTRUSTED_START, Severity.INFO, *about))
    return [detail]
