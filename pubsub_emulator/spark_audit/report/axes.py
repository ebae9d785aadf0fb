"""Common parts of the charts: size, colours, axes, legends, and names of rows. Widths and heights are in pixels."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import altair as alt

from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.spark_audit.report.series import Bin
from pubsub_emulator.spark_audit.report.style import DAY, FONT

WIDE: Final = 900
NARROW: Final = 340

Spec = dict[str, object]

LETTER: Final = 6.4
"""Pixels of an average letter."""
_LEGEND: Final = 13  # pixels between a legend's entries, symbol included, beside their letters
MARGIN: Final = 8
_LEAST_NAME: Final = 4  # letters below which a name that is cut tells nothing
SIZE_LABEL: Final = (
    "abs(datum.value) >= 1073741824 ? format(datum.value / 1073741824, '.3~g') + ' GiB'"
    " : abs(datum.value) >= 1048576 ? format(datum.value / 1048576, '.3~g') + ' MiB'"
    " : abs(datum.value) >= 1024 ? format(datum.value / 1024, '.3~g') + ' KiB'"
    " : format(datum.value, 'd') + ' B'"
)


def finished(chart: Any, width: int, height: int, **datasets: list[Row]) -> Spec:
    """With size, colours, font, and the rows by the names that the chart has for them; `width` counts all."""
    text = {"labelColor": DAY["muted"], "titleColor": DAY["muted"], "labelFontSize": 11, "titleFontSize": 11}
    lines = {"domainColor": DAY["soft"], "tickColor": DAY["soft"], "gridColor": DAY["line"]}
    fit = alt.AutoSizeParams(type="fit-x", contains="padding")
    spec: Spec = (
        chart.properties(height=height, padding=MARGIN, background=DAY["paper"], autosize=fit)
        .configure(font=FONT)
        .configure_view(stroke=None)
        .configure_axis(**text, **lines, titleFontWeight="normal")
        .configure_legend(labelColor=DAY["ink"], labelFontSize=11, symbolStrokeWidth=2, symbolSize=90)
        .to_dict()
    )
    return {**spec, "width": width, "datasets": datasets}


def height_of(width: int) -> int:
    """Height of a chart over time."""
    return 240 if width > NARROW else 200


def colored(field: str, names: Sequence[str], colors: Sequence[str], width: int, *, lines: bool = False) -> alt.Color:
    """A colour of `style` for each name, and a legend on top in as many columns as there is room for."""
    cell = max(map(len, names), default=1) * LETTER + 2 * _LEGEND
    room = max(int((width - 2 * MARGIN) // cell), 1)
    symbol = "stroke" if lines else "square"
    columns = min(room, max(len(names), 1))
    legend = alt.Legend(orient="top", title=None, columns=columns, labelLimit=220, symbolType=symbol)
    scale = alt.Scale(domain=list(names), range=[DAY[color] for color in colors])
    return alt.Color(field, scale=scale, legend=legend)


def blocks_axis(width: int) -> alt.Axis:
    """Relay block numbers."""
    return alt.Axis(grid=False, tickMinStep=1, format=",d", tickCount=8 if width > NARROW else 4, labelFlush=True)


def tight(bins: Sequence[Bin]) -> alt.Scale:
    """From the first relay block of the first bin to the last of the last."""
    first, last = (bins[0].first, bins[-1].last) if bins else (0, 1)
    return alt.Scale(domain=[first - 0.5, last + 0.5], nice=False, zero=False)


def powers_of_two(low: int, high: int) -> list[int]:
    """At most seven powers of two between two sizes."""
    powers = [1 << bit for bit in range(63) if low <= 1 << bit <= high]
    step = -(-len(powers) // 7) or 1
    return [power for power in powers if (power.bit_length() - 1) % step == 0]


def steps(least: int, most: int, count: int) -> list[int]:
    """About `count` multiples of a power of two from `least` to `most`, zero included."""
    step = 1
    while (most - least) // step > count:
        step *= 2
    return list(range(-(-least // step) * step, most + 1, step))


def row_name(network: str, rest: str, most: int) -> str:
    """A name of about `most` letters; the network's part is cut if it is too long."""
    room = max(most - len(rest) - 1, 1)
    return f"{network if len(network) <= room else network[: room - 1] + '…'} {rest}"


def with_name(text: str, name: str | None, most: int) -> str:
    """A row's text and the name behind it, cut where that makes more than `most` letters."""
    room = most - len(text) - 1
    if name is None or room < min(len(name), _LEAST_NAME):
        return text
    return f"{text} {name if len(name) <= room else name[: room - 1] + '…'}"


def distinct(names: Sequence[str]) -> list[str]:
    """The names, each told apart from those before it: one row of a chart is one of what it shows."""
    seen: Counter[str] = Counter()
    found: list[str] = []
    for name in names:
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return found
