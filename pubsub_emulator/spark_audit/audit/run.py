"""The entry point of an audit: `audit` judges new segments and takes the rest from the output.

`rounds` judges and adds up the segments. This module then judges whole chains, writes the tables
and `run_report.json`, and decides the exit code.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from itertools import chain as chained
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.storage_keys import CODE
from pubsub_emulator.runtime.pallet_subscriber.config import decode_spec
from pubsub_emulator.runtime.rules import SHIPPED, Rules, RulesError
from pubsub_emulator.spark_audit.audit.completeness import judge_chain
from pubsub_emulator.spark_audit.audit.ledger import NetworkLedger
from pubsub_emulator.spark_audit.audit.rounds import REPLACED, Rounds
from pubsub_emulator.spark_audit.audit.work import AuditProgress, Watcher, Work
from pubsub_emulator.spark_audit.choice import choose_engine, open_mapper
from pubsub_emulator.spark_audit.engine.engine import (
    ENGINES,
    EngineLost,
    Mapper,
    WrongMaster,
    check_form,
)
from pubsub_emulator.spark_audit.engine.rules import RulesFile
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.address import Address, StorageError
from pubsub_emulator.spark_audit.history.canonical import digest_rows, encode_row
from pubsub_emulator.spark_audit.history.manifest import (
    COMMITS,
    CommitError,
    canonical_json,
    digest_of,
    head_of,
)
from pubsub_emulator.spark_audit.history.names import read_names
from pubsub_emulator.spark_audit.history.reader import (
    Fault,
    manifest_names,
    read_commits,
    read_file,
)
from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.spark_audit.history.storage import LocalStore, Store, open_store
from pubsub_emulator.spark_audit.judge.findings import Severity, Thresholds
from pubsub_emulator.spark_audit.judge.results import ResultError, Results, RowRange, write_report
from pubsub_emulator.spark_audit.tables.delta import DeltaError
from pubsub_emulator.spark_audit.tables.parts import RETAIN
from pubsub_emulator.version import VERSION

CLEAN: Final = 0
"""Exit code: no findings, and every chain is verified."""
FINDINGS: Final = 1
"""Exit code: findings at or above the demanded severity."""
USAGE: Final = 2
"""Exit code: the audit was called with wrong arguments."""
INCOMPLETE: Final = 3
"""Exit code: something could not be read or verified."""
INFRASTRUCTURE: Final = 4
"""Exit code: a disk, a network or an engine failed."""
BOTH: Final = 5
"""Exit code: findings, and something could not be read or verified. Neither may hide the other."""
_NO_HEAD: Final = "not known: manifests are damaged or missing"


class AuditFailed(PubsubError):
    """The audit could not be done.

    `exit_code` is `USAGE` for wrong arguments, `INCOMPLETE` if the history has another head than
    the caller demanded, and `INFRASTRUCTURE` if the machine failed.
    """

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@dataclass(frozen=True, slots=True)
class AuditResult:
    """The result of an audit."""

    exit_code: int
    digest: str
    """One digest over all canonical rows of the output. Equal histories give equal digests, on
    every engine and however the work was split."""
    chains: tuple[Row, ...]
    """The rows of the table `chains`."""
    candidates: int
    """Candidates and imported proofs in the history."""
    judged: int
    """How many of `candidates` were judged, by this run or an earlier one."""
    proof_bytes: int
    store: Store
    """Where the output is."""
    head: str | None = None
    """The history's head, `None` if manifests are damaged or missing."""
    findings: dict[str, int] = field(default_factory=dict)
    """Number of findings by severity."""
    codes: dict[str, int] = field(default_factory=dict)
    """Number of findings by code."""
    read_errors: int = 0
    """Rows of the table `read_errors`."""
    uncommitted: int = 0
    """Data files of the history that no manifest names. A writer has not finished, or manifests
    were lost."""
    units_judged: int = 0
    """Units of work that this run did."""
    units_skipped: int = 0
    """Units of work whose results were taken from earlier runs."""
    engine: str | None = None
    """The engine that ran, `None` if nothing had changed."""
    seconds: float = 0.0
    report: dict[str, object] = field(default_factory=dict)
    """The content of `run_report.json`."""

    @property
    def out(self) -> Path | str:
        """The place of the output: a local folder, or a URI."""
        return self.store.folder if isinstance(self.store, LocalStore) else self.store.uri

    @property
    def results(self) -> Results:
        """The tables that the audit wrote."""
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
    rules: Rules = SHIPPED,
    opener: Callable[[str, str | None], Mapper] = open_mapper,
) -> AuditResult:
    """Audit the history at `history` and write the results to `out`.

    `engine` is `auto`, `python` (this process), `pool` (processes of this machine) or `spark` (with
    `master`). `progress` is called with the state of the work.

    - `thresholds`: the minimum figures with which a pattern of behaviour is a finding.
    - `trusted`: hashes, in hex, of headers at which a chain may start besides its genesis.
    - `head`: the head, in hex, that the history must have.
    - `fail_on`: the lowest severity that makes the exit code 1 or 5. With `None`, findings do not
      count.
    - `retain`: how long files stay in the output after the last table stopped naming them.
    - `rules`: the rules with which the history was made.
    - `opener`: starts the engine. It is called only if there is work.

    The result's exit code (AU-7) is 0 for a clean history, 1 for findings at or above `fail_on`, 3
    if something could not be read or a chain is not verified, and 5 for both. Raises `AuditFailed`
    with the code 2, 3 or 4.
    """
    started = time.monotonic()
    if engine not in ENGINES:
        raise AuditFailed(f"unknown engine {engine!r}. Engines: {', '.join(ENGINES)}", USAGE)

    def start(units: int) -> Mapper:
        return opener(choose_engine(engine, master, units), master)

    try:
        if master is not None:
            check_form(master)
        limits = thresholds or Thresholds()
        watch = progress or (lambda _progress: None)
        retain_ms = retain // timedelta(milliseconds=1)
        rounds = Rounds(
            open_store(history),
            Work(open_store(out), start, watch),
            limits=limits,
            retain=retain_ms,
            rules=RulesFile.of(rules),
        )
        rounds.prepare()
        _ensure_rules(rounds.history, rules)
    except (CommitError, RulesError, StorageError, WrongMaster) as error:
        raise AuditFailed(str(error), USAGE) from None
    except OSError as error:
        raise AuditFailed(f"{history}: {error.strerror or error}", INFRASTRUCTURE) from None
    try:
        if head is not None:
            _demand(rounds, head)
        rounds.run()
        return _finish(rounds, frozenset(trusted), fail_on, started=started)
    except OSError as error:
        raise AuditFailed(
            f"{error.filename or rounds.out}: {error.strerror or error}", INFRASTRUCTURE
        ) from error
    except (EngineLost, ResultError, RulesError, DeltaError) as error:
        raise AuditFailed(str(error), INFRASTRUCTURE) from error
    finally:
        rounds.close()


def _rules_in(store: Store) -> bytes | None:
    """Return the digest of the rules that a history was made with.

    The digest is read from the code in the first segment's first checkpoint. It is empty for the
    rules that this program ships. Returns `None` if the history has no readable runtime.
    """
    if not store.exists(COMMITS):
        return None
    commits, _ = read_commits(store, sorted(manifest_names(store))[:1])
    listed = chained.from_iterable(commit.files for commit in commits)
    files = [entry for entry in listed if entry.table == schema.CHECKPOINTS.name]
    rows = next(read_file(store, files[0]), None) if files else None
    if rows is None or isinstance(rows, Fault) or not rows.num_rows:
        return None
    entries = rows.column("entries")[0].as_py()
    code = next((entry["value"] for entry in entries if entry["key"] == CODE), b"")
    try:
        return decode_spec(code).rules
    except PubsubError:
        return None


def _ensure_rules(store: Store, given: Rules) -> None:
    """Raise `RulesError` unless the given rules are those of the history.

    With other rules, every block would look invalid.
    """
    recorded = _rules_in(store)
    if recorded is None or recorded == given.digest:
        return
    recorded_as = "the shipped rules"
    if recorded:
        recorded_as = f"the rules 0x{recorded.hex()}"
    given_as = "no rules are given; `--rules` names their file"
    if given.digest:
        given_as = f"{given.path} is 0x{given.digest.hex()}"
    raise RulesError(f"{store}: the history was made with {recorded_as}, and {given_as}")


def _demand(rounds: Rounds, head: str) -> None:
    """Raise `AuditFailed` unless the history has this head."""
    actual = rounds.head()
    if actual != head.removeprefix("0x").lower():
        shown = f"0x{actual}" if actual else "none: manifests are damaged or missing"
        raise AuditFailed(
            f"{rounds.history}: its head is {shown}, not {head}; nothing was audited", INCOMPLETE
        )
    # The demanded head says how far the history goes, even if an earlier audit has read more.
    rounds.accept()


@dataclass(frozen=True, slots=True)
class _Summary:
    """The rows about whole chains and unreadable data, which every run makes anew."""

    chains: list[Row]
    findings: list[Row]
    read_errors: list[Row]
    incomplete: int
    """Number of chains with missing data."""

    def tables(self) -> dict[schema.Table, list[Row]]:
        """Return the rows that the digest covers.

        A chain's name is left out. It is a claim of the history and must not change the digest.
        """
        nameless = [{name: row[name] for name in row if name != "name"} for row in self.chains]
        return {
            schema.CHAINS: nameless,
            schema.FINDINGS: self.findings,
            schema.READ_ERRORS: self.read_errors,
        }

    def digests(self) -> dict[str, str]:
        """Return, by table, the digest of the rows in hex."""
        return {table.name: digest_rows(table, rows).hex() for table, rows in self.tables().items()}

    def written(self, digests: Mapping[str, str]) -> Iterable[tuple[schema.Table, str, list[Row]]]:
        """Yield each table with the name of its source and the rows to write.

        The name identifies the content. If the last run wrote a table from a source of the same
        name, its rows need not be written again.
        """
        chains_source = (
            f"summary/{schema.CHAINS.wider.version}-{digest_rows(schema.CHAINS, self.chains).hex()}"
        )
        yield schema.CHAINS, chains_source, self.chains
        yield schema.FINDINGS, f"summary/{digests[schema.FINDINGS.name]}", self.findings
        yield schema.READ_ERRORS, f"summary/{digests[schema.READ_ERRORS.name]}", self.read_errors


def _summarize(rounds: Rounds, trusted: frozenset[str]) -> _Summary:
    """Judge each chain as a whole and collect everything that could not be read.

    Several chains or rounds may report the same read error. It is counted once.
    """
    rounds.work.watch(AuditProgress("summary", 0, 1))
    chains: list[Row] = []
    notes: list[Row] = []
    incomplete = 0
    name_faults: list[Fault] = []
    for name in sorted(rounds.networks):
        names, fault = read_names(rounds.history, name)
        if fault is not None:
            name_faults.append(fault)
        account = rounds.networks[name].account
        for number in sorted(account.chains):
            row, chain_notes, is_incomplete = judge_chain(
                account,
                number,
                trusted,
                faults=rounds.faults,
                lost=rounds.lost,
            )
            chains.append({**row, "name": names.get(number)})
            notes += chain_notes
            if is_incomplete:
                incomplete += 1
    unread = [*rounds.read_errors(), *(fault.row() for fault in name_faults)]
    read_errors = {encode_row(schema.READ_ERRORS, row): row for row in unread}
    rounds.work.watch(AuditProgress("summary", 1, 1))
    return _Summary(chains, notes, list(read_errors.values()), incomplete=incomplete)


def _finish(
    rounds: Rounds, trusted: frozenset[str], fail_on: Severity | None, started: float
) -> AuditResult:
    """Count findings, write tables, ledger and report, and decide the exit code.

    The report is written last. It names the tables' files, so if this run is killed before, the
    report and the tables of the last run are still valid.
    """
    summary = _summarize(rounds, trusted)
    digests = summary.digests()
    rounds.work.watch(AuditProgress("tables", 0, 1))
    rounds.keep(_replaced(rounds.networks, summary, digests))
    severities = {severity.value: 0 for severity in Severity}
    codes: dict[str, int] = {}
    for severity, code, count in _findings(rounds.networks, summary):
        severities[severity] += count
        codes[code] = codes.get(code, 0) + count
    uncommitted = rounds.uncommitted()
    heads = {name: ledger.account.head or "" for name, ledger in rounds.networks.items()}
    head = None if rounds.faults or rounds.lost or not heads else head_of(heads)
    # Data files without a single manifest mean that all manifests were lost.
    manifests_lost = uncommitted > 0 and not rounds.networks
    exit_code = _exit_code(summary, severities, fail_on, manifests_lost=manifests_lost)
    figures: dict[str, Any] = {
        name: sum(row[name] for row in summary.chains)
        for name in ("candidates", "judged", "proof_bytes")
    }
    figures |= {
        "read_errors": len(summary.read_errors),
        "exit_code": exit_code,
        "digest": _digest(rounds.networks, digests),
        "engine": rounds.work.engine,
        "findings": severities,
        "codes": dict(sorted(codes.items())),
        "head": head,
    }
    tasks = sum(ledger.account.tasks for ledger in rounds.networks.values())
    units = {"judged": rounds.work.judged, "skipped": tasks - rounds.work.judged}
    seconds = time.monotonic() - started
    candidates_per_second = None
    if rounds.work.judged:
        candidates_per_second = round(rounds.work.candidates / max(rounds.work.seconds, 1e-3), 1)
    report = {
        **figures,
        "verifier": VERSION,
        "history": rounds.history.uri,
        "complete_up_to": f"head 0x{head}, as the history itself says" if head else _NO_HEAD,
        "segments": sum(ledger.account.segments for ledger in rounds.networks.values()),
        "seconds": round(seconds, 3),
        "units": units,
        "candidates_per_second": candidates_per_second,
        "uncommitted_files": uncommitted,
        "chains": [
            {**row, "end": None if row["end"] is None else row["end"].hex()}
            for row in summary.chains
        ],
        "thresholds": asdict(rounds.limits),
        "tables": rounds.tables.files(),
    }
    write_report(rounds.out, report)
    rounds.tidy()
    rounds.work.watch(AuditProgress("tables", 1, 1))
    return AuditResult(
        **figures,
        uncommitted=uncommitted,
        chains=tuple(summary.chains),
        store=rounds.out,
        units_judged=units["judged"],
        units_skipped=units["skipped"],
        seconds=seconds,
        report=report,
    )


def _exit_code(
    summary: _Summary,
    severities: Mapping[str, int],
    fail_on: Severity | None,
    *,
    manifests_lost: bool,
) -> int:
    """Return the exit code of a finished audit (AU-7).

    `severities` has the number of findings by severity. With a `fail_on` of `None`, they do not
    count. `manifests_lost` says that the history has data files, but no manifests.
    """
    has_findings = any(
        severities[severity.value]
        for severity in Severity
        if fail_on is not None and severity.at_least(fail_on)
    )
    if has_findings:
        data_missing = summary.read_errors or summary.incomplete
        return BOTH if data_missing else FINDINGS
    all_verified = (
        not summary.read_errors
        and not manifests_lost
        and all(row["status"] != "not verified" for row in summary.chains)
    )
    return CLEAN if all_verified else INCOMPLETE


def _replaced(
    networks: Mapping[str, NetworkLedger], summary: _Summary, digests: Mapping[str, str]
) -> dict[str, list[tuple[str, RowRange | pa.Table]]]:
    """Return, by table, the rows about whole chains that replace those of the last run.

    Each entry has the name of its source and the source's rows. `Rounds.keep` skips sources that
    the tables already have.
    """
    out: dict[str, list[tuple[str, RowRange | pa.Table]]] = {}
    for ledger in networks.values():
        for fold in ledger.account.folds:
            for file, table_name in REPLACED.items():
                if file in fold["files"]:
                    path, _ = fold["files"][file]
                    out.setdefault(table_name, []).append((path, RowRange(path)))
    for table, source, rows in summary.written(digests):
        if rows:
            out.setdefault(table.name, []).append((source, table.arrow(rows)))
    return out


def _findings(networks: Mapping[str, NetworkLedger], summary: _Summary) -> Iterable[Sequence[Any]]:
    """Yield severity, code and number of findings. The same severity and code may come again."""
    for ledger in networks.values():
        yield from ledger.account.counts
        for fold in ledger.account.folds:
            yield from fold["open"]
    for row in summary.findings:
        yield row["severity"], row["code"], 1


def _digest(networks: Mapping[str, NetworkLedger], digests: Mapping[str, str]) -> str:
    """Return one digest over the canonical rows of all tables, however the work was split.

    It covers the running digests of each network's segments and of its chains' folds, and the
    digests of the rows about whole chains.
    """
    body: list[list[object]] = []
    for name in sorted(networks):
        account = networks[name].account
        chains = sorted(chained.from_iterable(fold["chains"].items() for fold in account.folds))
        body.append([account.network, account.rows, chains])
    return digest_of(canonical_json([body, digests]))
