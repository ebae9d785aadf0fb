"""The charts, as Vega-Lite: figures in, specifications out. `width` is that of the whole picture in pixels."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

import altair as alt

from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.spark_audit.report.axes import (
    LETTER,
    MARGIN,
    NARROW,
    SIZE_LABEL,
    Spec,
    blocks_axis,
    distinct,
    finished,
    height_of,
    legend,
    powers_of_two,
    row_name,
    scale,
    steps,
    tight,
    with_name,
)
from pubsub_emulator.spark_audit.report.breakdown import KINDS, ByteShare
from pubsub_emulator.spark_audit.report.columns import Chain, Names, called
from pubsub_emulator.spark_audit.report.culprits import Collator
from pubsub_emulator.spark_audit.report.delays import Delays
from pubsub_emulator.spark_audit.report.savings import Savings
from pubsub_emulator.spark_audit.report.series import MOST_BINS, Bin, Series
from pubsub_emulator.spark_audit.report.style import DAY, SERIES
from pubsub_emulator.spark_audit.report.words import percent, size

_AT_ONCE: Final = 12
"""Publishers, chains or collators that a chart names."""
_FEW: Final = 12
"""Figures of a line that are marked one by one."""


def bytes_over_time(series: Series, width: int) -> Spec:
    """Proof bytes of a chain's blocks against the budget, on a logarithmic axis."""
    rows = [_time_row(each, series.width) for each in series.bins if each.blocks]
    known = [row[name] for row in rows for name in ("mean", "largest", "budget") if row[name]]
    low, high = max(min(known, default=1) // 2, 1), max(known, default=1) * 2
    x = alt.X("middle:Q", title="relay block", axis=blocks_axis(width), scale=tight(series.bins))
    y_scale = alt.Scale(type="log", domain=[low, high], nice=False)
    y_axis = alt.Axis(values=powers_of_two(low, high), labelExpr=SIZE_LABEL, title="size of a proof")
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
        "series:N", scale=scale(shown, [colors[name] for name in shown]), legend=legend(shown, width, lines=True)
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
        layers.append(ticks.encode(x=x, y=alt.value(height_of(width) - 6), description="told:N"))
    hover = alt.Chart(alt.NamedData("rows")).mark_bar(opacity=0, size=max(width // MOST_BINS, 3))
    layers.append(hover.encode(x=x, y=alt.value(0), y2=alt.value(height_of(width)), description="told:N"))
    return finished(alt.layer(*layers), width, height_of(width), rows=rows, lines=lines, bad=bad)


def where_bytes_go(tree: ByteShare, width: int) -> Spec:
    """The tree as an icicle: the chain, its publishers, and what their bytes are."""
    inner = width - 2 * MARGIN
    rows: list[Row] = [_slab(tree, tree, level=0, at=0, pixels=inner, color="soft")]
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
            title="bytes of all proofs",
            scale=alt.Scale(domain=[0, max(tree.bytes, 1)], nice=False),
            axis=alt.Axis(values=steps(0, tree.bytes, 6 if width > NARROW else 3), labelExpr=SIZE_LABEL, grid=False),
        ),
        y=alt.Y("top:Q", axis=None, scale=alt.Scale(domain=[0, 3], reverse=True, nice=False)),
    )
    kinds = list(colors)
    slabs = base.mark_rect(stroke=DAY["paper"], strokeWidth=1).encode(x2="to:Q", y2="bottom:Q", description="told:N")
    plain = slabs.transform_filter("!datum.kind").encode(color=alt.Color("color:N", scale=None))
    kind = slabs.transform_filter("datum.kind").encode(
        color=alt.Color("kind:N", scale=scale(kinds, list(colors.values())), legend=legend(kinds, width))
    )
    labels = (
        base.mark_text(fontSize=11, baseline="middle")
        .transform_filter("datum.label")
        .encode(x="middle:Q", y="center:Q", text="label:N", color=alt.Color("ink:N", scale=None))
    )
    layers = [plain, kind, labels] if any(row["kind"] for row in rows) else [plain, labels]
    return finished(alt.layer(*layers).resolve_scale(color="independent"), width, 120, rows=rows)


def savings(rows: Sequence[Savings], width: int, chain_names: Names) -> Spec:
    """Full proofs of chains by what became of their bytes."""
    causes = ("in the proof", "unchanged root", "cache", "pruned")
    values: list[Row] = []
    most = 44 if width > NARROW else 18
    names = distinct([_chain_name(row.chain, chain_names, most) for row in rows[:_AT_ONCE]])
    for short, row in zip(names, rows, strict=False):
        name = called(row.chain, chain_names)
        figures = (row.proven, row.unchanged, row.cached, row.pruned)
        values += [
            {
                "chain": short,
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
            y=alt.Y("chain:N", sort=names, title="chain", axis=alt.Axis(labelLimit=320, titlePadding=16)),
            color=alt.Color(
                "cause:N", scale=scale(causes, ("two", "one", "three", "seven")), legend=legend(causes, width)
            ),
            order=alt.Order("order:Q"),
            description="told:N",
        )
    )
    return finished(chart, width, 30 * max(len(rows[:_AT_ONCE]), 1), rows=values)


def cache_over_time(series: Series, width: int) -> Spec:
    """Bytes that a chain's cache saved, bytes that reading it cost, and the difference."""
    names = ("spared the proof", "added to own state", "net effect")
    bars: list[Row] = []
    for each in series.bins:
        if each.cached is None or each.cache_state is None:
            continue
        text = (
            f"relay blocks {_stretch(each, series.width)}: spared {size(each.cached)}, cost {size(each.cache_state)}, "
            f"net {size(each.cache_net or 0)}"
        )
        place = {"from": each.first - 0.5, "to": each.last + 0.5, "middle": each.middle, "told": text}
        bars.append({**place, "series": names[0], "bytes": each.cached})
        bars.append({**place, "series": names[1], "bytes": -each.cache_state})
        bars.append({**place, "series": names[2], "bytes": each.cache_net})
    least = min((row["bytes"] for row in bars), default=0)
    most = max((row["bytes"] for row in bars), default=0)
    whole = tight(series.bins)
    y = alt.Y(
        "bytes:Q",
        title="bytes",
        stack=None,
        axis=alt.Axis(values=steps(min(least, 0), max(most, 0), 6), labelExpr=SIZE_LABEL),
    )
    color = alt.Color("series:N", scale=scale(names, ("three", "four", "ink")), legend=legend(names, width))
    base = alt.Chart(alt.NamedData("bars"))
    net = alt.Chart(alt.NamedData("net"))
    drawn = base.mark_rect().encode(
        x=alt.X("from:Q", title="relay block", axis=blocks_axis(width), scale=whole),
        x2="to:Q",
        y=y,
        y2=alt.datum(0),
        color=color,
        description="told:N",
    )
    line = net.mark_line(strokeWidth=1.8).encode(x=alt.X("middle:Q", scale=whole), y=y, color=color)
    split = {
        "bars": [row for row in bars if row["series"] != names[2]],
        "net": [row for row in bars if row["series"] == names[2]],
    }
    return finished(alt.layer(drawn, line), width, 180, **split)


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
            y=alt.Y("deliveries:Q", title="deliveries", axis=alt.Axis(format=",d", tickMinStep=1, tickCount=4)),
            y2=alt.datum(0),
            description="told:N",
        )
    )
    return finished(chart, width, 160, rows=rows)


def collators(found: Sequence[Collator], width: int, chain_names: Names) -> Spec:
    """Findings by collator and code; codes beyond those with a colour of their own are added up."""
    shown = found[:_AT_ONCE]
    counts: Counter[str] = Counter()
    for each in shown:
        counts.update(each.findings)
    ranked = [code for code, _ in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))]
    own = len(SERIES) + 1 if len(ranked) <= len(SERIES) + 1 else len(SERIES)
    named = ranked[:own]
    codes = [*named, "others"] if len(ranked) > own else named
    rows: list[Row] = []
    one_network = len({each.chain[0] for each in shown}) == 1
    most = 44 if width > NARROW else 20
    names = distinct([_collator_name(each, chain_names, most, one_network=one_network) for each in shown])
    for name, each in zip(names, shown, strict=True):
        for at, code in enumerate(codes):
            count = each.findings[code] if code in counts else sum(each.findings[other] for other in ranked[own:])
            if count:
                text = f"{called(each.chain, chain_names)}, {each.key.hex()}, {code}: {count:,}"
                rows.append({"collator": name, "code": code, "order": at, "findings": count, "told": text})
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
            y=alt.Y("collator:N", sort=names, title="collator", axis=alt.Axis(labelLimit=320, titlePadding=16)),
            color=alt.Color("code:N", scale=scale(codes, colors), legend=legend(codes, width)),
            order=alt.Order("order:Q"),
            description="told:N",
        )
    )
    return finished(chart, width, 28 * max(len(shown), 1), rows=rows)


def _time_row(each: Bin, width: int) -> Row:
    text = f"relay blocks {_stretch(each, width)}: mean {size(each.mean or 0)}, largest {size(each.largest or 0)}"
    if each.budget is not None:
        text += f", budget {size(each.budget)}"
    return {"middle": each.middle, "mean": each.mean, "largest": each.largest, "budget": each.budget, "told": text}


def _told_faulty(each: Bin, width: int) -> str:
    return f"relay blocks {_stretch(each, width)}: {each.faulty:,} invalid"


def _stretch(each: Bin, width: int) -> str:
    return f"{each.first:,}" if width == 1 else f"{each.first:,} to {each.last:,}"


def _blocks(first: int, last: int) -> str:
    return (f"{first:,}" if first == last else f"{first:,} to {last:,}") + " relay blocks"


def _named(parts: Sequence[ByteShare]) -> list[ByteShare]:
    """The largest parts, and one of all the others."""
    if len(parts) <= _AT_ONCE:
        return list(parts)
    return [*parts[: _AT_ONCE - 1], ByteShare.of_small("smaller ones", parts[_AT_ONCE - 1 :])]


def _slab(part: ByteShare, tree: ByteShare, *, level: int, at: int, pixels: int, color: str) -> Row:
    room = int(part.bytes / max(tree.bytes, 1) * pixels / LETTER)
    name = part.name
    short = name.removeprefix("publisher ")
    texts = (f"{name} · {size(part.bytes)}", name, short, *(short.split(" ")[:1] if short != name else ()))
    label = next((each for each in texts if len(each) + 1 <= room), "")
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


def _chain_name(chain: Chain, names: Names, most: int, *, one_network: bool = False) -> str:
    """Network, unless there is only one, number and name, in about `most` letters."""
    number = str(chain[1])
    return with_name(number if one_network else row_name(chain[0], number, most), names.get(chain), most)


def _collator_name(each: Collator, names: Names, most: int, *, one_network: bool) -> str:
    """The chain, and the start of the key."""
    key = f" · {each.key.hex()[:8]}"
    return _chain_name(each.chain, names, most - len(key), one_network=one_network) + key
