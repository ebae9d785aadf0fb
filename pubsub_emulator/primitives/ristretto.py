"""The group Ristretto255 (RFC 9496), as far as Sr25519 signatures need it.

Elements are points of the curve of Ed25519 in extended coordinates. Nothing here takes constant
time: the only secrets of an emulated network follow from its public seed.
"""

from typing import Final, NamedTuple

PRIME: Final = 2**255 - 19
"""The prime of the field of coordinates."""
ORDER: Final = 2**252 + 27742317777372353535851937790883648493
"""The order of the group."""
_D: Final = -121665 * pow(121666, -1, PRIME) % PRIME
_ROOT_OF_MINUS_ONE: Final = pow(2, (PRIME - 1) // 4, PRIME)
_LENGTH: Final = 32


def _negative(value: int) -> bool:
    return value & 1 == 1


def _absolute(value: int) -> int:
    return PRIME - value if _negative(value) else value


def _root_of_ratio(numerator: int, denominator: int) -> tuple[bool, int]:
    """Return whether numerator / denominator is a square, and the root that is not negative.

    If it is not a square, the root is that of the ratio times the root of minus one.
    """
    cubed = denominator * denominator * denominator
    seventh = cubed * cubed * denominator
    root = numerator * cubed * pow(numerator * seventh, (PRIME - 5) // 8, PRIME) % PRIME
    check = denominator * root * root % PRIME
    turned = -numerator % PRIME
    is_square = check in (numerator % PRIME, turned)
    if check in (turned, turned * _ROOT_OF_MINUS_ONE % PRIME):
        root = root * _ROOT_OF_MINUS_ONE % PRIME
    return is_square, _absolute(root)


_ROOT_OF_A_MINUS_D: Final = _root_of_ratio(1, -1 - _D)[1]
"""The inverse of the root of a - d, where a is minus one."""


class Element(NamedTuple):
    """A point (x / z, y / z), with t = x y / z."""

    x: int
    y: int
    z: int
    t: int

    def plus(self, other: "Element") -> "Element":
        """Return the sum of two elements."""
        a = (self.y - self.x) * (other.y - other.x)
        b = (self.y + self.x) * (other.y + other.x)
        c = 2 * _D * self.t * other.t
        d = 2 * self.z * other.z
        e = b - a
        f = (d - c) % PRIME
        g = (d + c) % PRIME
        h = b + a
        return Element(e * f % PRIME, g * h % PRIME, f * g % PRIME, e * h % PRIME)

    def encode(self) -> bytes:
        """Return the canonical encoding, 32 bytes."""
        first = (self.z + self.y) * (self.z - self.y) % PRIME
        second = self.x * self.y % PRIME
        _, inverse = _root_of_ratio(1, first * second * second)
        denominator = inverse * first % PRIME
        other = inverse * second % PRIME
        z_inverse = denominator * other * self.t % PRIME
        if _negative(self.t * z_inverse % PRIME):
            x = self.y * _ROOT_OF_MINUS_ONE % PRIME
            y = self.x * _ROOT_OF_MINUS_ONE % PRIME
            inverted = denominator * _ROOT_OF_A_MINUS_D % PRIME
        else:
            x = self.x
            y = self.y
            inverted = other
        if _negative(x * z_inverse % PRIME):
            y = -y
        return _absolute(inverted * (self.z - y) % PRIME).to_bytes(_LENGTH, "little")


def decode(data: bytes) -> Element | None:
    """Return the element with this encoding, or `None` for other bytes."""
    s = int.from_bytes(data, "little")
    if len(data) != _LENGTH or s >= PRIME or _negative(s):
        return None
    square = s * s % PRIME
    first = 1 - square
    second = 1 + square
    v = -(_D * first * first) - second * second
    is_square, inverse = _root_of_ratio(1, v * second * second % PRIME)
    x_factor = inverse * second % PRIME
    y_factor = inverse * x_factor * v % PRIME
    x = _absolute(2 * s * x_factor % PRIME)
    y = first * y_factor % PRIME
    t = x * y % PRIME
    if not is_square or _negative(t) or y == 0:
        return None
    return Element(x, y, 1, t)


_NEUTRAL: Final = Element(0, 1, 1, 0)
_BASE_Y: Final = 4 * pow(5, -1, PRIME) % PRIME
_BASE_X: Final = _root_of_ratio(_BASE_Y * _BASE_Y - 1, _D * _BASE_Y * _BASE_Y + 1)[1]
BASE: Final = Element(_BASE_X, _BASE_Y, 1, _BASE_X * _BASE_Y % PRIME)
"""The base point."""


def combined(scalar: int, other_scalar: int = 0, other: Element = _NEUTRAL) -> Element:
    """Return `scalar` times the base point plus `other_scalar` times another element.

    Scalars are not negative.
    """
    summed = (_NEUTRAL, BASE, other, BASE.plus(other))
    result = _NEUTRAL
    for bit in range(max(scalar.bit_length(), other_scalar.bit_length()) - 1, -1, -1):
        result = result.plus(result)
        chosen = (scalar >> bit & 1) | (other_scalar >> bit & 1) << 1
        if chosen:
            result = result.plus(summed[chosen])
    return result
