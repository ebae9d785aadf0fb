"""Numbers with nouns, for messages and pages."""


def counted(count: int, one: str, many: str | None = None) -> str:
    """Return a number with a noun: `1 chain`, `2,000 chains`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
