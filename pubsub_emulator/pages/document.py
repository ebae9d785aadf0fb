"""The head of a page that is one file, with a policy against other scripts and all requests."""

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

    The page's policy forbids all requests and all scripts except `script`, whose hash it names.
    `style` and `script` are trusted.
    """
    script_policy = f"; script-src 'sha256-{_digest(script)}'" if script else ""
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:{script_policy}"
    policy_tag = Html(f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n')
    return join((_META, policy_tag, tag("title", title), _BREAK, tag("style", Html(style)), _BREAK))


def document(title: str, style: str, *body: object) -> str:
    """Return a page without scripts, with its title as its heading."""
    heading = tag("h1", title)
    whole = tag("html", tag("head", head(title, style)), tag("body", heading, *body), lang="en")
    return f"<!doctype html>\n{whole}\n"


def _digest(script: str) -> str:
    """Return the hash of a script in the form for a policy."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
