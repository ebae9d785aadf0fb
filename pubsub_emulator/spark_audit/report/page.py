"""The page with the figures and charts of an audit, in one HTML file without other files.

Texts from a history may come from a stranger. The template escapes them, and the page's policy
only allows its own script.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain as chained
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from pubsub_emulator.files.shown import safe
from pubsub_emulator.pages.assets import script, styles
from pubsub_emulator.pages.document import head
from pubsub_emulator.pages.html import Html, cells, heads
from pubsub_emulator.pages.words import percent, size
from pubsub_emulator.primitives.words import counted
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.address import Address
from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.spark_audit.judge.finding_file import finding_text
from pubsub_emulator.spark_audit.judge.results import Results
from pubsub_emulator.spark_audit.report import CHARTS, PAGE, charts
from pubsub_emulator.spark_audit.report.axes import NARROW, WIDE
from pubsub_emulator.spark_audit.report.breakdown import ByteShare, where_bytes_go
from pubsub_emulator.spark_audit.report.columns import PLACE, Chain, Names, called
from pubsub_emulator.spark_audit.report.culprits import Culprits, culprits, unread
from pubsub_emulator.spark_audit.report.delays import Delays, delays
from pubsub_emulator.spark_audit.report.drawing import DrawnChart, draw
from pubsub_emulator.spark_audit.report.savings import Savings, savings
from pubsub_emulator.spark_audit.report.series import Series, bytes_over_time

MOST_DRAWN: Final = 12
"""The maximum number of chains with charts of their own. The page's table shows further chains."""

MOST_ROWS: Final = 200
"""The maximum number of rows in the page's table of chains. The audit's own table has all."""

_TEMPLATES: Final = Path(__file__).parent / "templates"
_STYLES: Final = ("report/report.css", "report/charts.css", "report/tables.css")
"""The styles of the page beside those of every page, in their order."""
EVIDENCE: Final = "evidence"
"""The folder with evidence beside the page."""
_MOST_EVIDENCE: Final = 1_048_576
"""The maximum size of a finding's evidence in the report, in bytes. The evidence about a block with
a stuffed proof takes megabytes; `pubsub evidence` writes it."""
_DRAWN_FIRST: Final = (schema.PUBLISHER_MEASURES, schema.PROOF_PARTS)
"""Tables that attribute bytes. Chains with rows in them are drawn before others."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart for wide and for narrow windows."""

    name: str
    wide: DrawnChart
    narrow: DrawnChart
    label: str
    """Its description."""

    @property
    def inline(self) -> Markup:
        """Both pictures as HTML. The page's style shows the one that fits the window."""
        wide = self.wide.inline(self.label)
        narrow = self.narrow.inline(self.label)
        return Markup(f'<div class="wide">{wide}</div><div class="narrow">{narrow}</div>')  # noqa: S704  # drawn here

    def write(self, folder: Path) -> None:
        """Write `NAME.svg` and `NAME.png`. Raises `OSError`."""
        (folder / f"{self.name}.svg").write_text(self.wide.svg, encoding="utf-8")
        (folder / f"{self.name}.png").write_bytes(self.wide.png())


OnProgress = Callable[[int, int], None]
"""Called with the number of steps that are done, and of all."""


@dataclass(frozen=True, slots=True)
class ChainPart:
    """One chain as the page shows it. Missing parts are `None`."""

    row: Row
    """Its row of `chains`."""
    name: str
    """Network, ParaId and name."""
    id: str
    """The id of its section in the page."""
    series: Series
    tree: ByteShare
    savings: Savings | None
    delays: Delays | None
    charts: dict[str, Chart]
    """Its charts by kind."""


def write_report(
    audit: Address, folder: Path, progress: OnProgress = lambda _done, _total: None
) -> list[Path]:
    """Write the report of an audit into an empty folder.

    It consists of the page, which is the same for the same audit, the charts as SVG and PNG, and
    evidence of findings. `progress` counts each chain twice, since its charts are drawn and then
    written. Returns the paths of the page and of the pictures. Raises `ResultError` if there is no
    audit or its tables cannot be read, and `OSError`.
    """
    results = Results.open(audit)
    chains = _ranked(results)
    shown = chains[:MOST_DRAWN]
    saved = savings(results)
    drawn: list[ChainPart] = []
    names = {_place(row): row["name"] for row in chains if row.get("name")}
    for row in shown:
        progress(len(drawn), 2 * len(shown))
        drawn.append(
            _chain_part(
                results, row, f"chain-{len(drawn) + 1}", names=names, saved=saved.get(_place(row))
            )
        )
    all_culprits = culprits(results)
    ranked_savings = sorted(saved.values(), key=lambda entry: (-entry.full, entry.chain))
    overall: dict[str, Chart] = {}
    if ranked_savings:
        overall["savings"] = _chart(
            "savings",
            "Savings by cause",
            partial(charts.savings, chain_names=names),
            figures=ranked_savings,
        )
    if all_culprits.collators:
        specify = partial(charts.collators, chain_names=names)
        overall["collators"] = _chart(
            "collators", "Findings by collator", specify, figures=all_culprits.collators
        )
    context = {
        "evidence": _write_evidence(results, all_culprits, folder / EVIDENCE),
        "report": results.report,
        "chains": chains,
        "drawn": drawn,
        "names": names,
        "ids": {_place(part.row): part.id for part in drawn},
        "savings": ranked_savings,
        "culprits": all_culprits,
        "unread": unread(results),
        "charts": overall,
        "most_rows": MOST_ROWS,
    }
    page = folder / PAGE
    pictures = folder / CHARTS
    pictures.mkdir()
    groups = [overall]
    groups += [part.charts for part in drawn]
    for index, group in enumerate(groups):
        # The first group belongs to no chain, so it does not count.
        progress(max(len(drawn) + index - 1, 0), 2 * len(drawn))
        for chart in group.values():
            chart.write(pictures)
    page.write_text(_rendered(context), encoding="utf-8")
    return [page, pictures]


def _write_evidence(results: Results, all_culprits: Culprits, folder: Path) -> frozenset[bytes]:
    """Write the findings that the page shows in full as files for `pubsub evidence`.

    Returns the ids of those that were written.
    """
    wanted = sorted({row["id"] for row in all_culprits.findings})
    if not wanted:
        return frozenset()
    folder.mkdir()
    written: set[bytes] = set()
    for part in results.groups(schema.FINDINGS):
        is_wanted = pc.is_in(part["id"], pa.array(wanted, schema.HASH))
        for row in part.filter(is_wanted).to_pylist():
            if len(row["evidence"]) <= _MOST_EVIDENCE:
                (folder / f"{row['id'].hex()[:16]}.json").write_text(
                    finding_text(row), encoding="utf-8"
                )
                written.add(row["id"])
    return frozenset(written)


def _place(row: Row) -> Chain:
    """Return the chain that a row is about."""
    return row["network"], row["chain"]


def _ranked(results: Results) -> list[Row]:
    """Return the chains in the order in which the page shows them.

    Chains that are not verified come first, then those with attributed bytes, then all others. In
    each of these groups, the order is by the bytes of the proofs.
    """
    attributed: set[Chain] = set()
    for part in chained.from_iterable(results.groups(table, PLACE) for table in _DRAWN_FIRST):
        # Grouping without sums gives each chain once.
        attributed.update(map(_place, part.group_by(list(PLACE)).aggregate([]).to_pylist()))

    def rank(row: Row) -> tuple[bool, bool, int, Chain]:
        return (
            row["status"] != "not verified",
            _place(row) not in attributed,
            -row["proof_bytes"],
            _place(row),
        )

    return sorted(results.rows(schema.CHAINS), key=rank)


def _chain_part(
    results: Results, row: Row, name: str, names: Names, saved: Savings | None
) -> ChainPart:
    """Collect the figures of a chain and draw its charts."""
    chain = _place(row)
    series = bytes_over_time(results, chain)
    tree = where_bytes_go(results, chain, names)
    chain_delays = delays(results, chain)
    title = called(chain, names)
    drawn: dict[str, Chart] = {}
    # A logarithmic axis cannot show zero.
    if any(time_bin.mean or time_bin.largest or time_bin.budget for time_bin in series.bins):
        drawn["time"] = _chart(
            f"{name}-time",
            f"Proof bytes over time, {title}",
            charts.bytes_over_time,
            figures=series,
        )
    if len(tree.parts) > 1:
        drawn["tree"] = _chart(
            f"{name}-bytes", f"Where the bytes go, {title}", charts.where_bytes_go, figures=tree
        )
    if series.has_cache:
        drawn["cache"] = _chart(
            f"{name}-cache", f"Effect of the cache, {title}", charts.cache_over_time, figures=series
        )
    if chain_delays is not None:
        drawn["delays"] = _chart(
            f"{name}-delays", f"Delivery delay, {title}", charts.delays, figures=chain_delays
        )
    return ChainPart(
        row=row,
        name=title,
        id=name,
        series=series,
        tree=tree,
        savings=saved,
        delays=chain_delays,
        charts=drawn,
    )


def _chart(name: str, label: str, specify: Any, figures: Any) -> Chart:
    """Draw figures for wide and narrow windows."""
    return Chart(name, draw(specify(figures, WIDE)), draw(specify(figures, NARROW)), label=label)


def _rendered(context: dict[str, object]) -> str:
    """Return the page.

    Before texts are escaped for HTML, unprintable characters are replaced and long texts are cut.
    """
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        finalize=lambda value: safe(value) if type(value) is str else value,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(size=size, counted=counted)
    environment.globals.update(
        percent=percent,
        total=_total,
        verdict=_verdict,
        heads=heads,
        cells=cells,
    )
    code = script("report/main.js")
    text = environment.get_template("page.html").render(
        **context,
        head=head("Audit report", styles(*_STYLES), code),
        script=Html(code),
    )
    return str(text).lstrip()


def _total(rows: Iterable[object], name: str) -> int:
    """Return the sum of a field of some objects."""
    return sum(getattr(row, name) or 0 for row in rows)


def _verdict(chains: Sequence[Row]) -> str:
    """Return the result of the audit in one sentence."""
    verified = sum(row["status"] == "verified" for row in chains)
    doubtful = sum(row["status"] == "not verified" for row in chains)
    opened = len(chains) - verified - doubtful
    if not chains:
        return "There was no chain to audit."
    if doubtful:
        verb = "is" if doubtful == 1 else "are"
        return f"{doubtful:,} of {counted(len(chains), 'chain')} {verb} not verified."
    if not verified:
        return (
            f"Imported relay proofs of {counted(opened, 'chain')} were opened. There are no other"
            " chains."
        )
    if verified == 1:
        return "The one chain is verified."
    return f"All {verified:,} chains are verified."
