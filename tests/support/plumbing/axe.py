"""axe-core, which finds parts of a page that a screen reader or keyboard cannot use.

It is fetched once from npm, and its hash is checked.
"""

import json
from pathlib import Path
from typing import Any

from playwright.sync_api import Page
from support.plumbing.chromium import CACHE, _check, _fetch, _locked, _untar

PACKAGE = "axe-core@4.14.1"
INTEGRITY = (
    "sha512-FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NP"
    "jCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
)


def script(cache: Path = CACHE) -> str:
    """Return the library. Raises `BrowserMissingError`."""
    file = cache / PACKAGE / "package" / "axe.min.js"
    if not file.exists():
        with _locked(cache):
            if not file.exists():
                partial = cache / "axe"
                partial.mkdir(exist_ok=True)
                packed = _fetch(partial, PACKAGE)
                _check(packed, PACKAGE, INTEGRITY)
                _untar(packed, cache / PACKAGE)
    return file.read_text(encoding="utf-8")


def faults(page: Page) -> list[str]:
    """Return the serious and critical faults of a page, each with the first element."""
    page.evaluate(script())  # as a script of the debugger, which a page's policy does not concern
    found: list[dict[str, Any]] = page.evaluate("axe.run().then((found) => found.violations)")
    return [
        f"{each['id']}: {each['help']}: {json.dumps(each['nodes'][0]['target'])} of"
        f" {len(each['nodes'])}"
        for each in found
        if each["impact"] in {"serious", "critical"}
    ]
