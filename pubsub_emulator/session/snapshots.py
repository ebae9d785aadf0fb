"""Commands for snapshots, branches, differences and session files."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pubsub_emulator.emulator.state_diff import diff_states
from pubsub_emulator.files.pages import Grid, Line, Shown
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.runtime.framework.storage import State
from pubsub_emulator.session import saved
from pubsub_emulator.session.command import CommandError, SessionCommand, command, number, unknown
from pubsub_emulator.session.differences import FEW, differences, pages
from pubsub_emulator.session.node_api import RELAY
from pubsub_emulator.session.session import Checkpoint, Session

SNAPSHOTS: Final[list[SessionCommand]] = []


@command(SNAPSHOTS, "save NAME", "save before")
def _save(session: Session, name: str) -> Iterator[Shown]:
    """Save a snapshot under a name. It replaces an older one of that name.

    A snapshot ends with the session, or with the node; `write` stores one in a file.
    """
    _ensure_free(session, name, may_be_snapshot=True)
    moment = session.checkpoint()
    if name in session.snapshots:
        session.drop(session.snapshots[name])
    session.snapshots[name] = moment
    yield Line(f"saved as {name}: relay block {moment.number} of branch {session.branch}")


def _ensure_free(session: Session, name: str, *, may_be_snapshot: bool = False) -> None:
    """Raise `CommandError` if a name is taken.

    With `may_be_snapshot`, it may be the name of a snapshot, which is then replaced.
    """
    if name == "now":
        raise CommandError("`now` means the present state; choose another name")
    if name == session.branch or name in session.branches:
        raise CommandError(f"there is already a branch {name}; choose another name")
    if name in session.snapshots and not may_be_snapshot:
        raise CommandError(f"there is already a snapshot {name}; choose another name")


@command(SNAPSHOTS, "restore NAME:snapshot", "restore before")
def _restore(session: Session, name: str) -> Iterator[Shown]:
    """Go back to a snapshot; the branch continues from there."""
    if name not in session.snapshots:
        raise unknown("snapshot", name, session.snapshots)
    session.adopt(session.snapshots[name])
    yield Line(f"back at {name}: branch {session.branch} is at relay block {session.number}")


@command(SNAPSHOTS, "branch NAME [FROM]", "branch honest", "branch attack before")
def _branch(session: Session, name: str, start_name: str = "now") -> Iterator[Shown]:
    """Start a branch, here or at a snapshot, and switch to it.

    The present branch keeps its state; `switch` goes back to it.
    """
    start = session.named(start_name)
    _ensure_free(session, name)
    present = session.checkpoint()
    # The state `now` is not kept by the node under an id, so it is adopted as `present`.
    session.adopt(present if start.id is None else start)
    session.branches[session.branch] = present
    session.branch = name
    yield Line(
        f"on branch {name}, at relay block {start.number}; `switch` goes back to another one"
    )


@command(SNAPSHOTS, "switch NAME:snapshot", "switch main")
def _switch(session: Session, name: str) -> Iterator[Shown]:
    """Switch to another branch."""
    if name != session.branch:
        if name not in session.branches:
            raise unknown("branch", name, [*session.branches, session.branch])
        present = session.checkpoint()
        session.adopt(session.branches[name])
        session.drop(session.branches.pop(name))
        session.branches[session.branch] = present
        session.branch = name
    yield Line(f"on branch {name}, at relay block {session.number}")


@command(SNAPSHOTS, "snapshots", "snapshots", aliases=("branches",))
def _snapshots(session: Session) -> Iterator[Shown]:
    """List snapshots and branches."""
    moments = [(f"{session.branch} (this one)", "branch", session.now())]
    moments += [(name, "branch", moment) for name, moment in session.branches.items()]
    moments += [(name, "snapshot", moment) for name, moment in session.snapshots.items()]
    rows = tuple(
        (name, kind, moment_shown.number, hexed(_state(session, moment_shown, RELAY).root()))
        for name, kind, moment_shown in moments
    )
    yield Grid("snapshots and branches", ("name", "kind", "relay block", "state root"), rows)


@command(SNAPSHOTS, "forget NAME:snapshot", "forget before")
def _forget(session: Session, name: str) -> Iterator[Shown]:
    """Drop a snapshot or a branch."""
    if name == session.branch:
        raise CommandError(f"{name} is the session's present branch; switch to another one first")
    group = session.snapshots if name in session.snapshots else session.branches
    if name not in group:
        raise CommandError(f"there is no snapshot or branch {name!r}")
    session.drop(group.pop(name))
    yield Line(f"dropped {name}")


def _state(session: Session, moment: Checkpoint, chain: str) -> State:
    return session.node.state(chain, moment.heads[chain][1])


@command(SNAPSHOTS, "head BLOCK", "head 5")
def _head(session: Session, height: str) -> Iterator[Shown]:
    """Go back to an earlier relay block of the branch, which continues from there."""
    target = number(height, "BLOCK is the height of a relay block")
    first = session.facts.first
    if not first <= target <= session.number:
        raise CommandError(
            f"the network has the relay blocks {first} to {session.number}, not {target}"
        )
    # The hash of height 0 is that of the first block, even if a fork's first block is higher.
    session.ask("dev_setHead", target if target > first else hexed(session.relay_hash(0)))
    session.cut(target)
    yield Line(f"the network is at relay block {target}")


@command(
    SNAPSHOTS,
    "diff A [B] [CHAIN] [ITEM]",
    "diff before",
    "diff main attack",
    "diff main attack 3000",
    "diff before now relay TtlData",
)
def _diff(
    session: Session,
    name_a: str,
    name_b: str = "now",
    where: str | None = None,
    item: str | None = None,
) -> Iterator[Shown]:
    """Show decoded differences of two snapshots or branches: published keys and storage, by chain.

    B is `now` by default. Without CHAIN the first rows of each chain are shown; with it all rows,
    and the trie node that contains the first one. With ITEM only its rows are shown, with full
    values. Values that every block writes (numbers, slots, hashes, events) come last.
    """
    a = session.named(name_a)
    b = session.named(name_b)
    yield Line(f"A: {name_a}, relay block {a.number}")
    yield Line(f"B: {name_b}, relay block {b.number}")
    chains_in_both = [
        (chain, _state(session, a, chain), _state(session, b, chain), height, b.heads[chain][0])
        for chain, (height, _) in a.heads.items()
        if chain in b.heads
    ]
    names = [name for name, *_ in chains_in_both]
    if where is not None and where not in names:
        raise CommandError(f"unknown chain {where!r}. Chains: {', '.join(names)}")
    by_chain = {
        name: differences(state_a, state_b, session.key_name, relay=name == RELAY)
        for name, state_a, state_b, _, _ in chains_in_both
        if where in (None, name)
    }
    if not any(by_chain.values()):
        yield Line(
            "equal: every key of every chain" if where is None else f"{where} does not differ"
        )
        return
    if where is None:
        header = (
            "chain",
            "block in A",
            "block in B",
            "entries that differ",
            "apart from values that every block writes",
        )
        rows = []
        for name, _, _, in_a, in_b in chains_in_both:
            differing = by_chain[name]
            if differing:
                others = sum(not entry.of_every_block for entry in differing)
                rows.append((name, in_a, in_b, len(differing), others))
        yield Grid("chains that differ", header, tuple(rows))
    for name, differing in by_chain.items():
        if differing:
            yield from pages(name, differing, item, FEW if where is None else None)
    if where is not None and item is None:
        state_a, state_b = chains_in_both[names.index(where)][1:3]
        difference = diff_states(state_a, state_b)
        if difference is not None:
            yield Line(
                f"the first key that differs in the state trie of {where}, down to its node:"
            )
            yield from (Line(f"  {line}") for line in difference.lines())


@command(SNAPSHOTS, "write FILE [NAME:snapshot]", "write attack.json", "write before.json before")
def _write(session: Session, file: str, name: str = "now") -> Iterator[Shown]:
    """Write the present state, a snapshot or a branch of a scenario's network to a file.

    The file holds the scenario and the commands; reading it plays them again.
    """
    path = Path(file)
    session.node.local()
    moment = session.named(name)
    saved.write(session, moment, path)
    yield Line(
        f"written: {path}, relay block {moment.number}; `load {path}` or `pubsub step {path}`"
        " returns to it"
    )


@command(SNAPSHOTS, "load FILE", "load attack.json")
def _load(session: Session, file: str) -> Iterator[Shown]:
    """Load a file that `write` made. Snapshots and branches of this session are dropped."""
    path = Path(file)
    sessions: list[Session] = []
    yield from saved.read(path, sessions, forks=session.simulation.forks, rules=session.rules)
    session.become(sessions[0])
    yield Line(f"{path}: {session.facts.name} at relay block {session.number}")
