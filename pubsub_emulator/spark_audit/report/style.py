"""The colours of page and charts, by day and by night.

Charts are drawn by day; in the page each of those colours becomes the variable of that name, which the page sets for
day and night. Colours of series are told apart by those who do not see red or green, too.
"""

from typing import Final

DAY: Final = {
    "paper": "#ffffff",
    "ink": "#1c2330",
    "muted": "#5b6675",
    "line": "#dde2e9",
    "soft": "#b8c1ce",
    "one": "#2f6db5",
    "two": "#d9822b",
    "three": "#2a9d73",
    "four": "#b04a8c",
    "five": "#7a5fc7",
    "six": "#a88b1f",
    "seven": "#4fb0c6",
    "bad": "#c2373f",
}
NIGHT: Final = {
    "paper": "#161b24",
    "ink": "#e6eaf0",
    "muted": "#9aa6b5",
    "line": "#2b3340",
    "soft": "#556172",
    "one": "#6ba6ea",
    "two": "#f0a45c",
    "three": "#55c79b",
    "four": "#dc84bd",
    "five": "#a993ea",
    "six": "#d6bb54",
    "seven": "#7fd0e2",
    "bad": "#f0777d",
}
SERIES: Final = ("one", "two", "three", "four", "five", "six", "seven")
FONT: Final = "Liberation Sans, Arial, sans-serif"
"""The drawing library brings the first, so that a chart is the same on every machine."""
