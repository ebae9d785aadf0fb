"""`pubsub experiment`: a sweep or a preset, as tables and figures."""

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import fields
from itertools import count
from pathlib import Path

from pubsub_emulator.cli.base.figures import show_differences
from pubsub_emulator.cli.base.result import Result
from pubsub_emulator.cli.screen import files, say, stage, table
from pubsub_emulator.files.output import new_folder
from pubsub_emulator.files.shown import cell
from pubsub_emulator.laboratory.experiments.charts import NoPlotLibrary, draw
from pubsub_emulator.laboratory.experiments.experiment import (
    Measurement,
    UnknownParameter,
    Workload,
    sweep,
    with_field,
)
from pubsub_emulator.laboratory.experiments.presets import QUESTIONS, Figure, sweep_figure
from pubsub_emulator.primitives.words import counted
from pubsub_emulator.runs.figures import lines_of
from pubsub_emulator.runtime.pallet_subscriber.config import CachePolicy
from pubsub_emulator.runtime.rules import Rules


def run_question(name: str, out: Path, rules: Rules) -> Result:
    """Measure the workloads of a preset, and write its tables and plots."""
    with stage(f"measuring {name}") as advance:
        number = count(1)
        figures = QUESTIONS[name](lambda workload: advance(next(number), None, workload), rules)
    return write(figures, out)


def run_sweep(  # noqa: PLR0917  # the order of the options
    swept: str,
    settings: Sequence[str],
    policies: Sequence[CachePolicy],
    y: str,
    out: Path,
    rules: Rules,
) -> Result:
    """Vary one field of a workload. Raises `UnknownParameter`."""
    known = [field.name for field in fields(Measurement) if field.name != "workload"]
    if y not in known:
        raise UnknownParameter(f"a measurement has no figure {y!r}; it has {', '.join(known)}")
    base = Workload()
    fixed = []
    for name, value in map(_assignment, settings):
        base = with_field(base, name, value)
        fixed.append(name)
    parameter, text = _assignment(swept)
    for name in fixed:
        if name == parameter:
            raise UnknownParameter(f"{name} is given in both --sweep and --set; give it once")
        if fixed.count(name) > 1:
            raise UnknownParameter(
                f"{name} is given {fixed.count(name)} times in --set; give it once"
            )
    values = [value.strip() for value in text.split(",") if value.strip()]
    for value in values:
        with_field(base, parameter, value)
    total = len(values) * len(policies)
    if not total:
        raise UnknownParameter(f"--sweep {parameter}: no values")
    finished = count()
    with stage(f"measuring {counted(total, 'workload')}", total) as advance:

        def watch(load: Workload) -> None:
            """Report the workload that is measured next."""
            next_one = f"{parameter} {load.value_of(parameter)}, {load.cache.value}"
            advance(next(finished), total, next_one)

        measurements = list(sweep(parameter, values, policies, base, watch, rules))
    return write(
        (sweep_figure(parameter, y, measurements),), out, lambda: _compare(parameter, measurements)
    )


def _compare(parameter: str, measurements: Sequence[Measurement]) -> None:
    """Print the table of `pubsub compare` for each cache policy.

    The sides are the values of the swept field.
    """
    parameters = {field.name for field in fields(Workload)}
    for policy in dict.fromkeys(measurement.workload.cache for measurement in measurements):
        of_policy = [
            measurement for measurement in measurements if measurement.workload.cache is policy
        ]
        figures = []
        labels = []
        for measurement in of_policy:
            row = measurement.row()
            figures.append(
                {name: float(value) for name, value in row.items() if name not in parameters}
            )
            labels.append(f"{parameter} {measurement.workload.value_of(parameter)}")
        lines = lines_of(figures)
        say(f"cache {policy.value}:")
        show_differences(labels, [line for line in lines if line.differs or len(of_policy) == 1])


def parse_policies(text: str) -> tuple[CachePolicy, ...]:
    """Return the policies in a text of names with commas. Raises `UnknownParameter`."""
    try:
        return tuple(dict.fromkeys(CachePolicy(name.strip()) for name in text.split(",")))
    except ValueError:
        known = ", ".join(policy.value for policy in CachePolicy)
        raise UnknownParameter(
            f"{text!r} is not a list of cache policies. Policies: {known}"
        ) from None


def _assignment(text: str) -> tuple[str, str]:
    """Return the field and the value in `FIELD=VALUE`. Raises `UnknownParameter`."""
    name, sign, value = text.partition("=")
    if not sign:
        raise UnknownParameter(f"{text!r} is not FIELD=VALUE")
    return name.strip(), value.strip()


def write(figures: Sequence[Figure], out: Path, show: Callable[[], None] | None = None) -> Result:
    """Write figures as CSV and JSON, draw those with an axis, and print them.

    `show` prints other tables than the figures' own ones. Without the plot library, the tables are
    written all the same, and a line on standard error says why no plot was drawn.
    """
    written: list[tuple[Path, str]] = []
    undrawn = ""
    with new_folder(out) as folder:
        for figure in figures:
            written += [(out / path.name, "the table") for path in _write_table(figure, folder)]
            if figure.y:
                try:
                    written += [(out / path.name, "the plot") for path in draw(figure, folder)]
                except NoPlotLibrary as error:
                    undrawn = str(error)
    if show is not None:
        show()
    else:
        for figure in figures:
            columns = figure.columns or tuple(figure.rows[0])
            shown = ([_cell(row[name]) for name in columns] for row in figure.rows)
            names_rows = 2 if figure.series in columns[:2] else 1
            table(figure.title, columns, shown, names_rows=names_rows)
    files("written:", written)
    if undrawn:
        say(f"no plot was drawn: {undrawn}", aside=True)
    return Result(
        {
            "figures": [_document(figure) for figure in figures],
            "files": [path for path, _ in written],
        }
    )


def _cell(value: float | str) -> int | str:
    """Return a figure as it stands in a table.

    An integral figure becomes an integer, so that the table aligns it. A text stays as it is.
    """
    if isinstance(value, str):
        return value
    if value == int(value):
        return int(value)
    return f"{value:g}" if abs(value) < 1 else f"{value:,.1f}"


def _write_table(figure: Figure, folder: Path) -> list[Path]:
    """Write the rows of a figure as `NAME.csv` and `NAME.json`, and return the files."""
    as_csv = folder / f"{figure.name}.csv"
    as_json = folder / f"{figure.name}.json"
    with as_csv.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, tuple(figure.rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in figure.rows:
            writer.writerow({name: cell(value) for name, value in row.items()})
    as_json.write_text(json.dumps(_document(figure), indent=1) + "\n", encoding="utf-8")
    return [as_csv, as_json]


def _document(figure: Figure) -> dict[str, object]:
    return {"name": figure.name, "title": figure.title, "rows": figure.rows}
