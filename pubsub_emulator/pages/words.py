"""Formats of figures, the same as those in `assets/words.js`."""

from typing import Final

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")


def size(count: int) -> str:
    """Return bytes in binary units: `512 B`, `4.6 KiB`."""
    figure = float(count)
    unit = 0
    while abs(figure) >= 1024 and unit + 1 < len(_UNITS):
        figure /= 1024
        unit += 1
    return f"{count:,} B" if unit == 0 else f"{figure:,.1f} {_UNITS[unit]}"


def percent(part: int, whole: int) -> str:
    """Return a share, with a decimal if it is below 10 %. It is `none` if the whole is 0."""
    if whole == 0:
        return "none"
    share = 100 * part / whole
    if 0 < abs(share) < 0.05:
        return "under 0.1 %"
    return f"{share:.0f} %" if abs(share) >= 10 or share == 0 else f"{share:.1f} %"
