"""Checks a built site in its folder, without a network: `python docs/links.py SITE`.

Every link within the site must lead to an existing file and, if it names one, to an existing
anchor. No page may load anything from elsewhere. Links to other sites are not followed;
`python3 dev.py docs --external` does that.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

LOADS: Final = {
    "script": "src",
    "img": "src",
    "link": "href",
    "iframe": "src",
    "source": "src",
    "object": "data",
}
"""Tags that fetch something for the page itself."""


class Page(HTMLParser):
    """What a page refers to, and the anchors in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors = {"", "top"}
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes what the tag says."""
        said = {name: value for name, value in attrs if value is not None}
        self.anchors |= {said[name] for name in ("id", "name") if name in said}
        if tag == "a" and "href" in said:
            self.links.append(said["href"])
        if tag in LOADS and LOADS[tag] in said:
            self.loaded.append(said[LOADS[tag]])


def outside(link: str) -> bool:
    """Whether a link leaves the folder."""
    parts = urlsplit(link)
    return bool(parts.netloc or parts.scheme not in ("", "data"))


def faults(site: Path) -> list[str]:
    """What is wrong with a site, one line each, in the order of the pages."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    found = [] if pages else [f"{site}: no pages"]
    for path, page in pages.items():
        place = path.relative_to(site)
        found += [f"{place}: loads {link} from elsewhere" for link in page.loaded if outside(link)]
        for link in dict.fromkeys(page.links + page.loaded):
            parts = urlsplit(link)
            if outside(link) or parts.scheme == "data":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                found.append(f"{place}: {link}: there is no such file")
            elif target in pages and unquote(parts.fragment) not in pages[target].anchors:
                found.append(f"{place}: {link}: there is no such anchor")
    return found


def main() -> int:
    """Prints what is wrong; the exit code says whether anything is."""
    found = faults(Path(sys.argv[1]).resolve())
    print("\n".join(found) if found else "every link within the site leads somewhere")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
