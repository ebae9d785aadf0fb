"""Arguments of commands as values: numbers, bytes, keys; and the names of a scenario's keys."""

from itertools import chain, islice
from typing import Final

from pubsub_emulator.cli.session.answers import Setting
from pubsub_emulator.cli.session.command import CommandError
from pubsub_emulator.emulator.scenario import missing_key, published_key
from pubsub_emulator.primitives.pubsub import KEY_LENGTH, key_from_data
from pubsub_emulator.primitives.types import PubsubKey

MOST_NAMES: Final = 1 << 18
"""The most keys whose names are known without being typed."""


def names_of_keys(setting: Setting) -> dict[PubsubKey, str]:
    """The keys of a scenario's publishers, then the subscribed keys that are never published; the first ones."""
    published = (
        (published_key(each.para, index), f"{each.para}/{index}")
        for each in setting.publishers
        for index in range(each.keys)
    )
    missing = (
        (missing_key(each.para, index), f"{each.para}/never/{index}")
        for each in setting.publishers
        for index in range(setting.missing_keys)
    )
    return dict(islice(chain(published, missing), MOST_NAMES))


def number(text: str, what: str, least: int = 0) -> int:
    """Parse a whole number of digits and `_`. Raises `CommandError` that begins with `what`."""
    digits = text.replace("_", "")
    if not digits.isascii() or not digits.isdigit() or int(digits) < least:
        raise CommandError(f"{what}, not {text!r}")
    return int(digits)


def hexadecimal(text: str, what: str) -> bytes:
    """Parse bytes given as 0x and digits. Raises `CommandError`."""
    try:
        return bytes.fromhex(text.removeprefix("0x"))
    except ValueError:
        raise CommandError(f"{what} in hex is 0x and an even number of digits, not {text!r}") from None


def key(text: str, names: dict[PubsubKey, str]) -> PubsubKey:
    """Read a key by name or in hex; a name is put in `names`. Raises `CommandError`."""
    if text.startswith("0x"):
        raw = hexadecimal(text, "a key")
        if len(raw) != KEY_LENGTH:
            raise CommandError(f"a key has {KEY_LENGTH} bytes, not {len(raw)}: {text}")
        return PubsubKey(raw)
    named = key_from_data(text.encode())
    names[named] = text
    return named


def value(text: str) -> bytes:
    """Parse a published value: text, or 0x and digits. Raises `CommandError`."""
    return hexadecimal(text, "a value") if text.startswith("0x") else text.encode()
