"""The head of a page that is one file, and the policy that keeps it from everything outside."""

import base64
import hashlib
from typing import Final

from pubsub_emulator.pages.html import Html, join, tag

_META: Final = Html(
    '<meta charset="utf-8">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n'
)

_BREAK: Final = Html("\n")


def head(title: str, style: str, script: str = "") -> Html:
    """Return the head of a page.

    The page may load nothing, and run nothing but `script`: the policy has its hash. `style` and
    `script` are trusted.
    """
    runs = f"; script-src 'sha256-{_digest(script)}'" if script else ""
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:{runs}"
    forbids = Html(f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n')
    return join((_META, forbids, tag("title", title), _BREAK, tag("style", Html(style)), _BREAK))


def document(title: str, style: str, *body: object) -> str:
    """Return a page without scripts, with its title as its heading."""
    heading = tag("h1", title)
    whole = tag("html", tag("head", head(title, style)), tag("body", heading, *body), lang="en")
    return f"<!doctype html>\n{whole}\n"


def _digest(script: str) -> str:
    """Return the hash of a script as a policy names it."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
