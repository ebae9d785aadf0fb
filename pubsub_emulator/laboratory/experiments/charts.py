"""Charts as PNG and SVG, drawn without a browser, a display or a network.

The plotting library is the extra `plot`. It is imported only when a chart is drawn.
"""

from pathlib import Path
from typing import Any, Final

from pubsub_emulator.files.extras import brings
from pubsub_emulator.laboratory.experiments.presets import Figure
from pubsub_emulator.primitives.errors import PubsubError

WIDTH: Final = 320
HEIGHT: Final = 240
PALETTE: Final = ("#4477aa", "#cc6677", "#117733", "#ddaa33")
"""Colours that colour-blind people can distinguish."""


_TITLES: Final = {
    "pov": "PoV of a block, bytes",
    "keys": "subscribed keys of each publisher",
    "value_size": "value size, bytes",
    "latency_max": "relay blocks",
    "longest delay": "relay blocks",
    "unused_at_stop_max": "bytes",
    "share of none, %": "PoV of a block, none being 100 %",
}


class NoPlotLibrary(PubsubError):
    """The extra is not installed."""

    is_infrastructure = True


def draw(figure: Figure, folder: Path) -> list[Path]:
    """Write a figure as `NAME.svg` and `NAME.png`, and return the files. Raises `NoPlotLibrary`."""
    try:
        import vl_convert  # noqa: PLC0415  # an extra
    except ImportError as error:
        raise NoPlotLibrary(f"drawing needs {error.name}, {brings('plot')}") from error
    spec = specification(figure)
    svg = folder / f"{figure.name}.svg"
    png = folder / f"{figure.name}.png"
    svg.write_text(vl_convert.vegalite_to_svg(spec), encoding="utf-8")
    png.write_bytes(vl_convert.vegalite_to_png(spec, scale=2))
    return [svg, png]


def specification(figure: Figure) -> dict[str, object]:
    """Return the figure as Vega-Lite. Raises `NoPlotLibrary`."""
    try:
        import altair as alt  # noqa: PLC0415  # an extra
    except ImportError as error:
        raise NoPlotLibrary(f"drawing needs {error.name}, {brings('plot')}") from error
    shown = {name for name in (figure.x, figure.y, figure.series, figure.facet) if name}
    rows = [{name: row[name] for name in shown} for row in figure.rows]
    order = _names(figure, figure.series)
    color = alt.Color(
        f"{figure.series}:N",
        sort=order,
        scale=alt.Scale(domain=order, range=list(PALETTE[: len(order)])),
        title=None,
    )
    base = alt.Chart(alt.InlineData(values=rows))
    if figure.bars:
        names = _names(figure, figure.y)
        chart: Any = base.mark_bar().encode(
            x=alt.X(f"{_escaped(figure.x)}:Q", title=_title(figure.x)),
            y=alt.Y(f"{figure.y}:N", sort=names, title=None, axis=alt.Axis(labelLimit=420)),
            yOffset=alt.YOffset(f"{figure.series}:N", sort=order),
            color=color,
        )
        chart = chart.properties(width=2 * WIDTH, height=alt.Step(8))
    else:
        ticks = sorted({float(row[figure.x]) for row in rows}) if figure.log_x else None
        axis = alt.Axis(values=ticks) if ticks else alt.Axis()
        across = alt.Scale(type="log" if figure.log_x else "linear", nice=not figure.log_x)
        upward = alt.Scale(type="log" if figure.log_y else "linear")
        chart = base.mark_line(point=True).encode(
            x=alt.X(f"{_escaped(figure.x)}:Q", title=_title(figure.x), scale=across, axis=axis),
            y=alt.Y(f"{_escaped(figure.y)}:Q", title=_title(figure.y), scale=upward),
            color=color,
            strokeDash=alt.StrokeDash(f"{figure.series}:N", sort=order, legend=None),
        )
        if figure.rule is not None:
            chart = chart + base.mark_rule(strokeDash=[4, 4], color="#666666").encode(
                y=alt.datum(figure.rule)
            )
        chart = chart.properties(width=WIDTH, height=HEIGHT)
    if figure.facet:
        panels = _names(figure, figure.facet)
        chart = chart.facet(column=alt.Column(f"{figure.facet}:N", sort=panels, title=None))
    spec: dict[str, object] = (
        chart.properties(title=figure.title).configure(font="sans-serif").to_dict()
    )
    return spec


def _title(column: str) -> str:
    return _TITLES.get(column, column.replace("_", " "))


def _names(figure: Figure, column: str) -> list[str]:
    """Return the distinct texts in a column, in their order."""
    return list(dict.fromkeys(str(row[column]) for row in figure.rows))


def _escaped(name: str) -> str:
    """Escape the dots, brackets and colons in a field name. Vega-Lite would interpret them."""
    return name.replace(".", "\\.").replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")
