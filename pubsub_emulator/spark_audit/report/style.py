"""The colours of page and charts, by day and by night, also for those who do not see red or green.

Charts are drawn by day; in the page each colour becomes the variable of that name.
"""

from typing import Final

_COLORS: Final = {  # by day, by night
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
DAY: Final = {name: day for name, (day, _) in _COLORS.items()}
NIGHT: Final = {name: night for name, (_, night) in _COLORS.items()}
SERIES: Final = ("one", "two", "three", "four", "five", "six", "seven")
FONT: Final = "Liberation Sans, Arial, sans-serif"
"""The drawing library brings the first, so that a chart is the same on every machine."""
