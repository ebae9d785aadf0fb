"""Escaping of untrusted texts before they are shown.

A terminal obeys control characters, changes of the writing direction mislead a reader, and a
spreadsheet evaluates cells that begin like a formula. Texts from files and answers must be escaped
before they are shown on a terminal, in a log line, in Markdown or in a table's cell.
"""

from typing import Final

MOST_SHOWN: Final = 20_000
"""The maximum number of characters of one text that `safe` shows."""
_FORMULA: Final = ("=", "+", "-", "@")
_MARKS: Final = frozenset("\\`*[]<>|~")


def safe(text: str) -> str:
    """Escape each character that is not printable, as in JSON, and cut a very long text."""
    if len(text) > MOST_SHOWN:
        text = f"{text[:MOST_SHOWN]}… ({len(text):,} characters)"
    return whole(text)


def whole(text: str) -> str:
    """Escape a text as `safe` does, but do not cut it.

    This is for documents, whose meaning a cut would change.
    """
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else escaped(character) for character in text
    )


def marked(text: str) -> str:
    """Escape a text for a line or a table's cell of Markdown, so that it contains no markup."""
    return "".join(
        f"\\{character}" if character in _MARKS else character for character in safe(text)
    )


def cell(value: object) -> object:
    """Escape a value for a cell of CSV.

    A text that begins like a formula gets an apostrophe, which spreadsheets do not show.
    """
    if not isinstance(value, str):
        return value
    return f"'{safe(value)}" if value.startswith(_FORMULA) else safe(value)


def escaped(character: str) -> str:
    """Escape a character as in a JSON string, in UTF-16 units.

    A character beyond the first 65,536 becomes two units.
    """
    if character in "\n\r\t":
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}[character]
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[start : start + 2].hex()}" for start in range(0, len(units), 2))
