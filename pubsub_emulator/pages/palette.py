"""The colours of all pages and charts, by day and by night.

Red-green colour-blind readers can distinguish the colours of a series, and colours of text have a
contrast of at least 4.5 to 1 with their backgrounds. Charts are drawn in the day's colours. In a
page, each colour is a CSS variable of the same name, and these variables replace a chart's colours.
"""

from typing import Final

_COLORS: Final = {
    "ground": ("#f6f7f9", "#12161c"),
    "paper": ("#ffffff", "#1a2028"),
    "ink": ("#1b222c", "#e4e9f0"),
    "muted": ("#5b6675", "#9aa6b5"),
    "line": ("#dde2e8", "#2c3541"),
    "soft": ("#b8c1ce", "#556172"),
    "grey": ("#7f93ad", "#7f93ad"),
    "hover": ("#eef3fb", "#232c38"),
    "accent": ("#2a65c9", "#7fb0ff"),
    "good": ("#0b7a52", "#4ccb98"),
    "warn": ("#96560a", "#f0a45c"),
    "bad": ("#b3241f", "#ff8a84"),
    "bad-ground": ("#fdeceb", "#3a2022"),
    "one": ("#2f6db5", "#6ba6ea"),
    "two": ("#d9822b", "#f0a45c"),
    "three": ("#2a9d73", "#55c79b"),
    "four": ("#b04a8c", "#dc84bd"),
    "five": ("#7a5fc7", "#a993ea"),
    "six": ("#a88b1f", "#d6bb54"),
    "seven": ("#4fb0c6", "#7fd0e2"),
}
"""The colours for day and night, by name."""
_TRIE: Final = {
    "p": "#6ea3ff",
    "s": "#8fa3bd",
    "r": "#3cc091",
    "w": "#b294f0",
    "m": "#ff7d77",
    "u": "#ff7d77",
    "e": "#6b7684",
    "h": "#8b96a4",
    "z": "#8b96a433",
}
"""The colours of drawn tries by night. Those of the day are in `trie.css`, which a drawing that
stands alone contains."""
DAY: Final = {name: day for name, (day, _) in _COLORS.items()}
NIGHT: Final = {name: night for name, (_, night) in _COLORS.items()}
SERIES: Final = ("one", "two", "three", "four", "five", "six", "seven")
"""Colours for kinds of data, in order of use."""
FONT: Final = "Liberation Sans, Arial, sans-serif"
"""Fonts, the best first. The drawing library includes the first one, so that a chart looks the same
on every machine."""


def variables() -> str:
    """Return the colours as CSS variables.

    The night's colours apply if the reader chose the night with the page's button, or if the
    reader's system is dark and the reader did not choose the day. Printed pages have the day's
    colours.
    """
    day = _fields(DAY)
    night = f"{_fields(NIGHT)}color-scheme:dark"
    trie = _fields(_TRIE)
    of_system = ':root:not([data-theme="light"])'
    chosen = ':root[data-theme="dark"]'
    return (
        f":root{{{day}color-scheme:light}}\n"
        "@media screen and (prefers-color-scheme:dark){\n"
        f"{of_system}{{{night}}}\n{of_system} .trie{{{trie}}}\n}}\n"
        f"@media screen{{\n{chosen}{{{night}}}\n{chosen} .trie{{{trie}}}\n}}\n"
    )


def _fields(colors: dict[str, str]) -> str:
    return "".join(f"--{name}:{color};" for name, color in colors.items())
