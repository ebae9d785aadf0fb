"""The audit of a history: what changed since the last run is judged, the rest is taken from its output.

Rounds judge and fold segments, see `rounds`; then come findings about whole chains, tables, and `run_report.json`.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.storage_keys import CODE
from pubsub_emulator.primitives.version import VERSION
from pubsub_emulator.runtime.pallet_subscriber.config import decode_spec
from pubsub_emulator.runtime.rules import RulesError, chosen
from pubsub_emulator.spark_audit.audit.completeness import judge_chain
from pubsub_emulator.spark_audit.audit.ledger import NetworkLedger
from pubsub_emulator.spark_audit.audit.rounds import REPLACED, Progress, Rounds, Watcher
from pubsub_emulator.spark_audit.choice import choose_engine, open_mapper
from pubsub_emulator.spark_audit.engine.engine import ENGINES, EngineLost, Mapper, WrongMaster, check_form
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.address import Address, StorageError
from pubsub_emulator.spark_audit.history.canonical import digest_rows, encode_row
from pubsub_emulator.spark_audit.history.manifest import COMMITS, CommitError, canonical_json, digest_of, head_of
from pubsub_emulator.spark_audit.history.names import read_names
from pubsub_emulator.spark_audit.history.reader import Fault, manifest_names, read_commits, read_file
from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.spark_audit.history.storage import LocalStore, Store, open_store
from pubsub_emulator.spark_audit.judge.findings import Severity, Thresholds
from pubsub_emulator.spark_audit.judge.results import ResultError, Results, Rows, write_report
from pubsub_emulator.spark_audit.tables.delta import DeltaError
from pubsub_emulator.spark_audit.tables.parts import RETAIN

CLEAN: Final = 0
FINDINGS: Final = 1
USAGE: Final = 2
INCOMPLETE: Final = 3
INFRASTRUCTURE: Final = 4
BOTH: Final = 5
"""Findings, and not everything could be read or verified: neither hides the other."""
_NO_HEAD: Final = "not known: manifests are damaged or missing"


class AuditFailed(PubsubError):
    """No audit; `exit_code`: 2 asked wrongly, 3 another head than was demanded, 4 the machine failed."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@dataclass(frozen=True, slots=True)
class AuditResult:
    """The result of an audit. `digest` is over all canonical rows: equal for equal histories, whoever computed it."""

    exit_code: int
    digest: str
    chains: tuple[Row, ...]
    candidates: int
    judged: int
    proof_bytes: int
    store: Store
    head: str | None = None
    """The history's head, `None` where its manifests are damaged or missing."""
    findings: dict[str, int] = field(default_factory=dict)
    """Number of findings by severity."""
    codes: dict[str, int] = field(default_factory=dict)
    """Number of findings by code."""
    quarantined: int = 0
    units_judged: int = 0
    units_skipped: int = 0
    engine: str | None = None
    """Which engine ran; `None` when nothing had changed."""
    seconds: float = 0.0
    report: dict[str, object] = field(default_factory=dict)
    """As written to `run_report.json`."""

    @property
    def out(self) -> Path | str:
        """The place that the results were written to: a folder, or the URI of a place elsewhere."""
        return self.store.folder if isinstance(self.store, LocalStore) else self.store.uri

    @property
    def results(self) -> Results:
        """The tables that were written."""
        return Results(self.store, self.report)


def audit(
    history: Address | Store,
    out: Address | Store,
    master: str | None = None,
    engine: str = "auto",
    progress: Watcher | None = None,
    *,
    thresholds: Thresholds | None = None,
    trusted: Iterable[str] = (),
    head: str | None = None,
    fail_on: Severity | None = Severity.WARNING,
    retain: timedelta = timedelta(milliseconds=RETAIN),
    opener: Callable[[str, str | None], Mapper] = open_mapper,
) -> AuditResult:
    """Audit the history at `history` into `out`; `engine` is `auto`, `python`, `pool`, or `spark` on `master`.

    `trusted` are hashes, in hex, of headers whose checkpoints may start a chain beside genesis; `head` is the one that
    the history must have. Exit codes (AU-7): 0 clean; 1 findings of severity `fail_on` or worse (`None`: never);
    3 something was quarantined or a chain is not verified; 5 both. Files that no table names any more stay for
    `retain`. `opener` starts the engine, when and if there is work. Raises `AuditFailed` with 2, 3 or 4.
    """
    started = time.monotonic()
    if engine not in ENGINES:
        raise AuditFailed(f"there is no engine {engine!r}, only {', '.join(ENGINES)}", USAGE)

    def start(units: int) -> Mapper:
        return opener(choose_engine(engine, master, units), master)

    try:
        if master is not None:
            check_form(master)
        limits = thresholds or Thresholds()
        watch = progress or (lambda _progress: None)
        kept_for = retain // timedelta(milliseconds=1)
        rounds = Rounds(open_store(history), open_store(out), start, watch, limits, kept_for)
        rounds.prepare()
        _ensure_rules(rounds.history)
    except (CommitError, RulesError, StorageError, WrongMaster) as error:
        raise AuditFailed(str(error), USAGE) from None
    except OSError as error:
        raise AuditFailed(f"{history}: {error.strerror or error}", INFRASTRUCTURE) from None
    try:
        if head is not None:
            _demand(rounds, head)
        rounds.run()
        return _finish(rounds, frozenset(trusted), fail_on, started)
    except OSError as error:
        raise AuditFailed(f"{error.filename or rounds.out}: {error.strerror or error}", INFRASTRUCTURE) from error
    except (EngineLost, ResultError, DeltaError) as error:
        raise AuditFailed(str(error), INFRASTRUCTURE) from error
    finally:
        rounds.close()


def _rules_in(store: Store) -> bytes | None:
    """The digest of a history's rules, empty for the shipped ones; `None` where it has no runtime that can be read."""
    commits, _ = read_commits(store, sorted(manifest_names(store))[:1]) if store.exists(COMMITS) else ([], [])
    files = [entry for commit in commits for entry in commit.files if entry.table == schema.CHECKPOINTS.name]
    unit = next(read_file(store, files[0]), None) if files else None
    if unit is None or isinstance(unit, Fault) or not unit.num_rows:
        return None
    entries = unit.column("entries")[0].as_py()
    try:
        return decode_spec(next((each["value"] for each in entries if each["key"] == CODE), b"")).rules
    except PubsubError:
        return None


def _ensure_rules(store: Store) -> None:
    """Raise `RulesError` unless the chosen rules are those of the history."""
    found, given = _rules_in(store), chosen()
    if found is None or found == given.digest:
        return
    made = f"the rules 0x{found.hex()}" if found else "the shipped rules"
    digest = given.digest
    mine = f"{given.path} is 0x{digest.hex()}" if digest else "no rules are given; `--rules` names their file"
    raise RulesError(f"{store}: the history was made with {made}, and {mine}")


def _demand(rounds: Rounds, head: str) -> None:
    """Raises `AuditFailed` unless the history has this head."""
    found = rounds.head()
    if found != head.removeprefix("0x").lower():
        is_ = f"0x{found}" if found else "none: manifests are damaged or missing"
        raise AuditFailed(f"{rounds.history}: its head is {is_}, not {head}; nothing was audited", INCOMPLETE)


@dataclass(frozen=True, slots=True)
class _Summary:
    """The tables about whole chains."""

    chains: list[Row]
    findings: list[Row]
    quarantine: list[Row]
    incomplete: int

    def tables(self) -> dict[schema.Table, list[Row]]:
        """The rows as they are digested: what a chain is called is in no digest."""
        nameless = [{name: row[name] for name in row if name != "name"} for row in self.chains]
        return {schema.CHAINS: nameless, schema.FINDINGS: self.findings, schema.QUARANTINE: self.quarantine}

    def digests(self) -> dict[str, str]:
        return {table.name: digest_rows(table, rows).hex() for table, rows in self.tables().items()}

    def written(self, digests: Mapping[str, str]) -> Iterable[tuple[schema.Table, str, list[Row]]]:
        """The rows as they are written, each with what tells whether they are those of the last run."""
        named = f"summary/{schema.CHAINS.wider.version}-{digest_rows(schema.CHAINS, self.chains).hex()}"
        yield schema.CHAINS, named, self.chains
        yield schema.FINDINGS, f"summary/{digests[schema.FINDINGS.name]}", self.findings
        yield schema.QUARANTINE, f"summary/{digests[schema.QUARANTINE.name]}", self.quarantine


def _summarize(rounds: Rounds, trusted: frozenset[str]) -> _Summary:
    rounds.watch(Progress("summary", 0, 1))
    chains: list[Row] = []
    notes: list[Row] = []
    incomplete = 0
    unnamed: list[Fault] = []
    for name in sorted(rounds.networks):
        names, fault = read_names(rounds.history, name)
        unnamed += [] if fault is None else [fault]
        account = rounds.networks[name].account
        for number in sorted(account.chains):
            row, noted, misses = judge_chain(account, number, trusted, rounds.faults)
            chains.append({**row, "name": names.get(number)})
            notes += noted
            incomplete += misses
    unread = [*rounds.quarantine(), *(fault.row() for fault in unnamed)]
    quarantined = {encode_row(schema.QUARANTINE, row): row for row in unread}
    rounds.watch(Progress("summary", 1, 1))
    return _Summary(chains, notes, list(quarantined.values()), incomplete)


def _finish(rounds: Rounds, trusted: frozenset[str], fail_on: Severity | None, started: float) -> AuditResult:
    """Count, write tables, ledger and report, and decide the exit code."""
    summary = _summarize(rounds, trusted)
    digests = summary.digests()
    rounds.watch(Progress("tables", 0, 1))
    rounds.keep(_replaced(rounds.networks, summary, digests))
    severities = {severity.value: 0 for severity in Severity}
    codes: dict[str, int] = {}
    for severity, code, count in _findings(rounds.networks, summary):
        severities[severity] += count
        codes[code] = codes.get(code, 0) + count
    bad = any(severities[each.value] for each in Severity if fail_on is not None and each.at_least(fail_on))
    whole = not summary.quarantine and all(row["status"] != "not verified" for row in summary.chains)
    lost = summary.quarantine or summary.incomplete
    heads = {name: kept.account.head or "" for name, kept in rounds.networks.items()}
    head = None if rounds.faults or not heads else head_of(heads)
    figures = {
        **{name: sum(row[name] for row in summary.chains) for name in ("candidates", "judged", "proof_bytes")},
        "quarantined": len(summary.quarantine),
        "exit_code": (BOTH if lost else FINDINGS) if bad else CLEAN if whole else INCOMPLETE,
        "digest": _digest(rounds.networks, digests),
        "engine": rounds.engine,
        "findings": severities,
        "codes": dict(sorted(codes.items())),
        "head": head,
    }
    units = {"judged": rounds.judged, "skipped": sum(kept.account.tasks for kept in rounds.networks.values())}
    units["skipped"] -= rounds.judged
    seconds = time.monotonic() - started
    report = {
        **figures,
        "verifier": VERSION,
        "history": rounds.history.uri,
        "complete_up_to": f"head 0x{head}, as the history itself says" if head else _NO_HEAD,
        "segments": sum(kept.account.segments for kept in rounds.networks.values()),
        "seconds": round(seconds, 3),
        "units": units,
        "candidates_per_second": round(rounds.candidates / max(rounds.seconds, 1e-3), 1) if rounds.judged else None,
        "uncommitted_files": rounds.uncommitted(),
        "chains": [{**row, "end": None if row["end"] is None else row["end"].hex()} for row in summary.chains],
        "thresholds": asdict(rounds.limits),
        "tables": rounds.tables.files(),
    }
    write_report(rounds.out, report)
    rounds.tidy()
    rounds.watch(Progress("tables", 1, 1))
    return AuditResult(
        **figures,
        chains=tuple(summary.chains),
        store=rounds.out,
        units_judged=units["judged"],
        units_skipped=units["skipped"],
        seconds=seconds,
        report=report,
    )


def _replaced(
    networks: Mapping[str, NetworkLedger], summary: _Summary, digests: Mapping[str, str]
) -> dict[str, list[tuple[str, Rows | pa.Table]]]:
    """The rows that take the place of what the last run said of whole chains, by table and where they are from."""
    out: dict[str, list[tuple[str, Rows | pa.Table]]] = {}
    for kept in networks.values():
        for fold in kept.account.folds:
            for name, table in REPLACED.items():
                if name in fold["files"]:
                    path, _ = fold["files"][name]
                    out.setdefault(table, []).append((path, Rows(path)))
    for each, source, rows in summary.written(digests):
        if rows:
            out.setdefault(each.name, []).append((source, each.arrow(rows)))
    return out


def _findings(networks: Mapping[str, NetworkLedger], summary: _Summary) -> Iterable[Sequence[Any]]:
    for kept in networks.values():
        yield from kept.account.counts
        for fold in kept.account.folds:
            yield from fold["open"]
    for row in summary.findings:
        yield row["severity"], row["code"], 1


def _digest(networks: Mapping[str, NetworkLedger], digests: Mapping[str, str]) -> str:
    """One digest over the canonical rows of all tables, however they were cut."""
    accounts = [networks[name].account for name in sorted(networks)]
    folds = [sorted(chain for fold in each.folds for chain in fold["chains"].items()) for each in accounts]
    body = [[each.network, each.rows, chains] for each, chains in zip(accounts, folds, strict=True)]
    return digest_of(canonical_json([body, digests]))
