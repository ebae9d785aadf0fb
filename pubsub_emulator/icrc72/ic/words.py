"""Numbers of strangers in words of errors: Candid's have no bound, and Python writes none of over 4,300 digits."""

from typing import Final

_BITS: Final = 512


def shown(number: int) -> str:
    """The number in decimal, or how many bits it has where they are more than 512."""
    return str(number) if number.bit_length() <= _BITS else f"a number of {number.bit_length():,} bits"
