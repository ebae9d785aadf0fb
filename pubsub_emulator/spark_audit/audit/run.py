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
from pubsub_emulator.spark_audit.audit.rounds import REPLACED, Progress, Rounds, Watcher
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
from pubsub_emulator.spark_audit.judge.results import ResultError, Results, Rows, write_report
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

    - `thresholds`: from which figures on habits become findings.
    - `trusted`: hashes, in hex, of headers at which a chain may start besides its genesis.
    - `head`: the head, in hex, that the history must have.
    - `fail_on`: the lowest severity that counts for the exit code, `None` for no severity.
    - `retain`: how long files stay in the output after the last table stopped naming them.
    - `rules`: those with which the history was made.
    - `opener`: starts the engine, and is called only if there is work.

    The result's exit code (AU-7) is 0 for a clean history, 1 for findings at or above `fail_on`, 3
    if something could not be read or a chain is not verified, and 5 for both. Raises `AuditFailed`
    with the code 2, 3 or 4.
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
        rounds = Rounds(
            open_store(history),
            open_store(out),
            start,
            watch,
            limits,
            kept_for,
            RulesFile.of(rules),
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
        return _finish(rounds, frozenset(trusted), fail_on, started)
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
    commits, _ = (
        read_commits(store, sorted(manifest_names(store))[:1])
        if store.exists(COMMITS)
        else ([], [])
    )
    listed = chained.from_iterable(commit.files for commit in commits)
    files = [entry for entry in listed if entry.table == schema.CHECKPOINTS.name]
    unit = next(read_file(store, files[0]), None) if files else None
    if unit is None or isinstance(unit, Fault) or not unit.num_rows:
        return None
    entries = unit.column("entries")[0].as_py()
    try:
        return decode_spec(
            next((each["value"] for each in entries if each["key"] == CODE), b"")
        ).rules
    except PubsubError:
        return None


def _ensure_rules(store: Store, given: Rules) -> None:
    """Raise `RulesError` unless the given rules are those of the history.

    Otherwise every block would look invalid.
    """
    found = _rules_in(store)
    if found is None or found == given.digest:
        return
    made = f"the rules 0x{found.hex()}" if found else "the shipped rules"
    digest = given.digest
    mine = (
        f"{given.path} is 0x{digest.hex()}"
        if digest
        else "no rules are given; `--rules` names their file"
    )
    raise RulesError(f"{store}: the history was made with {made}, and {mine}")


def _demand(rounds: Rounds, head: str) -> None:
    """Raise `AuditFailed` unless the history has this head."""
    found = rounds.head()
    if found != head.removeprefix("0x").lower():
        is_ = f"0x{found}" if found else "none: manifests are damaged or missing"
        raise AuditFailed(
            f"{rounds.history}: its head is {is_}, not {head}; nothing was audited", INCOMPLETE
        )
    # The caller knows what the whole history is, whatever an earlier audit has read.
    rounds.accept()


@dataclass(frozen=True, slots=True)
class _Summary:
    """The rows about whole chains, which every run makes anew."""

    chains: list[Row]
    findings: list[Row]
    read_errors: list[Row]
    incomplete: int
    """Number of chains of which data is missing."""

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
        return {table.name: digest_rows(table, rows).hex() for table, rows in self.tables().items()}

    def written(self, digests: Mapping[str, str]) -> Iterable[tuple[schema.Table, str, list[Row]]]:
        """Yield the rows as they are written, each table with a name that identifies its content.

        If the last run wrote a table under the same name, its rows need not be written again.
        """
        named = (
            f"summary/{schema.CHAINS.wider.version}-{digest_rows(schema.CHAINS, self.chains).hex()}"
        )
        yield schema.CHAINS, named, self.chains
        yield schema.FINDINGS, f"summary/{digests[schema.FINDINGS.name]}", self.findings
        yield schema.READ_ERRORS, f"summary/{digests[schema.READ_ERRORS.name]}", self.read_errors


def _summarize(rounds: Rounds, trusted: frozenset[str]) -> _Summary:
    """Judge each chain as a whole and collect everything that could not be read.

    A read error may be reported more than once, by several chains or rounds. It is counted
    once.
    """
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
            row, noted, misses = judge_chain(account, number, trusted, rounds.faults, rounds.lost)
            chains.append({**row, "name": names.get(number)})
            notes += noted
            incomplete += misses
    unread = [*rounds.read_errors(), *(fault.row() for fault in unnamed)]
    read_errors = {encode_row(schema.READ_ERRORS, row): row for row in unread}
    rounds.watch(Progress("summary", 1, 1))
    return _Summary(chains, notes, list(read_errors.values()), incomplete)


def _finish(
    rounds: Rounds, trusted: frozenset[str], fail_on: Severity | None, started: float
) -> AuditResult:
    """Count, write tables, ledger and report, and decide the exit code.

    The report is written last. It names the tables' files, so a run that was killed before leaves
    the report and the tables of the run before valid.
    """
    summary = _summarize(rounds, trusted)
    digests = summary.digests()
    rounds.watch(Progress("tables", 0, 1))
    rounds.keep(_replaced(rounds.networks, summary, digests))
    severities = {severity.value: 0 for severity in Severity}
    codes: dict[str, int] = {}
    for severity, code, count in _findings(rounds.networks, summary):
        severities[severity] += count
        codes[code] = codes.get(code, 0) + count
    bad = any(
        severities[each.value]
        for each in Severity
        if fail_on is not None and each.at_least(fail_on)
    )
    uncommitted = rounds.uncommitted()
    whole = not summary.read_errors and all(
        row["status"] != "not verified" for row in summary.chains
    )
    # Something was recorded, and not even one manifest is left.
    whole = whole and not (uncommitted and not rounds.networks)
    lost = summary.read_errors or summary.incomplete
    heads = {name: kept.account.head or "" for name, kept in rounds.networks.items()}
    head = None if rounds.faults or rounds.lost or not heads else head_of(heads)
    if bad:
        exit_code = BOTH if lost else FINDINGS
    elif whole:
        exit_code = CLEAN
    else:
        exit_code = INCOMPLETE
    figures = {
        **{
            name: sum(row[name] for row in summary.chains)
            for name in ("candidates", "judged", "proof_bytes")
        },
        "read_errors": len(summary.read_errors),
        "exit_code": exit_code,
        "digest": _digest(rounds.networks, digests),
        "engine": rounds.engine,
        "findings": severities,
        "codes": dict(sorted(codes.items())),
        "head": head,
    }
    units = {
        "judged": rounds.judged,
        "skipped": sum(kept.account.tasks for kept in rounds.networks.values()),
    }
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
        "candidates_per_second": round(rounds.candidates / max(rounds.seconds, 1e-3), 1)
        if rounds.judged
        else None,
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
    rounds.watch(Progress("tables", 1, 1))
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


def _replaced(
    networks: Mapping[str, NetworkLedger], summary: _Summary, digests: Mapping[str, str]
) -> dict[str, list[tuple[str, Rows | pa.Table]]]:
    """Return the rows that replace those of the last run about whole chains.

    They are by table, each with the name of their source. `Rounds.keep` skips sources that the
    tables already have.
    """
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
    """Yield severity, code and number of findings. A severity and code may come several times."""
    for kept in networks.values():
        yield from kept.account.counts
        for fold in kept.account.folds:
            yield from fold["open"]
    for row in summary.findings:
        yield row["severity"], row["code"], 1


def _digest(networks: Mapping[str, NetworkLedger], digests: Mapping[str, str]) -> str:
    """Return one digest over the canonical rows of all tables, however the work was split.

    The parts are the running digests of each network's segments and of its chains' folds, and the
    digests of the rows about whole chains.
    """
    body: list[list[object]] = []
    for name in sorted(networks):
        account = networks[name].account
        chains = sorted(chained.from_iterable(fold["chains"].items() for fold in account.folds))
        body.append([account.network, account.rows, chains])
    return digest_of(canonical_json([body, digests]))
