"""The rows of a log in order, also while it grows and when blocks are taken back."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from interchain_events.events.filters.algebra import ANY, Filter
from interchain_events.events.log.store import LogReader
from interchain_events.events.rows import Row

_PAGE: Final = 1_000
"""The most rows of one `read`."""
_SECONDS: Final = 1.0
"""The longest time after which a log is read again."""


class RowsTakenBack(NamedTuple):
    """A notice that the rows after `seq` were taken back. Those that replaced them follow."""

    seq: int


def follow(
    log: LogReader,
    after: int = 0,
    limit: int | None = None,
    where: Filter = ANY,
    *,
    wait: bool = False,
) -> Iterator[Row | RowsTakenBack]:
    """Yield the matching rows after a `seq`, at most `limit` of them.

    With `wait`, it goes on when the log has more, and ends only at the limit. Raises
    `StoreUnavailable` while the database does not answer.
    """
    left = limit
    epoch = log.head().epoch
    while left is None or left > 0:
        page = log.read(after, _PAGE if left is None else min(left, _PAGE), where)
        if page.head.epoch != epoch:
            common = log.common(epoch)
            epoch = page.head.epoch
            if common is not None and after > common:
                after = common
                yield RowsTakenBack(common)
                continue
        yield from page.rows
        after = page.through
        left = None if left is None else left - len(page.rows)
        if page.is_last:
            if not wait:
                return
            log.wait(page.head, _SECONDS)
