"""Draws every page of the project as readers see it, on a desktop and a phone, in light and dark.

    PYTHONPATH=tests python -m support.explorer.screens OUT [--demo FOLDER] [--site FOLDER]

writes OUT/PAGE-WIDTH-SCHEME.png: the lab and a development node's live page, with the page of a run
and the report of an audit if `--demo` names the folder that `pubsub demo` wrote, and the index of
the documentation if `--site` names the built one. It names each page that is wider than its window.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, Page
from support.explorer.pictures import WAIT, take_first_steps
from support.plumbing.browser import DESKTOP, PHONE, launched, overflows
from support.plumbing.chromium import ready
from support.plumbing.served import Served

SCHEMES: Final = ("light", "dark")


def _pages(browser: Browser, addresses: dict[str, str]) -> Iterator[tuple[str, Page]]:
    """Yield every page in every size and scheme, with the name of its picture."""
    for name, address in addresses.items():
        for size in (DESKTOP, PHONE):
            for scheme in SCHEMES:
                page = browser.new_page(viewport=size, color_scheme=scheme)
                page.goto(address)
                page.wait_for_timeout(WAIT)
                yield f"{name}-{size['width']}-{scheme}", page
                page.close()


def _addresses(lab: str, node: str, demo: Path | None, site: Path | None) -> dict[str, str]:
    """Return the address of each page by its name."""
    found = {"lab": lab, "node": node}
    if demo is not None:
        found["run"] = (demo / "explorer.html").resolve().as_uri()
        found["report"] = (demo / "audit" / "report" / "report.html").resolve().as_uri()
    if site is not None:
        found["docs"] = (site / "index.html").resolve().as_uri()
    return found


def main() -> None:
    """Draw all pages."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--demo", type=Path)
    parser.add_argument("--site", type=Path)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    with launched(ready()) as browser:
        lab = Served("--no-open", command=("lab",))
        node = Served("--dev")
        page = browser.new_page(viewport=DESKTOP)
        page.goto(lab.url)
        page.wait_for_timeout(WAIT)
        take_first_steps(page)
        page.close()
        addresses = _addresses(lab.url, node.url, given.demo, given.site)
        for name, shown in _pages(browser, addresses):
            shown.screenshot(path=given.out / f"{name}.png", full_page=not name.startswith("docs"))
            if overflows(shown):
                sys.stdout.write(f"{name}: wider than its window\n")
        lab.end()
        node.end()


if __name__ == "__main__":
    main()
