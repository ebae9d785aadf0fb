"""Arguments and options that several commands share."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from pubsub_emulator.cli.base.paths import NamedPath, NewFile
from pubsub_emulator.extension import attribute, extensions
from pubsub_emulator.serving.origins import ORIGIN

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from pubsub_emulator.emulator.relay.runtime import AddedPallet
    from pubsub_emulator.runtime.rules import Rules

T = TypeVar("T")
FC = TypeVar("FC", bound=Callable[..., Any])

option: Final = partial(click.option, show_default=True)
"""An option whose help names its default."""


def repeatable(*names: str, says: str, **more: Any) -> Callable[[FC], FC]:
    """Return an option that may be given repeatedly. Its help says so after `says`."""
    return click.option(*names, multiple=True, help=f"{says}; may be given repeatedly.", **more)


OUT: Final = NamedPath(file_okay=False)
FILE: Final = NamedPath(exists=True, dir_okay=False)
NEW_FILE: Final = NewFile()
NEW_FILE_AND_FOLDER: Final = NewFile(makes_folder=True)
"""A file to write, and the folders that it is in."""
FOLDER: Final = NamedPath(exists=True, file_okay=False)
ANY: Final = NamedPath(exists=True)
PORT: Final = click.IntRange(0, 65535)
POSITIVE: Final = click.IntRange(1)
NODE_URLS: Final = ("ws://", "wss://", "http://", "https://")
"""The beginnings of a node's URL."""


@dataclass(frozen=True, slots=True)
class PalletOption:
    """An option of `pubsub serve` that adds a pallet to the relay chain."""

    name: str
    """The option, such as `--prism`."""
    help: str
    make: Callable[[str], "AddedPallet"]
    """Returns the pallet for the option's value, which is empty for a flag."""
    metavar: str = ""
    """The name of the option's value in help, or an empty text for a flag."""

    @property
    def parameter(self) -> str:
        """Return the option's name in Python."""
        return self.name.removeprefix("--").replace("-", "_")

    def decorate(self, command: FC) -> FC:
        """Give the option to a command."""
        if self.metavar:
            return click.option(self.name, metavar=self.metavar, help=self.help)(command)
        return click.option(self.name, is_flag=True, help=self.help)(command)


def pallet_options() -> tuple[PalletOption, ...]:
    """Return the options of all installed distributions. Raises `BadExtension`."""
    pallets: list[PalletOption] = []
    for extension in extensions():
        if extension.serve_options:
            pallets += attribute(extension.serve_options, "OPTIONS", tuple)
    return tuple(pallets)


def with_pallets(command: FC) -> FC:
    """Give a command the options of `pallet_options`."""
    for pallet in reversed(pallet_options()):
        command = pallet.decorate(command)
    return command


def take_pallets(arguments: dict[str, Any]) -> "dict[str, AddedPallet]":
    """Remove the pallets' options from `arguments`. Return the pallets by option."""
    added = {}
    for pallet in pallet_options():
        value = arguments.pop(pallet.parameter)
        if value:
            added[pallet.name] = pallet.make(value if isinstance(value, str) else "")
    return added


def filled(kind: Callable[..., T], arguments: Mapping[str, object]) -> T:
    """Call `kind` with the options of a command, which click has converted to its types."""
    return kind(**arguments)


def seed_of(name: str) -> bytes:
    """Return the seed in the environment variable that --seed-env names.

    The variable must have 32 bytes in hex. Raises `BadParameter`.
    """
    try:
        seed = bytes.fromhex(os.environ.get(name, "").removeprefix("0x"))
    except ValueError:
        seed = b""
    if len(seed) != 32:
        raise click.BadParameter(
            f"the variable {name} does not hold 32 bytes in hex", param_hint="--seed-env"
        )
    return seed


class Address(click.ParamType[str]):
    """A local folder, which must exist with `exists`, or a URI."""

    name = "address"

    def __init__(self, *, exists: bool, files: bool = False) -> None:
        self.exists = exists
        self.files = files

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Return the address as text. A `file:` URI becomes a path."""
        from pubsub_emulator.spark_audit.history.address import (
            StorageError,
            canonical_uri,
            is_remote,
            local_path,
        )

        text = str(value)
        if not text:
            self.fail("the folder's name is empty", param, ctx)
        if is_remote(text):
            try:
                return canonical_uri(text)
            except StorageError as error:
                self.fail(str(error), param, ctx)
        folder = local_path(text)
        if self.exists and not folder.exists():
            self.fail(f"{text}: there is no such folder", param, ctx)
        if folder.exists() and not folder.is_dir() and not self.files:
            self.fail(f"{text}: that is a file", param, ctx)
        return str(folder)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> "list[CompletionItem]":
        """Complete the names of folders."""
        from click.shell_completion import CompletionItem

        del ctx, param
        return [CompletionItem(incomplete, type="dir")]


HISTORY: Final = Address(exists=True)
AUDIT_OR_FILE: Final = Address(exists=True, files=True)
AUDIT_OUT: Final = Address(exists=False)

engine: Final = click.option(
    "--engine",
    type=click.Choice(["auto", "pool", "spark", "python"]),
    default="auto",
    show_default=True,
    help=(
        "What does the work: a pool of processes, Spark, or this process alone; auto is Spark with"
        " --master, else a pool. All give the same rows."
    ),
)
master: Final = click.option(
    "--master",
    default=None,
    help="Spark master; without one, --engine spark runs Spark inside of this program.",
)
tokens: Final = click.option(
    "--tokens",
    type=FILE,
    help=(
        "File of callers: in each line a name and the SHA-256 of its token. Only they may call,"
        " each with its limits."
    ),
)


def _load_cheats(
    _context: click.Context, _parameter: click.Parameter, files: tuple[Path, ...]
) -> tuple[Path, ...]:
    """Register the strategies that Python files define, and return the files.

    Raises `InputError` if a file cannot be executed or defines no strategy.
    """
    if files:
        from pubsub_emulator.collator.cheats import Strategy, register_strategy
        from pubsub_emulator.emulator.user_file import execute
        from pubsub_emulator.files.errors import InputError

        for path in files:
            values = vars(execute(path, "cheats_of", InputError)).values()
            strategies = [strategy for strategy in values if isinstance(strategy, Strategy)]
            if not strategies:
                raise InputError(
                    f"{path}: defines no strategy; the decorator `strategy` turns a function into"
                    " one"
                )
            for strategy in strategies:
                register_strategy(strategy)
    return files


own_cheats: Final = click.option(
    "--cheats",
    type=FILE,
    multiple=True,
    is_eager=True,
    expose_value=False,
    callback=_load_cheats,
    metavar="FILE",
    help="Python file with strategies of your own, to be used by name; may be given repeatedly.",
)


def _read_rules(_context: click.Context, _parameter: click.Parameter, path: Path | None) -> "Rules":
    if path is None:
        from pubsub_emulator.runtime.rules import SHIPPED

        return SHIPPED
    from pubsub_emulator.emulator.user_file import read_rules

    return read_rules(path)


rules: Final = click.option(
    "--rules",
    type=FILE,
    is_eager=True,
    callback=_read_rules,
    metavar="FILE",
    help=(
        "Python file with rules of your own in place of the shipped ones;"
        " docs/howto/change-a-rule.md."
    ),
)
new_out: Final = click.option(
    "--out", type=OUT, required=True, help="Folder to create; it must be empty or not exist yet."
)


def complete_scenario(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> "list[CompletionItem]":
    """Complete the names of bundled scenarios and of files."""
    from click.shell_completion import CompletionItem

    from pubsub_emulator.emulator.scenario.file import BUNDLE

    bundled = [CompletionItem(name) for name in BUNDLE.names() if name.startswith(incomplete)]
    return [*bundled, CompletionItem(incomplete, type="file")]


def complete_strategy(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[str]:
    """Complete the names of cheating strategies."""
    from pubsub_emulator.collator.cheats import STRATEGIES

    return [name for name in STRATEGIES if name.startswith(incomplete)]


names: Final = click.option(
    "--name",
    "names",
    multiple=True,
    metavar="NAME",
    help="A further host name by which clients call the server; repeatable.",
)


def _origins(_context: click.Context, _option: object, values: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse a text that no browser sends as an origin.

    It would never match, so no page could call.
    """
    for origin in values:
        if not ORIGIN.fullmatch(origin):
            raise click.BadParameter(f"{origin!r} is not an origin such as http://localhost:3000")
    return values


def origins(*names: str, says: str) -> Callable[[FC], FC]:
    """Return an option with the origins of pages that may call a server."""
    return repeatable(*names, metavar="ORIGIN", says=says, callback=_origins)


page_origins: Final = origins(
    "--origin",
    "origins",
    says="A further web origin whose pages may call, such as http://localhost:3000",
)
fork: Final = click.option(
    "--fork",
    metavar="SOURCE",
    help=(
        "State that the relay chain continues from: a file that export-state made, or a node's URL,"
        " which is read on demand at its newest final block, or at the one that follows an @."
    ),
)
fork_para: Final = click.option(
    "--fork-para",
    multiple=True,
    metavar="PARA=SOURCE",
    help="State that parachain PARA continues from; repeatable.",
)


def para_url(text: str) -> tuple[int, str]:
    """Return the para id and the URL in a text like `ID=URL`. Raises `UsageError`."""
    para, separator, url = text.partition("=")
    if not separator or not para.isdecimal() or not url.startswith(NODE_URLS):
        raise click.UsageError(f"--para {text}: not PARA=URL, such as 2000=ws://host:port")
    return int(para), url
