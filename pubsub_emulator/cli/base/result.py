"""A command's result for scripts.

`--json` prints one document on standard output, and prose on standard error.
"""

import sys
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import NamedTuple, ParamSpec

import click

P = ParamSpec("P")


class Result(NamedTuple):
    """A document of plain values and paths, and the exit code."""

    document: Mapping[str, object]
    code: int = 0


def with_json_option(run: Callable[P, Result]) -> Callable[..., None]:
    """Give a command the option `--json`, and let it exit with the code of its result.

    With the option, the result is also printed as JSON, and all other output goes to standard
    error.
    """

    @click.option(
        "--json",
        "as_json",
        is_flag=True,
        help="Print one JSON document on standard output, everything else on standard error.",
    )
    @wraps(run)
    def command(*arguments: P.args, **options: P.kwargs) -> None:
        as_json = bool(options.pop("as_json", False))
        from pubsub_emulator.cli.screen import prose_aside

        with prose_aside(wanted=as_json):
            result = run(*arguments, **options)
        if as_json:
            import json

            from pubsub_emulator.cli.screen import say_document

            say_document(json.dumps(result.document, indent=2, default=_plain))
        if result.code:
            sys.exit(result.code)

    return command


def _plain(value: object) -> object:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, bytes):
        return "0x" + value.hex()
    raise TypeError(f"{type(value).__name__} has no JSON form")


__all__ = ["Result", "with_json_option"]
