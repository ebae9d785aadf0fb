"""Figures as a person reads them."""

from typing import Final

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")


def size(count: int) -> str:
    """Bytes in binary units: `512 B`, `4.6 KiB`."""
    figure, unit = float(count), 0
    while abs(figure) >= 1024 and unit + 1 < len(_UNITS):
        figure, unit = figure / 1024, unit + 1
    return f"{count:,} B" if unit == 0 else f"{figure:,.1f} {_UNITS[unit]}"


def counted(count: int, one: str, many: str | None = None) -> str:
    """`1 chain`, `2,000 chains`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def percent(part: int, whole: int) -> str:
    """A share, with one digit after the point where it is small; nothing of nothing is `none`."""
    if whole == 0:
        return "none"
    share = 100 * part / whole
    return f"{share:.0f} %" if abs(share) >= 10 or share == 0 else f"{share:.1f} %"
