"""Commands that keep moments and go back to them: snapshots, branches, differences, files."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pubsub_emulator.cli.pages import Grid, Line, Shown, words
from pubsub_emulator.cli.session import saved
from pubsub_emulator.cli.session.command import Command, CommandError, Given, Kind, Parameter
from pubsub_emulator.cli.session.session import Moment, Session
from pubsub_emulator.emulator.state_diff import diff_states, differing_entries
from pubsub_emulator.runtime.framework.storage import State
from pubsub_emulator.trie import Trie


def _save(session: Session, given: Given) -> Iterator[Shown]:
    name = given.one("NAME")
    _free(session, name, snapshots=True)
    session.snapshots[name] = session.moment()
    yield Line(f"saved as {name}: relay block {session.network.number} of branch {session.branch}")


def _free(session: Session, name: str, *, snapshots: bool = False) -> None:
    """Raises `CommandError` for a name that stands for something else already."""
    if name == "now":
        raise CommandError("`now` is where the session stands; choose another name")
    if name == session.branch or name in session.branches:
        raise CommandError(f"a branch is called {name}; choose another name")
    if name in session.snapshots and not snapshots:
        raise CommandError(f"a snapshot is called {name}; choose another name")


def _restore(session: Session, given: Given) -> Iterator[Shown]:
    name = given.one("NAME")
    if name not in session.snapshots:
        raise CommandError(f"no snapshot is called {name!r}; there are {', '.join(session.snapshots) or 'none'}")
    session.adopt(session.snapshots[name])
    yield Line(f"back at {name}: branch {session.branch} now stands at relay block {session.network.number}")


def _branch(session: Session, given: Given) -> Iterator[Shown]:
    name, start = given.one("NAME"), session.named(given.maybe("FROM") or "now")
    _free(session, name)
    session.branches[session.branch] = session.moment()
    session.branch = name
    session.adopt(start)
    yield Line(f"on branch {name}, at relay block {session.network.number}; `switch` goes back to another one")


def _switch(session: Session, given: Given) -> Iterator[Shown]:
    name = given.one("NAME")
    if name != session.branch:
        if name not in session.branches:
            raise CommandError(
                f"no branch is called {name!r}; there are {', '.join([*session.branches, session.branch])}"
            )
        there = session.branches.pop(name)
        session.branches[session.branch] = session.moment()
        session.branch = name
        session.adopt(there)
    yield Line(f"on branch {name}, at relay block {session.network.number}")


def _snapshots(session: Session, _given: Given) -> Iterator[Shown]:
    found = [(f"{session.branch} (this one)", "branch", session.moment())]
    found += [(name, "branch", moment) for name, moment in session.branches.items()]
    found += [(name, "snapshot", moment) for name, moment in session.snapshots.items()]
    yield Grid(
        "snapshots and branches",
        ("name", "kind", "relay block", "state root"),
        tuple((name, kind, moment.number, words(_relay(moment).root())) for name, kind, moment in found),
    )


def _forget(session: Session, given: Given) -> Iterator[Shown]:
    name = given.one("NAME")
    if name == session.branch:
        raise CommandError(f"{name} is the branch that the session stands on")
    kept = session.snapshots if name in session.snapshots else session.branches
    if name not in kept:
        raise CommandError(f"there is no snapshot or branch {name!r}")
    del kept[name]
    yield Line(f"{name} is forgotten")


def _relay(moment: Moment) -> State:
    return moment.network.relay.blocks[-1].state


def _diff(session: Session, given: Given) -> Iterator[Shown]:
    a_name, b_name = given.one("A"), given.maybe("B") or "now"
    a, b = session.named(a_name), session.named(b_name)
    yield Line(f"A: {a_name}, relay block {a.number}")
    yield Line(f"B: {b_name}, relay block {b.number}")
    mine, theirs = ({chain.para: chain for chain in each.network.parachains} for each in (a, b))
    differing: list[tuple[str | int, ...]] = []
    first: tuple[str, State, State] | None = None
    pairs = [("relay", _relay(a), _relay(b), a.number, b.number)]
    pairs += [
        (str(para), chain.state, theirs[para].state, chain.header.number, theirs[para].header.number)
        for para, chain in mine.items()
    ]
    for name, left, right, at, other in pairs:
        count = sum(1 for _ in differing_entries(left.top, right.top))
        inside = sum(
            sum(1 for _ in differing_entries(left.children.get(key, Trie(1)), right.children.get(key, Trie(1))))
            for key in sorted({*left.children, *right.children})
        )
        if count or inside:
            differing.append((name, at, other, count, inside))
            first = first or (name, left, right)
    if first is None:
        yield Line("equal: every key of every chain")
        return
    header = ("chain", "block in A", "block in B", "keys that differ", "published entries that differ")
    yield Grid("chains that differ", header, tuple(differing))
    where = given.maybe("CHAIN")
    if where is not None:
        found = [pair[:3] for pair in pairs if pair[0] == where]
        if not found:
            raise CommandError(f"no chain is called {where!r}; there are {', '.join(pair[0] for pair in pairs)}")
        first = found[0]
    name, left, right = first
    difference = diff_states(left, right)
    yield Line(f"the first difference on {name}:" if difference is not None else f"{name} does not differ")
    for line in () if difference is None else difference.lines():
        yield Line(f"  {line}")


def _write(session: Session, given: Given) -> Iterator[Shown]:
    path = Path(given.one("FILE"))
    moment = session.named(given.maybe("NAME") or "now")
    try:
        saved.write(session, moment, path)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}") from error
    yield Line(f"written: {path}, relay block {moment.number}; `load {path}` or `pubsub step {path}` comes back to it")


def _load(session: Session, given: Given) -> Iterator[Shown]:
    path = Path(given.one("FILE"))
    made: list[Session] = []
    yield from saved.read(path, made)
    session.become(made[0])
    yield Line(f"{path}: {session.scenario.name} at relay block {session.network.number}")


_NAME: Final = Parameter("NAME", Kind.NAME)
_MOMENT: Final = Parameter("NAME", Kind.MOMENT)

MOMENTS: Final = (
    Command(
        "save",
        "Keep this moment under a name; an older snapshot of that name goes.",
        _save,
        (_NAME,),
        "A snapshot lives as long as the session; `write` puts one into a file.",
        ("save before",),
    ),
    Command(
        "restore",
        "Go back to a snapshot: the branch goes on from there.",
        _restore,
        (_MOMENT,),
        examples=("restore before",),
    ),
    Command(
        "branch",
        "Start another branch, here or at a snapshot, and go on with it.",
        _branch,
        (_NAME, Parameter("FROM", Kind.MOMENT, optional=True)),
        "The branch left stands where it is; `switch` goes back to it.",
        ("branch honest", "branch attack before"),
    ),
    Command("switch", "Go on with another branch.", _switch, (_MOMENT,), examples=("switch main",)),
    Command("snapshots", "All snapshots and branches.", _snapshots, examples=("snapshots",), aliases=("branches",)),
    Command("forget", "Drop a snapshot or a branch.", _forget, (_MOMENT,), examples=("forget before",)),
    Command(
        "diff",
        "Where two moments differ: how many keys, by chain, and the first of them down to its trie node.",
        _diff,
        (
            Parameter("A", Kind.MOMENT),
            Parameter("B", Kind.MOMENT, optional=True),
            Parameter("CHAIN", Kind.CHAIN, optional=True),
        ),
        "B is `now` unless given; CHAIN says whose first difference is shown.",
        ("diff before", "diff main attack", "diff main attack 3000"),
    ),
    Command(
        "write",
        "Write this moment, or a snapshot, to a file.",
        _write,
        (Parameter("FILE", Kind.FILE), Parameter("NAME", Kind.MOMENT, optional=True)),
        "The file holds the scenario and the commands that led here; reading it plays them again.",
        ("write attack.json", "write before.json before"),
    ),
    Command(
        "load",
        "Go to the moment in a file; snapshots and branches of this session go.",
        _load,
        (Parameter("FILE", Kind.FILE),),
        examples=("load attack.json",),
    ),
)
