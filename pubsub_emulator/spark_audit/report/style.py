"""The colours of page and charts, by day and by night.

They can be told apart without seeing red or green. Charts are drawn in the colours of the day. In
the page, each colour is replaced by a CSS variable of the same name.
"""

from typing import Final

_COLORS: Final = {
    "paper": ("#ffffff", "#161b24"),
    "ink": ("#1c2330", "#e6eaf0"),
    "muted": ("#5b6675", "#9aa6b5"),
    "line": ("#dde2e9", "#2b3340"),
    "soft": ("#b8c1ce", "#556172"),
    "one": ("#2f6db5", "#6ba6ea"),
    "two": ("#d9822b", "#f0a45c"),
    "three": ("#2a9d73", "#55c79b"),
    "four": ("#b04a8c", "#dc84bd"),
    "five": ("#7a5fc7", "#a993ea"),
    "six": ("#a88b1f", "#d6bb54"),
    "seven": ("#4fb0c6", "#7fd0e2"),
    "bad": ("#c2373f", "#f0777d"),
}
"""By name, the colours by day and by night."""
DAY: Final = {name: day for name, (day, _) in _COLORS.items()}
NIGHT: Final = {name: night for name, (_, night) in _COLORS.items()}
SERIES: Final = ("one", "two", "three", "four", "five", "six", "seven")
"""Colours for kinds of data, in order of use."""
FONT: Final = "Liberation Sans, Arial, sans-serif"
"""Fonts, the best first. The drawing library includes the first one, so that a chart looks the same
on every machine."""
