"""The form of a web origin, as settings and options name it."""

import re
from typing import Final

_HOST: Final = r"[^/?#\s@A-Z]+"
ORIGIN: Final = re.compile(
    rf"\*|http://{_HOST}(?<!:80)|https://{_HOST}(?<!:443)|[a-z][a-z0-9+.-]*-extension://{_HOST}"
)
"""An origin as browsers send it, or `*` for all.

It has a scheme, a host in lower case, and a port unless it is the scheme's default. A text in
another form would never equal an origin.
"""
