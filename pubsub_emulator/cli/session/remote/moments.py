"""Commands that keep moments of a node's network and go back to them."""

from collections.abc import Iterator

from pubsub_emulator.cli.pages import Grid, Line, Shown
from pubsub_emulator.cli.session.command import CommandError, Given, near_to
from pubsub_emulator.cli.session.remote.connection import Kept, Remote
from pubsub_emulator.cli.session.session import number


def save(remote: Remote, given: Given) -> Iterator[Shown]:
    """Save the present state on the node under a name. Raises `CommandError` for the name `now`."""
    name = given.one("NAME")
    if name == "now":
        raise CommandError("`now` means the present state; choose another name")
    remote.kept.pop(name, None)
    kept = remote.kept[name] = _keep(remote)
    yield Line(f"saved as {name}: relay block {kept.number}")


def _keep(remote: Remote) -> Kept:
    header = remote.ask("chain_getHeader")
    return Kept(str(remote.ask("dev_snapshot")), int(header["number"], 16), str(header["stateRoot"]))


def restore(remote: Remote, given: Given) -> Iterator[Shown]:
    """Go back to a saved state; the node drops what was saved later. Raises `CommandError` if it dropped this one."""
    name = given.one("NAME")
    kept = _find(remote, name)
    if not remote.ask("dev_revert", kept.id):
        del remote.kept[name]
        raise CommandError(f"the node has dropped {name}: somebody went back to an earlier moment")
    names = list(remote.kept)
    later = names[names.index(name) + 1 :]
    for each in (name, *later):
        del remote.kept[each]
    remote.kept[name] = _keep(remote)
    remote.wanted.clear()
    gone = f"; gone with what came after: {', '.join(later)}" if later else ""
    yield Line(f"back at {name}: the network is at relay block {remote.number}{gone}")


def _find(remote: Remote, name: str) -> Kept:
    if name not in remote.kept:
        every = f"there are {', '.join(remote.kept) or 'none'}"
        raise CommandError(f"no snapshot is called {name!r}; {near_to(name, remote.kept, every)}")
    return remote.kept[name]


def snapshots(remote: Remote, _given: Given) -> Iterator[Shown]:
    """One row per saved state, oldest first."""
    rows = tuple((name, "snapshot", each.number, each.root) for name, each in remote.kept.items())
    yield Grid("snapshots", ("name", "kind", "relay block", "state root"), rows)


def forget(remote: Remote, given: Given) -> Iterator[Shown]:
    """Drop a saved state. Raises `CommandError` for an unknown name."""
    _find(remote, given.one("NAME"))
    del remote.kept[given.one("NAME")]
    yield Line(f"dropped {given.one('NAME')}")


def head(remote: Remote, given: Given) -> Iterator[Shown]:
    """Go back to an earlier relay block that the node keeps."""
    place = given.one("BLOCK")
    remote.ask("dev_setHead", place if place.startswith("0x") else number(place, "BLOCK is a number or a hash"))
    remote.wanted.clear()
    yield Line(f"the network is at relay block {remote.number}")
