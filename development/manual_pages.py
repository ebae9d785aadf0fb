"""The manual pages of a distribution's commands, for its wheel. Both `setup.py` call it.

The pages are in section 1 and have the help that `--help` prints on 80 columns. They are the same
whatever else is installed where a wheel is built.
"""

from collections.abc import Iterator
from pathlib import Path

import click

import pubsub_emulator.extension
from pubsub_emulator.extension import Extension


def write_pages(
    folder: Path,
    title: str,
    extension: Extension | None = None,
) -> list[Path]:
    """Write the page of each command and return the pages. The folder may exist.

    The commands are those of `pubsub` itself, or those that an extension adds. `title` is the name
    of the distribution with its version, which each page has at its foot.
    """
    known = () if extension is None else (extension,)
    # The installed extensions would add their commands and options to the help.
    pubsub_emulator.extension.extensions = lambda: known  # type: ignore[assignment]
    from pubsub_emulator.cli.main import pubsub  # noqa: PLC0415  # only now

    folder.mkdir(parents=True, exist_ok=True)
    root = pubsub.make_context("pubsub", [], resilient_parsing=True, terminal_width=78)
    contexts: list[click.Context] = []
    if extension is None:
        contexts += _below(root)
    else:
        for name in extension.commands:
            contexts += _below(_context_of(pubsub, name, root))
    pages = []
    for context in contexts:
        page = folder / f"{context.command_path.replace(' ', '-')}.1"
        page.write_text(_page(context, title), encoding="utf-8")
        pages.append(page)
    return pages


def _below(context: click.Context) -> Iterator[click.Context]:
    """Yield the context of a command and, if it is a group, those of the commands in it."""
    yield context
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            yield from _below(_context_of(context.command, name, context))


def _context_of(group: click.Group, name: str, parent: click.Context) -> click.Context:
    command = group.get_command(parent, name)
    if command is None:
        raise KeyError(f"{parent.command_path} {name}")
    return command.make_context(name, [], parent, resilient_parsing=True)


def _page(context: click.Context, title: str) -> str:
    """Return the page of a command, in the language of `man`."""
    name = context.command_path.replace(" ", "-")
    lines = _escaped(context.command.get_help(context)).splitlines()
    # A line that begins with a dot would be a request to `man`.
    text = "\n".join(f"\\&{line}" for line in lines)
    head = f'.TH "{name.upper()}" "1" "" "{_escaped(title)}"'
    short = _escaped(context.command.get_short_help_str(200))
    return f"{head}\n.SH NAME\n{name} \\- {short}\n.SH USE\n.nf\n{text}\n.fi\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\e").replace("-", "\\-")
