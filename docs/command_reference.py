"""Writes the reference of commands, settings and limits from the program, for pages of docs/.

Examples are in lists, so that they are not executed as blocks of a page.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Final

import click

from interchain_events.distributor.service.config import Config
from interchain_events.icrc72 import keys
from interchain_events.icrc72.conformance.rules import PAIR, rules_of
from interchain_events.icrc72.keys import LISTS, Key
from interchain_events.icrc72.scenario_file import ScenarioModel
from pubsub_emulator.cli.exits import MEANINGS
from pubsub_emulator.cli.main import pubsub, sentences_of_all
from pubsub_emulator.emulator.scenario.model import Scenario
from pubsub_emulator.files.readers import all_rows
from pubsub_emulator.files.settings import Model
from pubsub_emulator.files.settings.fields import described
from pubsub_emulator.session.table import SECTIONS

_EXAMPLE: Final = re.compile(r"^  (?=\S)(.*)$", re.MULTILINE)


def leaves() -> Iterator[tuple[str, click.Command, click.Context]]:
    """Yield every command with its name and context.

    A command of a group is named `group command`.
    """
    context = click.Context(pubsub, info_name="pubsub")
    for name in sentences_of_all():
        command = pubsub.get_command(context, name)
        if command is None:
            continue
        inner = click.Context(command, parent=context, info_name=name)
        if isinstance(command, click.Group):
            for part, each in command.commands.items():
                yield f"{name} {part}", each, click.Context(each, parent=inner, info_name=part)
        else:
            yield name, command, inner


def commands() -> Iterator[str]:
    """Every command with its help, arguments, options and examples."""
    for name, command, inner in leaves():
        yield f"### {name}\n"
        yield f"`{inner.command_path} {' '.join(command.collect_usage_pieces(inner))}`\n"
        yield f"{_paragraphs(command.help or '')}\n"
        records = (each.get_help_record(inner) for each in command.params)
        options = [
            (f"`{each[0]}`", " ".join(each[1].split())) for each in records if each is not None
        ]
        if options:
            yield from _table(("option", "meaning"), options)
        yield from (f"- `{example}`" for example in _examples(command.epilog or ""))
        yield ""


def _paragraphs(text: str) -> str:
    """A docstring as paragraphs of one line each."""
    return "\n\n".join(" ".join(part.split()) for part in text.replace("\b", "").split("\n\n"))


def _examples(epilog: str) -> list[str]:
    """The lines under `Example:` or `Examples:`. Text after a wide gap is a remark."""
    found = re.search(r"Examples?:\n(.*?)(?:\n\n|\n\b|\Z)", epilog, re.DOTALL)
    lines = _EXAMPLE.findall(found.group(1)) if found else []
    return [re.sub(r"\s{3,}", "`: `", line.strip()) for line in lines]


def session() -> Iterator[str]:
    """The commands of a session."""
    for title, listed in SECTIONS.items():
        yield f"### To {title}\n"
        rows = ((f"`{each.usage()}`", each.summary, f"`{each.examples[0]}`") for each in listed)
        yield from _table(("command", "what it does", "example"), rows)


def exit_codes() -> Iterator[str]:
    """The exit codes."""
    yield from _table(
        ("code", "meaning"), ((str(code), meaning) for code, meaning in MEANINGS.items())
    )


def fields(root: type[Model] = Scenario) -> Iterator[str]:
    """Every field of a scenario, table by table."""
    shown: dict[tuple[tuple[str, ...], ...], str] = {}
    for table, listed in groupby(described(root), key=lambda each: each.table):
        rows = tuple(
            (f"`{each.name}`", _holds(each.holds), _default(each.default), each.meaning)
            for each in listed
        )
        if rows in shown:
            yield f"### `{table}`\n\nAs `{shown[rows]}`.\n"
            continue
        shown[rows] = table
        yield f"### {f'`{table}`' if table else 'The file itself'}\n"
        yield from _table(("field", "values", "default", "meaning"), rows)


def _holds(text: str) -> str:
    """The values of a field in short. Large tables are documented separately."""
    text = re.sub(r" \{ [^}]{40,} \}", " as below", text)
    text = text.replace("a whole number from 0 to 4,294,967,295", "u32")
    return text.replace("a whole number from 1 to 4,294,967,295", "u32 > 0").replace(
        " of at least one, each", ", each"
    )


def _default(text: str) -> str:
    return text if text in ("none", "see there") else f"`{text}`" if text else "required"


def _table(
    header: tuple[str, ...], rows: "Iterator[tuple[str, ...]] | Sequence[tuple[str, ...]]"
) -> Iterator[str]:
    yield f"| {' | '.join(header)} |"
    yield f"|{'---|' * len(header)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"
    yield ""


def canister_keys() -> Iterator[str]:
    """The catalogue of keys of ICRC-72 and ICRC-77."""
    for title, table in keys.TABLES.items():
        yield f"## {title}\n"
        if table is keys.PUBLICATION:
            yield f"`LIST` is {', '.join(f'`{each}`' for each in keys.LISTS)}.\n"
        yield from _table(("key", "value", "meaning"), list(dict.fromkeys(map(_key_row, table))))
    yield "## Codes of GenericError\n"
    yield from _table(
        ("code", "meaning"), [(str(code), meaning) for code, meaning in keys.CODES.items()]
    )
    yield "## Statistics\n"
    rows = [(f"`{prefix}`", ", ".join(names)) for prefix, names in keys.STATISTICS.items()]
    yield from _table(("prefix", "names"), rows)


def canister_rules() -> Iterator[str]:
    """The rules of the conformance kit for each role, with level, place and text of the draft."""
    for role in PAIR:
        yield f"### {role.capitalize()}\n"
        rows = [
            (name, rule.about, rule.level, f"{rule.place}: “{rule.text}”")
            for name, rule in rules_of(role).items()
        ]
        yield from _table(("rule", "in words", "level", "in the draft"), rows)


def _key_row(key: Key) -> tuple[str, str, str]:
    """A key's name, value and meaning, with its aliases.

    One of a publication's lists is written `LIST`.
    """
    also = f" (also `{'`, `'.join(key.aliases)}`)" if key.aliases else ""
    which = next((each for each in LISTS if each in key.name), "LIST")
    return (
        f"`{key.name}`".replace(which, "LIST"),
        key.value,
        (key.meaning + also).replace(which, "LIST"),
    )


def readers() -> Iterator[str]:
    """Every reader of untrusted input with its limits."""
    rows = []
    for each in all_rows():
        target = f"`{each.target}`" if each.target else ""
        rows.append((each.what, f"`{each.reader}`", each.shown_limits(), each.bad, target))
    yield from _table(("what", "reader", "at most", "a bad one gets", "target"), rows)


MADE: Final[Mapping[str, Callable[[], Iterator[str]]]] = {
    "commands": commands,
    "session": session,
    "exit-codes": exit_codes,
    "fields": fields,
    "canister-keys": canister_keys,
    "canister-rules": canister_rules,
    "canister-fields": partial(fields, ScenarioModel),
    "distributor-settings": partial(fields, Config),
    "readers": readers,
}
