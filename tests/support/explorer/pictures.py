"""Draws the pictures of pages in `docs/images/`, in the tests' browser.

    PYTHONPATH=tests python -m support.explorer.pictures [DEMO]

writes `lab.svg`, whose frames are the first steps of the live page, `node-desktop.png` and
`node-phone.png`. With the folder that `pubsub demo` wrote, it writes only `report.png`, the top of
the report in it.
"""

import sys
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from playwright.sync_api import Browser, Page
from support.plumbing.browser import PHONE, launched
from support.plumbing.chromium import ready
from support.plumbing.processes import ROOT
from support.plumbing.served import Served

IMAGES: Final = ROOT / "docs" / "images"
_WIDTH: Final = 1080
_HEIGHT: Final = 720
_SECONDS: Final = 2.5
"""Seconds of a frame."""
WAIT: Final = 2_000
"""Milliseconds until a page has drawn what a click changed."""
_REPORT: Final = (1100, 1781)
"""Width and height of the picture of the report."""
_TO_WEBP: Final = """async (png) => {
  const image = new Image();
  image.src = png;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = image.width;
  canvas.height = image.height;
  canvas.getContext("2d").drawImage(image, 0, 0);
  return canvas.toDataURL("image/webp", 0.8);
}"""


class Frame(NamedTuple):
    """A picture of the page, and what it shows."""

    title: str
    png: bytes


def _step(page: Page, name: str) -> None:
    """Click the button of one of the first steps."""
    page.locator("details button:enabled", has_text=name).first.click()
    page.wait_for_timeout(WAIT)


def take_first_steps(page: Page) -> None:
    """Publish, subscribe, cheat and build blocks with the buttons of the page."""
    for name in ("Publish it", "Subscribe to it", "Build blocks", "Give it the cheat"):
        _step(page, name)
    _step(page, "Build blocks")


def _frames(page: Page) -> Iterator[Frame]:
    """Take the first steps, and yield a picture after each."""
    yield Frame("a network at its first block, and the first steps", page.screenshot())
    _step(page, "Publish it")
    _step(page, "Subscribe to it")
    _step(page, "Build blocks")
    yield Frame("a published value was delivered; the line is its way", page.screenshot())
    _step(page, "Give it the cheat")
    yield Frame("a collator is given a cheat", page.screenshot())
    _step(page, "Build blocks")
    page.locator("details summary").first.click()
    page.wait_for_timeout(WAIT)
    yield Frame("its block is refused, with the evidence", page.screenshot())
    page.mouse.wheel(0, _HEIGHT - 200)
    page.wait_for_timeout(WAIT)
    yield Frame("its proof as a trie, and where its bytes went", page.screenshot())


def _animation(frames: list[Frame], page: Page) -> str:
    """Return an SVG that shows the frames in turns.

    A reader who wants less motion sees the last one.
    """
    whole = _SECONDS * len(frames)
    share = 100 / len(frames)
    label = "; ".join(frame.title for frame in frames)
    box = f'viewBox="0 0 {_WIDTH} {_HEIGHT}"'
    turn = f"0%{{visibility:visible}}{share:.4f}%,100%{{visibility:hidden}}"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {box} role="img" aria-label="{label}">',
        "<style>",
        f"image{{animation:turn {whole}s step-end infinite}}",
        f"@keyframes turn{{{turn}}}",
        "@media(prefers-reduced-motion:reduce){image{animation:none}}",
        "</style>",
    ]
    for number, frame in enumerate(frames):
        png = f"data:image/png;base64,{b64encode(frame.png).decode()}"
        webp = page.evaluate(_TO_WEBP, png)
        lines.append(
            f'<image style="animation-delay:{_SECONDS * (number - len(frames))}s"'
            f' width="{_WIDTH}" height="{_HEIGHT}" href="{webp}">'
            f"<title>{frame.title}</title></image>"
        )
    return "\n".join((*lines, "</svg>\n"))


def _still(browser: Browser, url: str, file: Path, width: int, height: int) -> None:
    """Draw the page in a window of a size."""
    page = browser.new_page(viewport={"width": width, "height": height})
    page.goto(url)
    page.wait_for_timeout(WAIT)
    page.screenshot(path=file)
    page.close()


def _report(demo: Path) -> None:
    """Draw the top of the demonstration's report, with the parts of its first publisher open."""
    report = demo / "audit" / "report" / "report.html"
    width, height = _REPORT
    with launched(ready()) as browser:
        page = browser.new_page(viewport={"width": width, "height": height})
        page.goto(report.resolve().as_uri())
        page.wait_for_timeout(WAIT)
        page.locator("details", has_text="publisher").first.locator("summary").first.click()
        page.wait_for_timeout(WAIT)
        page.evaluate("window.scrollTo(0, 0)")
        page.screenshot(path=IMAGES / "report.png")


def main() -> None:
    """Draw all pictures, or that of the report."""
    if len(sys.argv) > 1:
        _report(Path(sys.argv[1]))
        return
    with launched(ready()) as browser:
        node = Served("--no-open", command=("lab",))
        page = browser.new_page(viewport={"width": _WIDTH, "height": _HEIGHT})
        page.goto(node.url)
        page.wait_for_timeout(WAIT)
        frames = list(_frames(page))
        (IMAGES / "lab.svg").write_text(_animation(frames, page), encoding="utf-8")
        page.close()
        _still(browser, node.url, IMAGES / "node-desktop.png", 1400, 900)
        _still(browser, node.url, IMAGES / "node-phone.png", PHONE["width"], PHONE["height"])
        node.end()


if __name__ == "__main__":
    main()
