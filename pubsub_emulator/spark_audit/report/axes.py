"""Common parts of the charts, such as size, colours, axes, legends and names of rows.

Widths and heights are in pixels.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import altair as alt

from pubsub_emulator.pages.palette import DAY, FONT
from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.spark_audit.report.series import Bin

WIDE: Final = 900
"""The width of a chart in a wide window, and in its file."""
NARROW: Final = 340
"""The width of a chart in a narrow window."""

Spec = dict[str, object]
"""A Vega-Lite specification."""

LETTER: Final = 6.4
"""The width of an average letter."""
_LEGEND: Final = 13
"""Width of an entry in a legend, beside its letters: the symbol, and the space to the next entry.
"""
MARGIN: Final = 8
"""The space around a chart."""
_MIN_NAME: Final = 4
"""The minimum number of letters to which a name is cut. A shorter piece is not shown."""
SIZE_LABEL: Final = (
    "abs(datum.value) >= 1073741824 ? format(datum.value / 1073741824, '.3~g') + ' GiB'"
    " : abs(datum.value) >= 1048576 ? format(datum.value / 1048576, '.3~g') + ' MiB'"
    " : abs(datum.value) >= 1024 ? format(datum.value / 1024, '.3~g') + ' KiB'"
    " : format(datum.value, 'd') + ' B'"
)
"""An expression of Vega that writes bytes in binary units."""


def finished(chart: Any, width: int, height: int, **datasets: list[Row]) -> Spec:
    """Return the specification of a chart, with size, colours, font and data.

    `width` includes axes and margins. `datasets` are rows by the names that the chart uses for
    them.
    """
    text = {
        "labelColor": DAY["muted"],
        "titleColor": DAY["muted"],
        "labelFontSize": 11,
        "titleFontSize": 11,
    }
    lines = {"domainColor": DAY["soft"], "tickColor": DAY["soft"], "gridColor": DAY["line"]}
    fit = alt.AutoSizeParams(type="fit-x", contains="padding")
    spec: Spec = (
        chart.properties(height=height, padding=MARGIN, background=DAY["paper"], autosize=fit)
        .configure(font=FONT)
        .configure_view(stroke=None)
        .configure_axis(**text, **lines, titleFontWeight="normal")
        .configure_legend(
            labelColor=DAY["ink"], labelFontSize=11, symbolStrokeWidth=2, symbolSize=90
        )
        .to_dict()
    )
    return {**spec, "width": width, "datasets": datasets}


def height_of(width: int) -> int:
    """Return the height of a chart over time."""
    return 240 if width > NARROW else 200


def colored(
    field: str,
    names: Sequence[str],
    colors: Sequence[str],
    width: int,
    *,
    lines: bool = False,
    labels: Sequence[str] = (),
) -> alt.Color:
    """Return a colour channel with a colour for each name. `colors` are names in the palette.

    Its legend is above the chart, in as many columns as fit. It begins where the chart does, right
    of the `labels` of the vertical axis.
    """
    cell = max(map(len, names), default=1) * LETTER + 2 * _LEGEND
    left = max(map(len, labels), default=0) * LETTER
    room = max(int((width - 2 * MARGIN - left) // cell), 1)
    symbol = "stroke" if lines else "square"
    columns = min(room, max(len(names), 1))
    legend = alt.Legend(
        orient="top", title=None, columns=columns, labelLimit=220, symbolType=symbol
    )
    scale = alt.Scale(domain=list(names), range=[DAY[color] for color in colors])
    return alt.Color(field, scale=scale, legend=legend)


def blocks_axis(width: int) -> alt.Axis:
    """Return an axis with relay block numbers."""
    return alt.Axis(
        grid=False,
        tickMinStep=1,
        format=",d",
        tickCount=8 if width > NARROW else 4,
        labelFlush=True,
    )


def tight(bins: Sequence[Bin]) -> alt.Scale:
    """Return a scale from the first relay block of the bins to the last one."""
    first = bins[0].first if bins else 0
    last = bins[-1].last if bins else 1
    return alt.Scale(domain=[first - 0.5, last + 0.5], nice=False, zero=False)


def powers_of_two(low: int, high: int) -> list[int]:
    """Return at most seven powers of two between two sizes."""
    exponents = [exponent for exponent in range(63) if low <= 1 << exponent <= high]
    # The number of exponents divided by seven, rounded up.
    step = max(-(-len(exponents) // 7), 1)
    return [1 << exponent for exponent in exponents if exponent % step == 0]


def steps(low: int, high: int, count: int) -> list[int]:
    """Return about `count` multiples of a power of two between two numbers."""
    step = 1
    while (high - low) // step > count:
        step *= 2
    # The first multiple of `step` that is not below `low`.
    start = -(-low // step) * step
    return list(range(start, high + 1, step))


def row_name(network: str, rest: str, limit: int) -> str:
    """Return a name of about `limit` letters. If it is too long, the network's part is cut."""
    room = max(limit - len(rest) - 1, 1)
    return f"{_cut(network, room)} {rest}"


def with_name(text: str, name: str | None, limit: int) -> str:
    """Return a text with a name behind it, which is cut so that there are at most `limit` letters.

    The name is left out if too little of it would remain.
    """
    room = limit - len(text) - 1
    if name is None or room < min(len(name), _MIN_NAME):
        return text
    return f"{text} {_cut(name, room)}"


def _cut(name: str, limit: int) -> str:
    """Return a name, or its beginning with an ellipsis, of at most `limit` letters."""
    return name if len(name) <= limit else f"{name[: limit - 1]}…"


def distinct(names: Sequence[str]) -> list[str]:
    """Return the names, with a number behind each repeated one.

    A chart draws rows of the same name as one row.
    """
    seen: Counter[str] = Counter()
    result: list[str] = []
    for name in names:
        seen[name] += 1
        result.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return result
