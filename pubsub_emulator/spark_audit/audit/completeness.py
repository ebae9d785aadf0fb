"""The verdict on a whole chain: verified, not verified, or only opened.

A chain is verified if every segment was judged to its end, every segment ends where the next one
starts, no segment is missing, and no finding about it has severity `error`.
"""

from collections.abc import Sequence

from pubsub_emulator.spark_audit.history.reader import Fault
from pubsub_emulator.spark_audit.history.row import Row, fields_of
from pubsub_emulator.spark_audit.judge import findings
from pubsub_emulator.spark_audit.judge.account import ChainAccount, NetworkAccount
from pubsub_emulator.spark_audit.judge.evidence import figures_evidence
from pubsub_emulator.spark_audit.judge.findings import Severity, finding_row

_MOST_REASONS = 8
"""Missing segments that the column `reasons` lists. A chain may lack thousands."""
_MOST_SHOWN = 64
"""Missing segments that the evidence of a `MissingSegment` finding lists."""


def judge_chain(
    network: NetworkAccount,
    number: int,
    trusted: frozenset[str],
    faults: Sequence[Fault],
    lost: Sequence[Fault] = (),
) -> tuple[Row, list[Row], bool]:
    """Return a chain's row of `chains`, findings about the chain, and whether data are missing.

    `trusted` holds hashes of headers, in hex, at which a chain may start although they are not its
    genesis. `faults` are damaged manifests. They count against every chain of their network
    (against all chains if the network is unknown), since such a manifest may name segments that no
    other manifest mentions. `lost` are manifests that an earlier audit read and that are gone.

    A chain is "not verified" if data are missing or if it misbehaved (findings of severity `error`,
    or a segment that does not end where the next one starts). Misbehaviour alone does not count as
    missing data (AU-1, AU-7, AU-13). A chain that has only imported proofs cannot be verified. At
    best its status is "opened", and it may have gaps.
    """
    chain = network.chains[number]
    notes: list[Row] = []
    reasons = [f"segment {segment} was not judged to its end" for segment in chain.incomplete]
    imported = bool(chain.segments) and chain.imported
    lost_manifests = [
        f"{fault.path}: {fault.error}" for fault in lost if fault.network == network.network
    ]
    missing = list(lost_manifests)
    if not imported:
        missing += _missing(network, chain)
    if missing:
        reasons += missing[:_MOST_REASONS]
        notes.append(_missing_finding(network, number, missing))
    if chain.segments and not imported:
        reasons += _start(network, number, trusted, notes=notes)
    reasons += [
        f"{fault.path}: {fault.error}"
        for fault in faults
        if fault.network in {None, network.network}
    ]
    # The reasons up to here mean missing data. The ones below mean misbehaviour, which must not
    # make the exit code say "incomplete".
    incomplete = bool(reasons)
    reasons += [
        f"segment {segment} does not end where the next one starts" for segment in chain.mismatched
    ]
    if chain.errors:
        reasons.append(f"{chain.errors} findings of severity error")
    names = ("segments", "complete", "candidates", "judged", "proof_bytes", "end_number")
    if reasons:
        status = "not verified"
    elif imported:
        status = "opened"
    else:
        status = "verified"
    row = {
        "network": network.network,
        "chain": number,
        "status": status,
        "reasons": reasons,
        **fields_of(chain, names),
    }
    return (
        {**row, "end": None if chain.end is None else bytes.fromhex(chain.end)},
        notes,
        incomplete,
    )


def _missing(network: NetworkAccount, chain: ChainAccount) -> list[str]:
    """Return a reason for each gap in the chain's data.

    A segment is untied if the history lacks the checkpoint that ends it. The network's last segment
    may be untied, because that checkpoint belongs to the next segment, which is not written yet.
    """
    reasons = [f"the history holds nothing of segment {segment}" for segment in chain.absent]
    untied = (segment for segment in chain.untied if segment != network.last)
    reasons += [
        f"segment {segment} is not tied to the next one: its end is not in the history"
        for segment in untied
    ]
    if chain.last < network.last:
        reasons.append(f"it ends with segment {chain.last}, its network goes on to {network.last}")
    return reasons


def _missing_finding(network: NetworkAccount, number: int, missing: Sequence[str]) -> Row:
    """Return the finding `MissingSegment` about a chain.

    `missing` has a reason for each gap. The detail gives the first one, the evidence more of them.
    """
    detail = missing[0]
    if len(missing) > 1:
        detail = f"{missing[0]}, and {len(missing) - 1} more"
    evidence = figures_evidence({"missing": missing[:_MOST_SHOWN], "segments": network.segments})
    return finding_row(
        (network.network, number),
        findings.MISSING_SEGMENT,
        Severity.INFO,
        subject=b"",
        evidence=evidence,
        detail=detail,
        place={},
    )


def _start(
    network: NetworkAccount, number: int, trusted: frozenset[str], notes: list[Row]
) -> list[str]:
    """Return why the chain's first state is not trusted, and note a finding about it.

    The list is empty if that state is the genesis or its header's hash is in `trusted`.
    """
    chain = network.chains[number]
    if chain.genesis or chain.start in trusted:
        return []
    if chain.start is None:
        detail = f"where segment {chain.started_in} starts cannot be read"
    else:
        detail = (
            f"segment {chain.started_in} starts at {chain.start}, which is neither genesis nor"
            " named as trusted"
        )
    finding = finding_row(
        (network.network, number),
        findings.UNTRUSTED_START,
        Severity.INFO,
        subject=str(chain.start).encode(),
        evidence=figures_evidence({"start": chain.start}),
        detail=detail,
        place={"segment": chain.started_in},
    )
    notes.append(finding)
    return [detail]
