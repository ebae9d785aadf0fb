"""The parts of judging one small block, by bytecode instructions: `python -m bench.steps --parts`.

Each instruction counts for the innermost running function that `PARTS` names, so a part does not
include the parts that it calls. Work in C counts as one call.
"""

import sys
from collections import Counter
from types import CodeType, FrameType
from typing import Any, Final

from bench.measure import Work

PARTS: Final = (
    ("decoding the candidate", "runtime/parachain/block.py", "Candidate.decode"),
    ("hashes of the proof's nodes", "primitives/hashing.py", "by_hash"),
    ("seal, header and body", "runtime/parachain/validate.py", "check_seal"),
    ("plan: static keys", "runtime/pallet_subscriber/plan.py", "_Walk.static_keys"),
    ("plan: rows before the walk, rotation", "runtime/pallet_subscriber/plan.py", ""),
    ("plan: child roots in the top trie", "runtime/pallet_subscriber/plan.py", "_Walk.top_path"),
    ("plan: items, descending child tries", "runtime/pallet_subscriber/plan.py", "_Walk.items"),
    ("plan: cached slots and nodes", "runtime/pallet_subscriber/cache/", ""),
    ("plan: entries delivered last", "runtime/pallet_subscriber/delivered.py", ""),
    ("plan: proof size of own rows", "runtime/pallet_subscriber/own_state.py", "OwnState"),
    ("plan: proof size of own rows", "runtime/parachain/ledger.py", "own_"),
    ("storage overlay", "runtime/framework/storage.py", "Storage."),
    ("reads of the state trie", "trie/mutable.py", "Trie.get"),
    ("messages and queue heads", "runtime/parachain/execute.py", "_note_messages"),
    ("messages and queue heads", "runtime/parachain/validate.py", "check_message_heads"),
    ("messages and queue heads", "runtime/framework/abridged.py", ""),
    ("apply: caches, roots, handler calls", "runtime/pallet_subscriber/apply.py", ""),
    ("events and rows of System", "runtime/framework/events.py", ""),
    ("events and rows of System", "runtime/framework/system.py", ""),
    ("ledger", "runtime/parachain/ledger.py", ""),
    ("state root: writing and encoding the trie", "runtime/framework/storage.py", "Storage.commit"),
    ("other checks and glue", "", ""),
)
"""The name of a part, and the beginnings of the file and of the qualified name of its functions.

The most specific entry counts for a function: the one with the longest beginnings.
"""


def part_of(code: CodeType) -> str | None:
    """Return the part that a function begins, or `None` if it belongs to its caller's part."""
    file = code.co_filename.rpartition("pubsub_emulator/")[-1]
    best: tuple[int, str] | None = None
    for name, path, function in PARTS:
        if path and file.startswith(path) and code.co_qualname.startswith(function):
            best = max(best or (0, ""), (len(path) + len(function), name))
    return None if best is None else best[1]


def counted_by_part(work: Work) -> Counter[str]:
    """Return the instructions of some work by part. The work is done once before it is counted."""
    work()
    counts: Counter[str] = Counter()
    known: dict[CodeType, str | None] = {}
    running = [PARTS[-1][0]]

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        if event == "opcode":
            counts[running[-1]] += 1
        elif event == "return":
            running.pop()
        elif event == "call":
            frame.f_trace_opcodes = True
            frame.f_trace_lines = False
            code = frame.f_code
            if code not in known:
                known[code] = part_of(code)
            running.append(known[code] or running[-1])
        return trace

    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(None)
    return counts
