"""Texts that a stranger may have made, as they are shown: on a terminal, in a log line, in markup, in a table's cell.

A terminal acts on control characters, a reader's eye on overrides of the direction of writing, a spreadsheet on cells
that begin like a formula. None of them may come from a file or an answer.
"""

from typing import Final

MOST_SHOWN: Final = 20_000
"""Characters of one text that are shown."""
_FORMULA: Final = ("=", "+", "-", "@")
_MARKS: Final = frozenset("\\`*[]<>|~")


def safe(text: str) -> str:
    """A text in which each character that is not shown as itself is escaped, as in JSON; a very long one is cut."""
    if len(text) > MOST_SHOWN:
        text = f"{text[:MOST_SHOWN]}… ({len(text):,} characters)"
    return whole(text)


def whole(text: str) -> str:
    """As `safe`, however long it is: for documents, which a cut would make another."""
    return text if text.isprintable() else "".join(each if each.isprintable() else escaped(each) for each in text)


def marked(text: str) -> str:
    """A text within a line or a table's cell of Markdown: as `safe`, and nothing of it is markup."""
    return "".join(f"\\{each}" if each in _MARKS else each for each in safe(text))


def cell(value: object) -> object:
    """A value for a cell of CSV: a text that begins like a formula gets an apostrophe, which spreadsheets leave out."""
    if not isinstance(value, str):
        return value
    return f"'{safe(value)}" if value.startswith(_FORMULA) else safe(value)


def escaped(character: str) -> str:
    """Escape a character as in a JSON string, in UTF-16 units: two for one beyond the first 65,536 characters."""
    if character in "\n\r\t":
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}[character]
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
