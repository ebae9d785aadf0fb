"""Functions that turn figures into charts, as Vega-Lite specifications.

`width` is the width of the whole picture in pixels.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import altair as alt

from pubsub_emulator.pages.palette import DAY, SERIES
from pubsub_emulator.pages.words import percent, size
from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.spark_audit.report import axes
from pubsub_emulator.spark_audit.report.breakdown import KINDS, ByteShare
from pubsub_emulator.spark_audit.report.columns import Chain, Names, called
from pubsub_emulator.spark_audit.report.culprits import CollatorFindings
from pubsub_emulator.spark_audit.report.delays import Bar, Delays
from pubsub_emulator.spark_audit.report.savings import Savings
from pubsub_emulator.spark_audit.report.series import MOST_BINS, Bin, Series

_AT_ONCE: Final = 12
"""The maximum number of publishers, chains or collators that a chart names."""
_FEW: Final = 12
"""The maximum number of points of a line that are marked."""


def bytes_over_time(series: Series, width: int) -> axes.Spec:
    """Draw the bytes of a chain's proofs and the budget, on a logarithmic axis."""
    rows = [_time_row(time_bin) for time_bin in series.bins if time_bin.blocks]
    sizes: list[Any] = []
    for row in rows:
        sizes += [row[name] for name in ("mean", "largest", "budget") if row[name]]
    low = max(min(sizes, default=1) // 2, 1)
    high = max(sizes, default=1) * 2
    x = alt.X(
        "middle:Q", title="relay block", axis=axes.blocks_axis(width), scale=axes.tight(series.bins)
    )
    y_scale = alt.Scale(type="log", domain=[low, high], nice=False)
    y_axis = alt.Axis(
        values=axes.powers_of_two(low, high), labelExpr=axes.SIZE_LABEL, title="size of a proof"
    )
    names = ["budget", "largest proof", "mean proof"]
    columns = dict(zip(names, ("budget", "largest", "mean"), strict=True))
    lines: list[dict[str, Any]] = []
    for row in rows:
        lines += [
            {"middle": row["middle"], "series": name, "bytes": row[column]}
            for name, column in columns.items()
            if row[column]
        ]
    drawn_names = {line["series"] for line in lines}
    shown = [name for name in names if name in drawn_names]
    colors = {"budget": "muted", "largest proof": "one", "mean proof": "two"}
    color = axes.colored(
        "series:N", shown, [colors[name] for name in shown], width=width, lines=True
    )
    dash = alt.StrokeDash(
        "series:N", scale=alt.Scale(domain=names, range=[[5, 4], [1, 0], [1, 0]]), legend=None
    )
    drawn = (
        alt.Chart(alt.NamedData("lines"))
        .mark_line(
            point=alt.OverlayMarkDef(size=30) if len(rows) <= _FEW else False, strokeWidth=1.8
        )
        .encode(x=x, y=alt.Y("bytes:Q", scale=y_scale, axis=y_axis), color=color, strokeDash=dash)
    )
    layers = [drawn]
    bad: list[Row] = []
    for time_bin in series.bins:
        if time_bin.faulty:
            text = f"relay blocks {_stretch(time_bin)}: {time_bin.faulty:,} invalid"
            bad.append({"middle": time_bin.middle, "told": text})
    if bad:
        ticks = alt.Chart(alt.NamedData("bad"))
        ticks = ticks.mark_point(
            shape="triangle-up", size=34, filled=True, color=DAY["bad"], opacity=1
        )
        layers.append(
            ticks.encode(x=x, y=alt.value(axes.height_of(width) - 6), description="told:N")
        )
    # A browser shows the descriptions of these invisible bars at the pointer.
    hover = alt.Chart(alt.NamedData("rows")).mark_bar(opacity=0, size=max(width // MOST_BINS, 3))
    layers.append(
        hover.encode(x=x, y=alt.value(0), y2=alt.value(axes.height_of(width)), description="told:N")
    )
    return axes.finished(
        alt.layer(*layers), width, axes.height_of(width), rows=rows, lines=lines, bad=bad
    )


def where_bytes_go(tree: ByteShare, width: int) -> axes.Spec:
    """Draw the tree of bytes as an icicle: chain, publishers, and kinds of their bytes."""
    inner = width - 2 * axes.MARGIN
    rows: list[Row] = [_slab(tree, tree, level=0, offset=0, pixels=inner, color="soft")]
    offset = 0
    colors = dict(zip(KINDS.values(), SERIES, strict=False))
    for part in _named(tree.parts):
        rows.append(_slab(part, tree, level=1, offset=offset, pixels=inner, color="line"))
        inner_offset = offset
        for small in part.parts:
            if small.bytes:
                rows.append(
                    _slab(
                        small,
                        tree,
                        level=2,
                        offset=inner_offset,
                        pixels=inner,
                        color=colors.get(small.name, "five"),
                    )
                )
            inner_offset += small.bytes
        offset += part.bytes
    axis = alt.Axis(
        values=axes.steps(0, tree.bytes, 6 if width > axes.NARROW else 3),
        labelExpr=axes.SIZE_LABEL,
        grid=False,
    )
    x_scale = alt.Scale(domain=[0, max(tree.bytes, 1)], nice=False)
    base = alt.Chart(alt.NamedData("rows")).encode(
        x=alt.X("from:Q", title="bytes of all proofs", scale=x_scale, axis=axis),
        y=alt.Y("top:Q", axis=None, scale=alt.Scale(domain=[0, 3], reverse=True, nice=False)),
    )
    kinds = list(colors)
    slabs = base.mark_rect(stroke=DAY["paper"], strokeWidth=1).encode(
        x2="to:Q", y2="bottom:Q", description="told:N"
    )
    plain = slabs.transform_filter("!datum.kind").encode(color=alt.Color("color:N", scale=None))
    kind = slabs.transform_filter("datum.kind").encode(
        color=axes.colored("kind:N", kinds, list(colors.values()), width=width)
    )
    labels = (
        base.mark_text(fontSize=11, baseline="middle")
        .transform_filter("datum.label")
        .encode(x="middle:Q", y="center:Q", text="label:N", color=alt.Color("ink:N", scale=None))
    )
    layers = [plain, kind, labels] if any(row["kind"] for row in rows) else [plain, labels]
    return axes.finished(
        alt.layer(*layers).resolve_scale(color="independent"), width, 120, rows=rows
    )


def savings(rows: Sequence[Savings], width: int, chain_names: Names) -> axes.Spec:
    """Draw the full proofs of chains, divided into proven bytes and savings by cause."""
    causes = ("in the proof", "unchanged root", "cache", "pruned")
    values: list[Row] = []
    name_length = 44 if width > axes.NARROW else 18
    names = axes.distinct(
        [_chain_name(row.chain, chain_names, name_length) for row in rows[:_AT_ONCE]]
    )
    for short, row in zip(names, rows, strict=False):
        name = called(row.chain, chain_names)
        figures = (row.proven, row.unchanged, row.cached, row.pruned)
        for order, (cause, figure) in enumerate(zip(causes, figures, strict=True)):
            description = f"{name}, {cause}: {size(figure)}, {percent(figure, row.full)}"
            values.append(
                {
                    "chain": short,
                    "cause": cause,
                    "order": order,
                    "bytes": max(figure, 0),
                    "told": description,
                }
            )
    axis = alt.Axis(format="%", tickCount=5, grid=False)
    x = alt.X("bytes:Q", stack="normalize", title="share of the full proof", axis=axis)
    color = axes.colored(
        "cause:N", causes, ("two", "one", "three", "seven"), width=width, labels=names
    )
    return axes.finished(
        _stacked("chain", names, x, color=color),
        width,
        30 * max(len(rows[:_AT_ONCE]), 1),
        rows=values,
    )


def cache_over_time(series: Series, width: int) -> axes.Spec:
    """Draw the bytes that a chain's cache saved, those that it cost, and the difference."""
    names = ("spared the proof", "added to own state", "net effect")
    bars: list[Row] = []
    for time_bin in series.bins:
        if time_bin.cached is None or time_bin.cache_state is None:
            continue
        text = (
            f"relay blocks {_stretch(time_bin)}: spared {size(time_bin.cached)}, cost"
            f" {size(time_bin.cache_state)}, net {size(time_bin.cache_net or 0)}"
        )
        place = {
            "from": time_bin.first - 0.5,
            "to": time_bin.last + 0.5,
            "middle": time_bin.middle,
            "told": text,
        }
        bars.append({**place, "series": names[0], "bytes": time_bin.cached})
        bars.append({**place, "series": names[1], "bytes": -time_bin.cache_state})
        bars.append({**place, "series": names[2], "bytes": time_bin.cache_net})
    lowest = min((row["bytes"] for row in bars), default=0)
    highest = max((row["bytes"] for row in bars), default=0)
    x_scale = axes.tight(series.bins)
    axis = alt.Axis(
        values=axes.steps(min(lowest, 0), max(highest, 0), 6), labelExpr=axes.SIZE_LABEL
    )
    y = alt.Y("bytes:Q", title="bytes", stack=None, axis=axis)
    color = axes.colored("series:N", names, ("three", "four", "ink"), width=width)
    x = alt.X("from:Q", title="relay block", axis=axes.blocks_axis(width), scale=x_scale)
    drawn = alt.Chart(alt.NamedData("bars")).mark_rect()
    drawn = drawn.encode(x=x, x2="to:Q", y=y, y2=alt.datum(0), color=color, description="told:N")
    line = alt.Chart(alt.NamedData("net")).mark_line(strokeWidth=1.8)
    line = line.encode(x=alt.X("middle:Q", scale=x_scale), y=y, color=color)
    # The net effect is drawn as a line over the bars.
    return axes.finished(
        alt.layer(drawn, line),
        width,
        180,
        bars=[row for row in bars if row["series"] != names[2]],
        net=[row for row in bars if row["series"] == names[2]],
    )


def delays(figures: Delays, width: int) -> axes.Spec:
    """Draw deliveries by the number of relay blocks since the publish."""
    rows: list[Row] = []
    for bar in figures.bars:
        description = f"{_stretch(bar)} relay blocks: {bar.deliveries:,} deliveries"
        place = {"from": bar.first - 0.5, "to": bar.last + 0.5}
        rows.append({**place, "deliveries": bar.deliveries, "told": description})
    last = figures.bars[-1].last
    axis = alt.Axis(
        tickMinStep=1, grid=False, tickCount=10 if width > axes.NARROW else 5, format=",d"
    )
    x_scale = alt.Scale(domain=[-0.5, max(last, 9) + 0.5], nice=False)
    x = alt.X("from:Q", title="relay blocks", axis=axis, scale=x_scale)
    y = alt.Y(
        "deliveries:Q", title="deliveries", axis=alt.Axis(format=",d", tickMinStep=1, tickCount=4)
    )
    chart = alt.Chart(alt.NamedData("rows")).mark_rect(
        color=DAY["one"], stroke=DAY["paper"], strokeWidth=1
    )
    chart = chart.encode(x=x, x2="to:Q", y=y, y2=alt.datum(0), description="told:N")
    return axes.finished(chart, width, 160, rows=rows)


def collators(ranking: Sequence[CollatorFindings], width: int, chain_names: Names) -> axes.Spec:
    """Draw findings by collator and code.

    If there are more codes than colours, the rarest codes are added up as `others`.
    """
    shown = ranking[:_AT_ONCE]
    counts: Counter[str] = Counter()
    for collator in shown:
        counts.update(collator.findings)
    ranked = [code for code, _ in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))]
    # The colour `bad` can show one more code, unless the other codes need a colour for `others`.
    own_colors = len(SERIES) + 1 if len(ranked) <= len(SERIES) + 1 else len(SERIES)
    named = ranked[:own_colors]
    has_others = len(ranked) > own_colors
    codes = [*named, "others"] if has_others else named
    rows: list[Row] = []
    one_network = len({collator.chain[0] for collator in shown}) == 1
    name_length = 44 if width > axes.NARROW else 20
    names = axes.distinct(
        [
            _collator_name(collator, chain_names, name_length, one_network=one_network)
            for collator in shown
        ]
    )
    for name, collator in zip(names, shown, strict=True):
        for order, code in enumerate(codes):
            if code in counts:
                count = collator.findings[code]
            else:
                # The last entry of `codes` is `others`.
                count = sum(collator.findings[other] for other in ranked[own_colors:])
            if count:
                chain = called(collator.chain, chain_names)
                text = f"{chain}, {collator.key.hex()}, {code}: {count:,}"
                rows.append(
                    {
                        "collator": name,
                        "code": code,
                        "order": order,
                        "findings": count,
                        "told": text,
                    }
                )
    colors = [*SERIES, "bad"][: len(named)]
    if has_others:
        colors.append("soft")
    x = alt.X(
        "findings:Q", title="findings", axis=alt.Axis(tickMinStep=1, format=",d", tickCount=6)
    )
    color = axes.colored("code:N", codes, colors, width=width, labels=names)
    chart = _stacked("collator", names, x, color=color)
    return axes.finished(chart, width, 28 * max(len(shown), 1), rows=rows)


def _stacked(column: str, names: Sequence[str], x: alt.X, color: alt.Color) -> alt.Chart:
    """Return a chart with a bar for each name, which consists of parts one after another."""
    y = alt.Y(
        f"{column}:N", sort=names, title=column, axis=alt.Axis(labelLimit=320, titlePadding=16)
    )
    bars = alt.Chart(alt.NamedData("rows")).mark_bar(stroke=DAY["paper"], strokeWidth=1)
    drawn: alt.Chart = bars.encode(
        x=x, y=y, color=color, order=alt.Order("order:Q"), description="told:N"
    )
    return drawn


def _time_row(time_bin: Bin) -> Row:
    """Return the row of a bin in the chart over time."""
    text = (
        f"relay blocks {_stretch(time_bin)}: mean {size(time_bin.mean or 0)}, largest"
        f" {size(time_bin.largest or 0)}"
    )
    if time_bin.budget is not None:
        text += f", budget {size(time_bin.budget)}"
    return {
        "middle": time_bin.middle,
        "mean": time_bin.mean,
        "largest": time_bin.largest,
        "budget": time_bin.budget,
        "told": text,
    }


def _stretch(interval: Bin | Bar) -> str:
    """Return a range of numbers in words."""
    if interval.first == interval.last:
        return f"{interval.first:,}"
    return f"{interval.first:,} to {interval.last:,}"


def _named(parts: Sequence[ByteShare]) -> list[ByteShare]:
    """Return the largest parts, and one part with all others."""
    if len(parts) <= _AT_ONCE:
        return list(parts)
    return [*parts[: _AT_ONCE - 1], ByteShare.of_small("smaller ones", parts[_AT_ONCE - 1 :])]


def _slab(
    part: ByteShare, tree: ByteShare, *, level: int, offset: int, pixels: int, color: str
) -> Row:
    """Return the rectangle of a part in the icicle, with the longest label that fits."""
    room = int(part.bytes / max(tree.bytes, 1) * pixels / axes.LETTER)
    name = part.name
    short = name.removeprefix("publisher ")
    texts = [f"{name} · {size(part.bytes)}", name, short]
    if short != name:
        # Of a publisher, the ParaId alone.
        texts.append(short.partition(" ")[0])
    label = next((text for text in texts if len(text) + 1 <= room), "")
    place = {"from": offset, "to": offset + part.bytes, "middle": offset + part.bytes / 2}
    height = {"top": level, "bottom": level + 1, "center": level + 0.5}
    return {
        **place,
        **height,
        "label": label,
        "kind": name if name in KINDS.values() else "",
        "color": DAY[color],
        "ink": DAY["ink" if color in {"soft", "line"} else "paper"],
        "told": f"{name}: {size(part.bytes)}, {percent(part.bytes, tree.bytes)}",
    }


def _chain_name(chain: Chain, names: Names, limit: int, *, one_network: bool = False) -> str:
    """Return a chain's name of about `limit` letters.

    It consists of the network (unless there is only one), the ParaId, and the name.
    """
    network, para = chain
    text = str(para) if one_network else axes.row_name(network, str(para), limit)
    return axes.with_name(text, names.get(chain), limit)


def _collator_name(
    collator: CollatorFindings, names: Names, limit: int, *, one_network: bool
) -> str:
    """Return the name of a collator: the chain, and the first digits of the key."""
    key = f" · {collator.key.hex()[:8]}"
    return _chain_name(collator.chain, names, limit - len(key), one_network=one_network) + key
