"""Compares the answers of `pubsub_emulator.trie` with those of sp-trie and trie-db.

    python interop/tries.py interop/rust/target/release/replay --cases 100000 --seed 1

The tries are random, and so is the damage to their proofs. `replay --tries` answers for Rust:

verify   proofs without values, with the name of the error. If only the root is another one, the
         proof is checked once more against the root that it has.
compact  compact proofs in the form of today, of real relay proofs and of random states with child
         tries, and back
expand   damaged compact proofs. What is taken here is taken there, with the same nodes.
roots    whole tries of either version after insertions and removals
write    tries of mixed versions: roots after changes, and proofs of keys

Exit code 0: no difference. 1: the first differences are printed.
"""

import argparse
import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from pubsub_emulator.primitives.hashing import by_hash
from pubsub_emulator.primitives.hexadecimal import hexed, unhex
from pubsub_emulator.primitives.scale import encode_compact as encode_number
from pubsub_emulator.primitives.storage_keys import child_root_key
from pubsub_emulator.primitives.types import EMPTY_TRIE_ROOT, Hash
from pubsub_emulator.trie import (
    BadNode,
    ExtraneousValue,
    IncompleteProof,
    RootMismatch,
    Trie,
    TrieError,
    UnusedNodes,
    ValueMismatch,
    decode_compact,
    encode_compact,
    state_root,
)
from pubsub_emulator.trie.omitted import check_omitted
from pubsub_emulator.trie.partial import PartialTrie

Question = dict[str, Any]
Answer = dict[str, Any]
Reads = dict[bytes, bytes | None]

BATCH: Final = 1000
"""The number of questions that are asked before the answers are read."""
REAL: Final = Path(__file__).parents[1] / "examples" / "mainnet"
"""The folder of real relay proofs."""
MOST_SHOWN: Final = 5
"""The number of differences that are printed."""
OURS: Final[dict[str, type[TrieError]]] = {
    "DecodeError": BadNode,
    "ExtraneousHashReference": IncompleteProof,
    "ExtraneousNode": UnusedNodes,
    "ExtraneousValue": ExtraneousValue,
    "IncompleteProof": IncompleteProof,
    "InvalidChildReference": BadNode,
    "RootMismatch": RootMismatch,
    "ValueMismatch": ValueMismatch,
}
"""Our error for each one of `verify_proof`."""
SIZES: Final = (0, 1, 4, 20, 26, 27, 28, 29, 30, 31, 32, 33, 40, 63, 64, 70)
"""The lengths of values: around those that stay in their node, and of nodes that stay in theirs."""


class Oracle:
    """A running `replay --tries`."""

    def __init__(self, program: str) -> None:
        self._running = subprocess.Popen(  # noqa: S603  # the program that the user names
            [program, "--tries"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._questions = _opened(self._running.stdin)
        self._answers = _opened(self._running.stdout)
        self._writer = ThreadPoolExecutor(1)

    def ask(self, questions: Sequence[Question]) -> list[Answer]:
        """Return the answer to each question. Raises `RuntimeError` if the program has ended."""
        written = self._writer.submit(self._write, questions)
        answers = []
        for _ in questions:
            line = self._answers.readline()
            if not line:
                raise RuntimeError("the program ended before it had answered")
            answers.append(json.loads(line))
        written.result()
        return answers

    def close(self) -> None:
        """End the program."""
        self._writer.shutdown()
        self._questions.close()
        self._running.wait()

    def _write(self, questions: Sequence[Question]) -> None:
        for question in questions:
            self._questions.write(json.dumps(question).encode() + b"\n")
        self._questions.flush()


def _opened(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise RuntimeError("the program has no pipe")
    return pipe


class Differences:
    """The differences that were found, and how often each answer was given."""

    def __init__(self) -> None:
        self.answers: Counter[str] = Counter()
        self.found: list[str] = []

    def compare(self, name: str, question: object, ours: object, theirs: object) -> None:
        """Count a comparison, and keep the question if the answers differ."""
        if ours != theirs:
            shown = json.dumps(question)
            self.found.append(f"{name}: here {ours}, there {theirs}: {shown}")


# Random tries


def _key(draw: random.Random) -> bytes:
    """Return a key that shares its beginning with others."""
    if draw.random() < 0.1:
        return draw.randbytes(draw.randrange(1, 40))
    return bytes(draw.choices((0, 1, 16, 17, 255), k=draw.randrange(5)))


def _value(draw: random.Random) -> bytes:
    return bytes((draw.randrange(4),)) * draw.choice(SIZES)


def _entries(draw: random.Random) -> dict[bytes, bytes]:
    return {_key(draw): _value(draw) for _ in range(draw.randrange(1, 14))}


def _proof(trie: Trie | PartialTrie, keys: Iterable[bytes]) -> list[bytes]:
    nodes: dict[Hash, bytes] = {}
    trie.prove(keys, nodes)
    return list(nodes.values())


def _texts(items: Iterable[bytes]) -> list[str]:
    return [hexed(item) for item in items]


def _pairs(reads: Reads) -> list[list[str | None]]:
    return [[hexed(key), None if value is None else hexed(value)] for key, value in reads.items()]


# Damage


def _damaged(draw: random.Random, items: list[bytes]) -> list[bytes]:
    """Return a proof with one or two changes: of its nodes, or within one of them."""
    out = list(items)
    for _ in range(draw.choice((1, 1, 2))):
        _damage(draw, out)
    return out


def _damage(draw: random.Random, items: list[bytes]) -> None:
    if not items:
        items.append(draw.randbytes(draw.randrange(6)))
        return
    at = draw.randrange(len(items))
    node = items[at]
    place = draw.randrange(len(node) + 1)
    match draw.randrange(12):
        case 0:
            del items[at]
        case 1:
            items.insert(draw.randrange(len(items) + 1), node)
        case 2:
            other = draw.randrange(len(items))
            items[at], items[other] = items[other], node
        case 3:
            items[at] = node[:place]
        case 4:
            items[at] = node + draw.randbytes(draw.randrange(1, 4))
        case 5 if place < len(node):
            items[at] = (
                node[:place] + bytes((node[place] ^ 1 << draw.randrange(8),)) + node[place + 1 :]
            )
        case 6:
            items[at] = node[:place] + draw.randbytes(1) + node[place:]
        case 7 if len(items) > 1:
            # A node as an inline child of the one before it.
            below = at or 1
            taken = items.pop(below)
            above = items[below - 1]
            hole = above.find(b"\x00", 3)
            if hole >= 0:
                items[below - 1] = (
                    above[:hole] + encode_number(len(taken)) + taken + above[hole + 1 :]
                )
        case 8:
            # An empty value in place of none, or another kind of node with the same bytes.
            items[at] = (
                bytes(((node or b"\x00")[0] ^ draw.choice((0x40, 0x80, 0xC0, 0x20)),)) + node[1:]
            )
        case 9:
            # An inline child as a node of its own.
            start = next(
                (n for n in range(3, len(node)) if 0 < node[n] < 0x80 and not node[n] & 3), None
            )
            if start is not None:
                end = start + 1 + (node[start] >> 2)
                items[at] = node[:start] + b"\x00" + node[end:]
                items.insert(at + 1, node[start + 1 : end])
        case _:
            items[at] = node[:place] + b"\x00" + node[place + 1 :]


def _other_reads(draw: random.Random, reads: Reads, entries: dict[bytes, bytes]) -> Reads:
    """Return other values for the same keys, other keys, or both."""
    out = dict(reads)
    if out and draw.random() < 0.7:
        key = draw.choice(list(out))
        out[key] = draw.choice((None, b"", _value(draw), entries.get(key)))
    if draw.random() < 0.4:
        key = draw.choice((_key(draw), *entries))
        out[key] = draw.choice((entries.get(key), None))
    if out and draw.random() < 0.3:
        del out[draw.choice(list(out))]
    return out


# The comparisons


def _checked(root: bytes, proof: list[bytes], reads: Reads, version: int) -> tuple[str, bytes]:
    """Return the name of our answer, and the root that the proof has if that is another one."""
    try:
        check_omitted(root, proof, reads, version)
    except RootMismatch as error:
        return "RootMismatch", error.found
    except TrieError as error:
        return type(error).__name__, root
    return "taken", root


def _their_check(answer: Answer) -> str:
    if answer.get("ok") is True:
        return "taken"
    error = OURS.get(answer["error"])
    return answer["error"] if error is None else error.__name__


def verify(oracle: Oracle, draw: random.Random, count: int, report: Differences) -> int:
    """Compare answers about `count` proofs without values, honest and damaged ones."""
    done = 0
    while done < count:
        honest = []
        for _ in range(BATCH // 10):
            entries = _entries(draw)
            version = draw.randrange(2)
            trie = Trie.from_entries(entries.items(), version)
            keys = {draw.choice((_key(draw), *entries)) for _ in range(draw.randrange(1, 5))}
            nodes = _texts(_proof(trie, keys))
            question = {
                "op": "generate",
                "root": hexed(trie.root()),
                "version": version,
                "nodes": nodes,
                "keys": _texts(sorted(keys)),
            }
            honest.append((question, entries, {key: entries.get(key) for key in keys}))
        made = oracle.ask([question for question, _, _ in honest])
        asked: list[tuple[bytes, list[bytes], Reads, int]] = []
        for (question, entries, reads), answer in zip(honest, made, strict=True):
            proof = [unhex(node) for node in answer["ok"]]
            root = unhex(question["root"])
            version = question["version"]
            asked.append((root, proof, reads, version))
            for _ in range(9):
                damaged = _damaged(draw, proof) if draw.random() < 0.8 else proof
                other = _other_reads(draw, reads, entries) if draw.random() < 0.4 else reads
                asked.append((root, damaged, other, version))
        again = _ask_verify(oracle, asked, report)
        done += len(asked)
        _ask_verify(oracle, again, report)
        done += len(again)
    return done


def _ask_verify(
    oracle: Oracle, asked: list[tuple[bytes, list[bytes], Reads, int]], report: Differences
) -> list[tuple[bytes, list[bytes], Reads, int]]:
    """Compare the answers, and return the proofs of other roots with the roots that they have."""
    questions = [
        {
            "op": "verify",
            "root": hexed(root),
            "version": version,
            "proof": _texts(proof),
            "items": _pairs(reads),
        }
        for root, proof, reads, version in asked
    ]
    again = []
    answers = oracle.ask(questions)
    for (_, proof, reads, version), question, answer in zip(asked, questions, answers, strict=True):
        ours, found = _checked(unhex(question["root"]), proof, reads, version)
        report.answers[f"verify: {ours}"] += 1
        report.compare("verify", question, ours, _their_check(answer))
        if ours == "RootMismatch":
            again.append((found, proof, reads, version))
    return again


def _with_children(draw: random.Random) -> tuple[bytes, list[bytes], int]:
    """Return the root of a state, some of its nodes, and its version."""
    version = draw.randrange(2)
    top = _entries(draw)
    nodes: list[bytes] = []
    child = Trie.from_entries(_entries(draw).items(), version)
    for name in range(draw.randrange(4)):
        if draw.random() < 0.5:
            child = Trie.from_entries(_entries(draw).items(), version)
        if child.root() == EMPTY_TRIE_ROOT:
            continue
        top[child_root_key(bytes((name,)))] = child.root()
        if draw.random() < 0.8:
            nodes += _proof(child, [key for key, _ in child.items() if draw.random() < 0.7])
    trie = Trie.from_entries(top.items(), version)
    nodes += _proof(trie, [next(iter(top)), *(key for key in top if draw.random() < 0.8)])
    return trie.root(), list(dict.fromkeys(nodes)), version


def _tried(work: Callable[[], list[bytes]]) -> list[str] | str:
    """Return the result of `work`, or that it was refused."""
    try:
        return _texts(work())
    except TrieError:
        return "refused"


def compact(oracle: Oracle, draw: random.Random, count: int, report: Differences) -> int:
    """Compare compact proofs of real states and of `count` random ones, in both directions."""
    real = [json.loads(path.read_bytes()) for path in sorted(REAL.glob("*.json"))]
    states = [
        (unhex(proof["relayParentStorageRoot"]), [unhex(node) for node in proof["trieNodes"]], 1)
        for proof in real
    ]
    done = 0
    while done < count:
        states += [_with_children(draw) for _ in range(BATCH // 4)]
        questions = [
            {"op": "compact", "root": hexed(root), "version": version, "nodes": _texts(nodes)}
            for root, nodes, version in states
        ]
        back: list[Question] = []
        for (root, nodes, version), question, answer in zip(
            states, questions, oracle.ask(questions), strict=True
        ):
            once = encode_compact(root, nodes)
            theirs = answer.get("ok", {}).get("once", "refused")
            report.compare("compact", question, _texts(once), theirs)
            repeated = encode_compact(root, nodes, repeat_shared=True)
            report.answers["compact: shared nodes"] += len(once) < len(repeated)
            back += [
                {"op": "expand", "root": hexed(root), "version": version, "items": _texts(form)}
                for form in (once, repeated, _damaged(draw, once))
            ]
        for question, answer in zip(back, oracle.ask(back), strict=True):
            _compare_expanded(question, answer, report)
        done += len(states)
        states = []
    return done


def _compare_expanded(question: Question, answer: Answer, report: Differences) -> None:
    """Compare the nodes of a compact proof.

    sp-trie takes some forms that no encoder makes: a value or another kind of node in the place of
    an attached value, and bytes after a node. They are refused here.
    """
    root = unhex(question["root"])
    items = [unhex(item) for item in question["items"]]
    ours = _tried(lambda: decode_compact(root, items))
    theirs = answer.get("ok", "refused")
    if ours == "refused" and theirs != "refused":
        report.answers["expand: taken there alone"] += 1
        return
    report.answers[f"expand: {'refused' if ours == 'refused' else 'taken'}"] += 1
    # sp-trie's database does not list the node of the empty trie.
    without_empty = [node for node in ours if node != "0x00"] if ours != "refused" else ours
    report.compare("expand", question, without_empty, theirs)


def roots(oracle: Oracle, draw: random.Random, count: int, report: Differences) -> int:
    """Compare the roots of `count` whole tries, each written in some steps and made at once.

    trie-db 0.32 panics in some removals beside a value at the empty key. No chain has such a key,
    so these panics are counted, here and in `write`, and are not differences.
    """
    done = 0
    while done < count:
        questions: list[Question] = []
        ours: list[tuple[str, str]] = []
        at_empty_key: list[bool] = []
        for _ in range(BATCH // 4):
            version = draw.randrange(2)
            changes: list[tuple[bytes, bytes | None]] = list(_entries(draw).items())
            trie = Trie(version)
            trie.update(dict(changes))
            changes += _changes(draw, dict(trie.items()))
            for key, value in changes:
                trie.update({key: value})
            whole = state_root(trie.items(), version)
            ours.append((hexed(trie.root()), hexed(whole)))
            at_empty_key.append(any(key == b"" for key, _ in changes))
            question: Question = {"op": "write", "root": hexed(EMPTY_TRIE_ROOT), "nodes": []}
            pairs = [
                [hexed(key), value if value is None else hexed(value)] for key, value in changes
            ]
            questions.append(question | {"version": version, "changes": pairs})
        answers = oracle.ask(questions)
        for question, found, empty_key, answer in zip(
            questions, ours, at_empty_key, answers, strict=True
        ):
            if empty_key and answer.get("error") == "Panic":
                report.answers["roots: panics there beside the empty key"] += 1
            else:
                report.answers["roots"] += 1
                theirs = _root_of(answer)
                report.compare("roots", question, found, (theirs, theirs))
        done += len(questions)
    return done


def write(oracle: Oracle, draw: random.Random, count: int, report: Differences) -> int:
    """Compare roots and proofs of `count` tries that are written in mixed versions."""
    done = 0
    while done < count:
        tries = []
        for _ in range(BATCH // 4):
            entries = _entries(draw)
            old = Trie.from_entries(entries.items(), 0)
            tries.append((old.root(), _proof(old, entries), dict(entries)))
        for _ in range(3):
            tries = _written(oracle, draw, tries, report)
        done += 3 * len(tries)
    return done


Mixed = tuple[Hash, list[bytes], dict[bytes, bytes]]
"""The root of a trie, its nodes, and its entries."""


def _root_of(answer: Answer) -> object:
    return answer["ok"]["root"] if "ok" in answer else answer


class Write(NamedTuple):
    """The changes to a trie: our results, and the questions for theirs."""

    write: Question
    record: Question
    root: str
    proof: list[str]
    at_empty_key: bool
    """Whether the empty key has, had or gets a value."""


def _written(
    oracle: Oracle, draw: random.Random, tries: list[Mixed], report: Differences
) -> list[Mixed]:
    """Change each trie here and there, and return the changed tries."""
    writes: list[Write] = []
    after: list[Mixed] = []
    for root, nodes, entries in tries:
        changes = dict(_changes(draw, entries))
        known = {bytes(name): node for name, node in by_hash(nodes).items()}
        trie = PartialTrie(root, known.get)
        trie.update(changes)
        left = {**entries, **changes}
        kept = {key: value for key, value in left.items() if value is not None}
        key = draw.choice((_key(draw), *kept))
        every = sorted({*nodes, *_proof(trie, kept)})
        write: Question = {"op": "write", "root": hexed(root), "version": 1}
        write |= {"nodes": _texts(nodes), "changes": _pairs(changes)}
        record: Question = {"op": "record", "root": hexed(trie.root()), "version": 1}
        record |= {"nodes": _texts(every), "keys": [hexed(key)]}
        proof = sorted(_texts(_proof(trie, [key])))
        writes.append(Write(write, record, hexed(trie.root()), proof, b"" in left))
        after.append((trie.root(), every, kept))
    roots = oracle.ask([each.write for each in writes])
    proofs = oracle.ask([each.record for each in writes])
    for each, changed, recorded in zip(writes, roots, proofs, strict=True):
        if each.at_empty_key and changed.get("error") == "Panic":
            report.answers["write: panics there beside the empty key"] += 1
        else:
            report.answers["write: roots"] += 1
            report.compare("write", each.write, each.root, _root_of(changed))
        # sp-trie's database does not list the node of the empty trie.
        if each.root != hexed(EMPTY_TRIE_ROOT):
            report.answers["write: proofs"] += 1
            report.compare("record", each.record, each.proof, recorded.get("ok", recorded))
    return after


def _changes(
    draw: random.Random, entries: dict[bytes, bytes]
) -> Iterator[tuple[bytes, bytes | None]]:
    """Yield insertions, removals, and values that are written again as they are."""
    for _ in range(draw.randrange(1, 6)):
        key = draw.choice((_key(draw), *entries))
        kind = draw.randrange(4)
        if kind == 0:
            yield key, None
        elif kind == 1 and key in entries:
            yield key, entries[key]
        else:
            yield key, _value(draw)


def main() -> int:
    """Run all comparisons and print what was found."""
    parser = argparse.ArgumentParser(description="compares tries with sp-trie and trie-db")
    parser.add_argument("program", help="the program `replay` of interop/rust")
    parser.add_argument("--cases", type=int, default=2000, help="proofs without values to check")
    parser.add_argument("--seed", type=int, default=1, help="what the cases are drawn from")
    given = parser.parse_args()
    oracle = Oracle(given.program)
    report = Differences()
    draw = random.Random(given.seed)  # noqa: S311  # cases, no secrets
    verified = verify(oracle, draw, given.cases, report)
    compacted = compact(oracle, draw, max(given.cases // 10, 1), report)
    rooted = roots(oracle, draw, max(given.cases // 10, 1), report)
    written = write(oracle, draw, max(given.cases // 10, 1), report)
    oracle.close()
    for answer, count in sorted(report.answers.items()):
        print(f"{count:>9,}  {answer}")  # noqa: T201  # a program
    for difference in report.found[:MOST_SHOWN]:
        print(difference)  # noqa: T201  # as above
    print(  # noqa: T201  # as above
        f"{verified:,} proofs without values, {compacted:,} compact proofs,"
        f" {rooted:,} whole and {written:,} mixed tries:"
        f" {len(report.found):,} differences"
    )
    return 1 if report.found else 0


if __name__ == "__main__":
    sys.exit(main())
