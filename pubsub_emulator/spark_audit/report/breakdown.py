"""The bytes of a chain's proofs as a tree of publishers and kinds of bytes.

For imported relay proofs, publishers are not known. The tree of such proofs has keys, child tries,
and nodes that several keys need.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain as chained
from typing import Final

from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.spark_audit.judge.results import Results
from pubsub_emulator.spark_audit.report.columns import Chain, Names, called, columns, grouped, valid

MOST_PARTS: Final = 40
"""The maximum number of parts of a tree. The smallest ones are added up."""

KINDS: Final = {
    "top_path_bytes": "top path",
    "child_node_bytes": "child nodes",
    "value_bytes": "values",
}
"""The kinds of a publisher's bytes, by column."""

_FIGURES: Final = (
    *KINDS,
    "cached_bytes",
    "cache_charges",
    "row_charges",
    "unpruned_bytes",
    "deliveries",
)
_KEYS: Final = {
    "key": "keys",
    "child trie": "child tries",
    "neighbour": "neighbours of keys",
    "shared": "shared paths",
    "absence": "absent or unchanged",
    "unplaced": "unplaced",
    "unread": "unread",
}
"""Names of groups of parts, by kind."""


@dataclass(frozen=True, slots=True)
class ByteShare:
    """Some bytes of the proofs."""

    name: str
    bytes: int
    parts: tuple["ByteShare", ...] = ()
    """The smaller parts that it consists of."""
    facts: tuple[tuple[str, int], ...] = ()
    """Further figures about it, as pairs of a text and a number."""

    @staticmethod
    def of_small(name: str, small: Sequence["ByteShare"]) -> "ByteShare":
        """Return one part with the bytes of several small ones, by kind."""
        kinds: dict[str, int] = {}
        for part in chained.from_iterable(part.parts for part in small):
            kinds[part.name] = kinds.get(part.name, 0) + part.bytes
        folded = tuple(ByteShare(kind, weight) for kind, weight in kinds.items())
        return ByteShare(name, sum(part.bytes for part in small), folded)


def where_bytes_go(results: Results, chain: Chain, names: Names) -> ByteShare:
    """Return the bytes of proofs in a chain's valid blocks as a tree, with the largest parts first.

    Raises `ResultError`.
    """
    wanted = ("status", "verdict", "proof_bytes", "static_bytes")
    blocks = columns(results, schema.BLOCK_MEASURES, chain, wanted)
    sums = [("proof_bytes", "sum"), ("static_bytes", "sum")]
    by_status = grouped(map(valid, blocks()), ["status"], sums)
    total = sum(row["proof_bytes_sum"] or 0 for row in by_status)
    static = sum(row["static_bytes_sum"] or 0 for row in by_status)
    parts = [*_publishers(results, chain, names), *_imported(results, chain)]
    if static:
        parts.append(ByteShare("static keys", static))
    unattributed = total - sum(part.bytes for part in parts)
    if unattributed:
        parts.append(ByteShare("not attributed", unattributed))
    return ByteShare(called(chain, names), total, _largest(parts, "others"))


def _publishers(results: Results, chain: Chain, names: Names) -> list[ByteShare]:
    """Return a part for each publisher."""
    wanted = ("publisher", "unchanged", "resolved", *_FIGURES)
    rows = columns(results, schema.PUBLISHER_MEASURES, chain, wanted)
    sums = [(name, "sum") for name in ("unchanged", "resolved", *_FIGURES)]
    by_publisher = grouped(rows(), ["publisher"], [*sums, ("publisher", "count")])
    return [_publisher(row, names.get((chain[0], row["publisher"]))) for row in by_publisher]


def _publisher(row: Row, name: str | None) -> ByteShare:
    """Return the part of one publisher, with facts about it."""
    sizes = {kind: row[f"{column}_sum"] for column, kind in KINDS.items()}
    facts = (
        ("blocks that met it", row["publisher_count"]),
        ("of them, with an unchanged root", row["unchanged_sum"]),
        ("of them, resolved to the end", row["resolved_sum"]),
        ("deliveries", row["deliveries_sum"]),
        ("bytes of full proofs, as collators witnessed them", row["unpruned_bytes_sum"]),
        ("bytes that cached nodes spared the proof", row["cached_bytes_sum"]),
        ("bytes charged for reading the cache", row["cache_charges_sum"]),
        ("bytes charged for rows of what was delivered", row["row_charges_sum"]),
    )
    title = f"publisher {row['publisher']}"
    if name:
        title += f" {name}"
    parts = tuple(ByteShare(kind, weight) for kind, weight in sizes.items())
    return ByteShare(
        title,
        sum(sizes.values()),
        parts,
        facts=tuple(fact for fact in facts if fact[1] is not None),
    )


def _imported(results: Results, chain: Chain) -> list[ByteShare]:
    """Return a share for each kind of part in imported proofs, with the largest of these parts."""
    rows = columns(results, schema.PROOF_PARTS, chain, ("kind", "name", "nodes", "bytes"))
    by_name = grouped(
        rows(), ["kind", "name"], [("bytes", "sum"), ("nodes", "sum"), ("bytes", "count")]
    )
    by_kind: dict[str, list[ByteShare]] = {}
    for row in by_name:
        facts = (("proofs that have it", row["bytes_count"]), ("nodes", row["nodes_sum"]))
        by_kind.setdefault(row["kind"], []).append(
            ByteShare(row["name"] or "nodes", row["bytes_sum"], (), facts=facts)
        )
    shares: list[ByteShare] = []
    for kind, parts in by_kind.items():
        weight = sum(part.bytes for part in parts)
        shares.append(ByteShare(_KEYS.get(kind, kind), weight, _largest(parts, "others")))
    return shares


def _largest(parts: list[ByteShare], noun: str) -> tuple[ByteShare, ...]:
    """Return the parts, largest first. Those beyond `MOST_PARTS` become one part."""
    ranked = sorted(parts, key=lambda part: (-part.bytes, part.name))
    if len(ranked) <= MOST_PARTS:
        return tuple(ranked)
    large = ranked[: MOST_PARTS - 1]
    small = ranked[MOST_PARTS - 1 :]
    return (*large, ByteShare.of_small(f"{len(small)} {noun}", small))
