"""The version of this package."""

from typing import Final

VERSION: Final = "0.3.0"
