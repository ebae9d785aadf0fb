"""The table of a node's own methods: `pubsub_*` and `dev_*` with parameters and first sentences."""

from collections.abc import Iterator

from pubsub_emulator.node.rpc.methods import all_methods


def methods() -> Iterator[str]:
    """The lines of the table."""
    yield "| method | parameters | what |"
    yield "|---|---|---|"
    for name, method in sorted(
        all_methods(unsafe=True).items(), key=lambda row: (row[1].unsafe, row[0])
    ):
        if (
            name != method.name
            or not name.startswith(("pubsub_", "dev_"))
            or "_unsubscribe" in name
        ):
            continue
        params = ", ".join(
            f"[{each.name}]" if each.optional else each.name for each in method.params
        )
        said = " ".join((method.run.__doc__ or "").split("\n\n")[0].split())
        yield f"| `{name}`{' dev' if method.unsafe else ''} | {params} | {said} |"
