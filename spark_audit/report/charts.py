"""The charts, as Vega-Lite: figures in, specifications out. `width` is that of the whole picture in pixels."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import altair as alt

from spark_audit.report.breakdown import KINDS, Part
from spark_audit.report.culprits import Collator
from spark_audit.report.delays import Delays
from spark_audit.report.savings import Savings
from spark_audit.report.series import MOST_BINS, Bin, Series
from spark_audit.report.style import DAY, FONT, SERIES
from spark_audit.report.words import percent, size

WIDE: Final = 900
NARROW: Final = 340

Spec = dict[str, Any]

_LETTER: Final = 6.4
"""Pixels of an average letter."""
_LEGEND: Final = 13
"""Pixels between a legend's entries, symbol included, beside their letters."""
_AT_ONCE: Final = 12
"""Publishers, chains or collators that a chart names."""
_FEW: Final = 12
"""Figures of a line that are marked one by one."""


def bytes_over_time(series: Series, width: int) -> Spec:
    """Proof bytes of a chain's blocks against the budget, on a logarithmic axis."""
    rows = [_time_row(each, series.width) for each in series.bins if each.blocks]
    known = [row[name] for row in rows for name in ("mean", "largest", "budget") if row[name]]
    low, high = max(min(known, default=1) // 2, 1), max(known, default=1) * 2
    x = alt.X("middle:Q", title="relay block", axis=_blocks_axis(width), scale=_tight(series.bins))
    y_scale = alt.Scale(type="log", domain=[low, high], nice=False)
    y_axis = alt.Axis(values=_powers(low, high), labelExpr=_SIZE_LABEL, title=None)
    names = ["budget", "largest proof", "mean proof"]
    lines = [
        {"middle": row["middle"], "series": name, "bytes": row[column]}
        for row in rows
        for name, column in zip(names, ("budget", "largest", "mean"), strict=True)
        if row[column]
    ]
    shown = [name for name in names if any(line["series"] == name for line in lines)]
    colors = {"budget": "muted", "largest proof": "one", "mean proof": "two"}
    color = alt.Color(
        "series:N", scale=_scale(shown, [colors[name] for name in shown]), legend=_legend(shown, width, lines=True)
    )
    dash = alt.StrokeDash("series:N", scale=alt.Scale(domain=names, range=[[5, 4], [1, 0], [1, 0]]), legend=None)
    drawn = (
        alt.Chart(alt.NamedData("lines"))
        .mark_line(point=alt.OverlayMarkDef(size=30) if len(rows) <= _FEW else False, strokeWidth=1.8)
        .encode(x=x, y=alt.Y("bytes:Q", scale=y_scale, axis=y_axis), color=color, strokeDash=dash)
    )
    layers = [drawn]
    bad = [{"middle": each.middle, "told": _told_faulty(each, series.width)} for each in series.bins if each.faulty]
    if bad:
        ticks = alt.Chart(alt.NamedData("bad")).mark_point(
            shape="triangle-up", size=34, filled=True, color=DAY["bad"], opacity=1
        )
        layers.append(ticks.encode(x=x, y=alt.value(_height(width) - 6), description="told:N"))
    hover = alt.Chart(alt.NamedData("rows")).mark_bar(opacity=0, size=max(width // MOST_BINS, 3))
    layers.append(hover.encode(x=x, y=alt.value(0), y2=alt.value(_height(width)), description="told:N"))
    return _finished(alt.layer(*layers), width, _height(width), rows=rows, lines=lines, bad=bad)


def where_bytes_go(tree: Part, width: int) -> Spec:
    """The tree as an icicle: the chain, its publishers, and what their bytes are."""
    inner = width - 2 * _MARGIN
    rows: list[dict[str, Any]] = [_slab(tree, tree, level=0, at=0, pixels=inner, color="soft")]
    at = 0
    colors = dict(zip(KINDS.values(), SERIES, strict=False))
    for part in _named(tree.parts):
        rows.append(_slab(part, tree, level=1, at=at, pixels=inner, color="line"))
        inside = at
        for small in part.parts:
            if small.bytes:
                rows.append(_slab(small, tree, level=2, at=inside, pixels=inner, color=colors.get(small.name, "five")))
            inside += small.bytes
        at += part.bytes
    base = alt.Chart(alt.NamedData("rows")).encode(
        x=alt.X(
            "from:Q",
            title=None,
            scale=alt.Scale(domain=[0, max(tree.bytes, 1)], nice=False),
            axis=alt.Axis(values=_steps(0, tree.bytes, 6 if width > NARROW else 3), labelExpr=_SIZE_LABEL, grid=False),
        ),
        y=alt.Y("top:Q", axis=None, scale=alt.Scale(domain=[0, 3], reverse=True, nice=False)),
    )
    kinds = list(colors)
    slabs = base.mark_rect(stroke=DAY["paper"], strokeWidth=1).encode(x2="to:Q", y2="bottom:Q", description="told:N")
    plain = slabs.transform_filter("!datum.kind").encode(color=alt.Color("color:N", scale=None))
    legend = _legend(kinds, width)
    kind = slabs.transform_filter("datum.kind").encode(
        color=alt.Color("kind:N", scale=_scale(kinds, list(colors.values())), legend=legend)
    )
    labels = (
        base.mark_text(fontSize=11, baseline="middle")
        .transform_filter("datum.label")
        .encode(x="middle:Q", y="center:Q", text="label:N", color=alt.Color("ink:N", scale=None))
    )
    layers = [plain, kind, labels] if any(row["kind"] for row in rows) else [plain, labels]
    return _finished(alt.layer(*layers).resolve_scale(color="independent"), width, 120, rows=rows)


def savings(rows: Sequence[Savings], width: int) -> Spec:
    """Full proofs of chains by what became of their bytes."""
    causes = ("in the proof", "unchanged root", "cache", "pruned")
    values: list[dict[str, Any]] = []
    for row in rows[:_AT_ONCE]:
        name = f"{row.chain[0]} {row.chain[1]}"
        figures = (row.proven, row.unchanged, row.cached, row.pruned)
        values += [
            {
                "chain": _clipped(name, 26 if width > NARROW else 14),
                "cause": cause,
                "order": at,
                "bytes": max(figure, 0),
                "told": f"{name}, {cause}: {size(figure)}, {percent(figure, row.full)}",
            }
            for at, (cause, figure) in enumerate(zip(causes, figures, strict=True))
        ]
    chart = (
        alt.Chart(alt.NamedData("rows"))
        .mark_bar(stroke=DAY["paper"], strokeWidth=1)
        .encode(
            x=alt.X(
                "bytes:Q",
                stack="normalize",
                title="share of the full proof",
                axis=alt.Axis(format="%", tickCount=5, grid=False),
            ),
            y=alt.Y("chain:N", sort=list(dict.fromkeys(row["chain"] for row in values)), title=None),
            color=alt.Color(
                "cause:N", scale=_scale(causes, ("two", "one", "three", "seven")), legend=_legend(causes, width)
            ),
            order=alt.Order("order:Q"),
            description="told:N",
        )
    )
    return _finished(chart, width, 30 * max(len(rows[:_AT_ONCE]), 1), rows=values)


def cache_over_time(series: Series, width: int) -> Spec:
    """What a chain's cache spared the proof, what reading it cost, and what is left of it."""
    names = ("spared the proof", "added to own state", "net effect")
    bars: list[dict[str, Any]] = []
    for each in series.bins:
        if each.cached is None or each.cache_state is None:
            continue
        told = (
            f"relay blocks {_stretch(each, series.width)}: spared {size(each.cached)}, cost {size(each.cache_state)}, "
            f"net {size(each.cache_net or 0)}"
        )
        place = {"from": each.first - 0.5, "to": each.last + 0.5, "middle": each.middle, "told": told}
        bars.append({**place, "series": names[0], "bytes": each.cached})
        bars.append({**place, "series": names[1], "bytes": -each.cache_state})
        bars.append({**place, "series": names[2], "bytes": each.cache_net})
    least = min((row["bytes"] for row in bars), default=0)
    most = max((row["bytes"] for row in bars), default=0)
    scale = _tight(series.bins)
    y = alt.Y(
        "bytes:Q",
        title=None,
        stack=None,
        axis=alt.Axis(values=_steps(min(least, 0), max(most, 0), 6), labelExpr=_SIZE_LABEL),
    )
    color = alt.Color("series:N", scale=_scale(names, ("three", "four", "ink")), legend=_legend(names, width))
    base = alt.Chart(alt.NamedData("bars"))
    net = alt.Chart(alt.NamedData("net"))
    drawn = base.mark_rect().encode(
        x=alt.X("from:Q", title="relay block", axis=_blocks_axis(width), scale=scale),
        x2="to:Q",
        y=y,
        y2=alt.datum(0),
        color=color,
        description="told:N",
    )
    line = net.mark_line(strokeWidth=1.8).encode(x=alt.X("middle:Q", scale=scale), y=y, color=color)
    split = {
        "bars": [row for row in bars if row["series"] != names[2]],
        "net": [row for row in bars if row["series"] == names[2]],
    }
    return _finished(alt.layer(drawn, line), width, 180, **split)


def delays(found: Delays, width: int) -> Spec:
    """Deliveries by relay blocks from the publish."""
    rows = [
        {
            "from": each.first - 0.5,
            "to": each.last + 0.5,
            "deliveries": each.deliveries,
            "told": f"{_blocks(each.first, each.last)}: {each.deliveries:,} deliveries",
        }
        for each in found.bars
    ]
    last = found.bars[-1].last
    axis = alt.Axis(tickMinStep=1, grid=False, tickCount=10 if width > NARROW else 5, format=",d")
    chart = (
        alt.Chart(alt.NamedData("rows"))
        .mark_rect(color=DAY["one"], stroke=DAY["paper"], strokeWidth=1)
        .encode(
            x=alt.X(
                "from:Q",
                title="relay blocks",
                axis=axis,
                scale=alt.Scale(domain=[-0.5, max(last, 9) + 0.5], nice=False),
            ),
            x2="to:Q",
            y=alt.Y("deliveries:Q", title=None, axis=alt.Axis(format=",d", tickMinStep=1, tickCount=4)),
            y2=alt.datum(0),
            description="told:N",
        )
    )
    return _finished(chart, width, 160, rows=rows)


def collators(found: Sequence[Collator], width: int) -> Spec:
    """Findings by collator and code; codes beyond those with a colour of their own are added up."""
    shown = found[:_AT_ONCE]
    counts: Counter[str] = Counter()
    for each in shown:
        counts.update(each.findings)
    ranked = [code for code, _ in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))]
    own = len(SERIES) + 1 if len(ranked) <= len(SERIES) + 1 else len(SERIES)
    named = ranked[:own]
    codes = [*named, "others"] if len(ranked) > own else named
    rows: list[dict[str, Any]] = []
    for each in shown:
        name = collator_name(each)
        for at, code in enumerate(codes):
            count = each.findings[code] if code in counts else sum(each.findings[other] for other in ranked[own:])
            if count:
                told = f"{name}, {code}: {count:,}"
                rows.append({"collator": name, "code": code, "order": at, "findings": count, "told": told})
    colors = [
        *SERIES[: len(named)],
        *(("bad",) if len(named) > len(SERIES) else ()),
        *(("soft",) if len(ranked) > own else ()),
    ]
    chart = (
        alt.Chart(alt.NamedData("rows"))
        .mark_bar(stroke=DAY["paper"], strokeWidth=1)
        .encode(
            x=alt.X("findings:Q", title="findings", axis=alt.Axis(tickMinStep=1, format=",d", tickCount=6)),
            y=alt.Y(
                "collator:N", sort=[collator_name(each) for each in shown], title=None, axis=alt.Axis(labelLimit=160)
            ),
            color=alt.Color("code:N", scale=_scale(codes, colors), legend=_legend(codes, width)),
            order=alt.Order("order:Q"),
            description="told:N",
        )
    )
    return _finished(chart, width, 28 * max(len(shown), 1), rows=rows)


def collator_name(each: Collator) -> str:
    """The chain, and the start of the key."""
    return f"{each.chain[1]} · {each.key.hex()[:8]}"


# Parts

_MARGIN: Final = 8
_SIZE_LABEL: Final = (
    "abs(datum.value) >= 1073741824 ? format(datum.value / 1073741824, '.3~g') + ' GiB'"
    " : abs(datum.value) >= 1048576 ? format(datum.value / 1048576, '.3~g') + ' MiB'"
    " : abs(datum.value) >= 1024 ? format(datum.value / 1024, '.3~g') + ' KiB'"
    " : format(datum.value, 'd') + ' B'"
)


def _finished(chart: Any, width: int, height: int, **datasets: list[dict[str, Any]]) -> Spec:
    """With size, colours, font, and the rows by the names that the chart has for them; `width` counts all."""
    text = {"labelColor": DAY["muted"], "titleColor": DAY["muted"], "labelFontSize": 11, "titleFontSize": 11}
    lines = {
        "domainColor": DAY["soft"],
        "tickColor": DAY["soft"],
        "gridColor": DAY["line"],
        "titleFontWeight": "normal",
    }
    spec: Spec = (
        chart.properties(
            height=height,
            padding=_MARGIN,
            background=DAY["paper"],
            autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
        )
        .configure(font=FONT)
        .configure_view(stroke=None)
        .configure_axis(**text, **lines)
        .configure_legend(labelColor=DAY["ink"], labelFontSize=11, symbolStrokeWidth=2, symbolSize=90)
        .to_dict()
    )
    return {**spec, "width": width, "datasets": datasets}


def _height(width: int) -> int:
    return 240 if width > NARROW else 200


def _scale(names: Sequence[str], colors: Sequence[str]) -> alt.Scale:
    return alt.Scale(domain=list(names), range=[DAY[color] for color in colors])


def _legend(names: Sequence[str], width: int, *, lines: bool = False) -> alt.Legend:
    """On top, in as many columns as there is room for."""
    cell = max(map(len, names), default=1) * _LETTER + 2 * _LEGEND
    room = max(int((width - 2 * _MARGIN) // cell), 1)
    symbol = "stroke" if lines else "square"
    columns = min(room, max(len(names), 1))
    return alt.Legend(orient="top", title=None, columns=columns, labelLimit=220, symbolType=symbol)


def _blocks_axis(width: int) -> alt.Axis:
    return alt.Axis(grid=False, tickMinStep=1, format=",d", tickCount=8 if width > NARROW else 4, labelFlush=True)


def _tight(bins: Sequence[Bin]) -> alt.Scale:
    first, last = (bins[0].first, bins[-1].last) if bins else (0, 1)
    return alt.Scale(domain=[first - 0.5, last + 0.5], nice=False, zero=False)


def _powers(low: int, high: int) -> list[int]:
    """At most seven powers of two between two sizes."""
    powers = [1 << bit for bit in range(63) if low <= 1 << bit <= high]
    step = -(-len(powers) // 7) or 1
    return [power for power in powers if (power.bit_length() - 1) % step == 0]


def _steps(least: int, most: int, count: int) -> list[int]:
    """Multiples of a power of two from `least` to `most`, nought among them, about `count` of them."""
    step = 1
    while (most - least) // step > count:
        step *= 2
    return list(range(-(-least // step) * step, most + 1, step))


def _time_row(each: Bin, width: int) -> dict[str, Any]:
    told = f"relay blocks {_stretch(each, width)}: mean {size(each.mean or 0)}, largest {size(each.largest or 0)}"
    if each.budget is not None:
        told += f", budget {size(each.budget)}"
    return {"middle": each.middle, "mean": each.mean, "largest": each.largest, "budget": each.budget, "told": told}


def _told_faulty(each: Bin, width: int) -> str:
    return f"relay blocks {_stretch(each, width)}: {each.faulty:,} invalid"


def _stretch(each: Bin, width: int) -> str:
    return f"{each.first:,}" if width == 1 else f"{each.first:,} to {each.last:,}"


def _blocks(first: int, last: int) -> str:
    return (f"{first:,}" if first == last else f"{first:,} to {last:,}") + " relay blocks"


def _named(parts: Sequence[Part]) -> list[Part]:
    """The largest parts, and one of all the others."""
    if len(parts) <= _AT_ONCE:
        return list(parts)
    small = parts[_AT_ONCE - 1 :]
    kinds: dict[str, int] = {}
    for part in small:
        for each in part.parts:
            kinds[each.name] = kinds.get(each.name, 0) + each.bytes
    folded = tuple(Part(name, weight) for name, weight in kinds.items())
    return [*parts[: _AT_ONCE - 1], Part("smaller ones", sum(part.bytes for part in small), folded)]


def _slab(part: Part, tree: Part, *, level: int, at: int, pixels: int, color: str) -> dict[str, Any]:
    room = int(part.bytes / max(tree.bytes, 1) * pixels / _LETTER)
    name = part.name
    short = name.removeprefix("publisher ")
    label = next((each for each in (f"{name} · {size(part.bytes)}", name, short) if len(each) + 1 <= room), "")
    return {
        "from": at,
        "to": at + part.bytes,
        "middle": at + part.bytes / 2,
        "top": level,
        "bottom": level + 1,
        "center": level + 0.5,
        "label": label,
        "kind": name if name in KINDS.values() else "",
        "color": DAY[color],
        "ink": DAY["ink" if color in {"soft", "line"} else "paper"],
        "told": f"{name}: {size(part.bytes)}, {percent(part.bytes, tree.bytes)}",
    }


def _clipped(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
