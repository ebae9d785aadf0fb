"""`pubsub log`: following a source, reading and rewinding a log."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import click

from interchain_events.events.errors import BadFilter
from interchain_events.events.filters.algebra import (
    ANY,
    All,
    Chain,
    Filter,
    Kind,
    OneOf,
    check_limits,
)
from interchain_events.events.filters.codec import parse_filters
from interchain_events.events.log.following import RowsTakenBack, follow
from interchain_events.events.log.sources.appending import (
    append_history,
    append_node,
    append_scenario,
)
from interchain_events.events.log.sql_store import existing_store, open_store
from interchain_events.events.rows import row_json
from pubsub_emulator.cli.base import options
from pubsub_emulator.cli.screen import log_lines, say, say_document
from pubsub_emulator.emulator.scenario.file import find_scenario


def follow_source(  # noqa: PLR0917  # the options of the command
    source: str,
    place: str,
    network: str,
    paras: Sequence[str],
    first: int | None,
    until: int | None,
) -> None:
    """Append the blocks of a source to a log, and follow it if wanted. Raises `PubsubError`."""
    log_lines()
    if not source.startswith(options.NODE_URLS) and (paras or first is not None):
        raise click.UsageError("--para and --from need a node's URL as SOURCE")
    urls = dict(map(options.para_url, paras))
    with closing(open_store(place, network)) as store:
        before = store.head().seq
        try:
            if source.startswith(options.NODE_URLS):
                append_node(store, source, urls, first, until)
            elif (Path(source) / "_commits").is_dir():
                append_history(store, Path(source), until)
            else:
                append_scenario(store, find_scenario(source), until)
        finally:
            head = store.head()
            position = (
                "empty"
                if head.anchor is None
                else f"block {head.anchor}, seq {head.seq}, epoch {head.epoch}"
            )
            say(f"{store.database.place}: {position}; {head.seq - before:+,} events")


def read_log(  # noqa: PLR0917  # the options of the command
    place: str,
    after: int,
    limit: int | None,
    kinds: Sequence[str],
    chain: str | None,
    text: str | None,
    *,
    wait: bool,
) -> None:
    """Print matching rows of a log, and wait for more if wanted. Raises `PubsubError`."""
    where = _where(kinds, chain, text)
    with closing(existing_store(place)) as store:
        for row in follow(store, after, limit, where, wait=wait):
            if isinstance(row, RowsTakenBack):
                say(f"events after seq {row.seq} were reverted; continuing from there")
            else:
                say_document(row_json(row))


def _where(kinds: Sequence[str], chain: str | None, text: str | None) -> Filter:
    """Return the filter that the options describe. Raises `BadFilter`."""
    parts: list[Filter] = []
    if kinds:
        parts.append(OneOf(*map(Kind, kinds)))
    if chain is not None:
        if chain != "leading" and not chain.isdecimal():
            raise BadFilter(f"--chain {chain}: neither a para id nor `leading`")
        parts.append(Chain(None if chain == "leading" else int(chain)))
    if text is not None:
        parts += parse_filters(text if text.lstrip().startswith("[") else f"[{text}]")
    check_limits(parts)
    return All(*parts) if parts else ANY
