"""Makes the pictures of the live page: `PYTHONPATH=tests python docs/pictures.py`.

`images/lab.svg` is an animation of a cheat that is caught, in frames that a browser drew; `node-desktop.png` and
`node-phone.png` are single ones. The story of each is played on a node of its own.
"""

import base64
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from playwright.sync_api import Browser, Page, sync_playwright
from support.chromium import ready
from support.lab import Lab
from support.served import Served

IMAGES: Final = Path(__file__).parent / "images"
WIDE: Final = 1080
HIGH: Final = 720
_SECONDS: Final = 2.5
"""Of a frame."""
_WEBP: Final = """async (png) => {
  const image = await createImageBitmap(await (await fetch(png)).blob());
  const canvas = new OffscreenCanvas(image.width, image.height);
  canvas.getContext("2d").drawImage(image, 0, 0);
  const blob = await canvas.convertToBlob({ type: "image/webp", quality: 0.75 });
  return [...new Uint8Array(await blob.arrayBuffer())];
}"""


def frames(lab: Lab) -> list[tuple[str, bytes]]:
    """What a person sees who gives a collator a cheat: what each picture shows, and the picture as PNG."""
    page = lab.open(WIDE, color_scheme="light")
    page.set_viewport_size({"width": WIDE, "height": HIGH})
    found: list[tuple[str, bytes]] = []

    def keep(words: str) -> None:
        page.wait_for_timeout(500)
        found.append((words, page.screenshot()))

    keep("a network at its first block")
    page.locator(".guide summary").click()
    lab.act(page, "publish", key="price", value="7.42")
    lab.act(page, "subscribe", keys="price")
    lab.step(page, "Step 10")
    page.locator(".column .cell.delivers").last.click()
    page.wait_for_selector("#detail .field svg.trie", state="attached")
    keep("ten blocks later: a published value was delivered")
    page.select_option("#act", "cheat")
    page.locator("#panel form [name=strategy]").select_option("omit-node")
    page.locator("#panel form .tried").get_by_text("It would work").wait_for()
    keep("a collator is given a cheat; the dry run says which check would meet it")
    lab.act(page, "cheat", strategy="omit-node")
    page.select_option("select[aria-label='Until what happens']", "refusal")
    lab.step(page, "Until")
    page.locator(".column .cell.refused").first.click()
    page.wait_for_selector("#detail .field svg.trie")
    keep("its block is refused, with the evidence")
    page.locator("#detail .field").first.scroll_into_view_if_needed()
    keep("its proof as a trie")
    return found


def animation(pictures: list[tuple[str, bytes]]) -> str:
    """An SVG that shows pictures (WebP) one after another; the last one where motion is not wanted."""
    count = len(pictures)
    shown = "".join(
        f'<image style="animation-delay:{(at - count) * _SECONDS}s" width="{WIDE}" height="{HIGH}" '
        f'href="data:image/webp;base64,{base64.b64encode(data).decode()}"><title>{words}</title></image>\n'
        for at, (words, data) in enumerate(pictures)
    )
    part = 100 / count
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {HIGH}" role="img" '
        f'aria-label="{"; ".join(words for words, _ in pictures)}">\n<style>'
        f"image{{animation:turn {count * _SECONDS}s step-end infinite}}"
        f"@keyframes turn{{0%{{visibility:visible}}{part:.4f}%,100%{{visibility:hidden}}}}"
        f"@media(prefers-reduced-motion:reduce){{image{{animation:none}}}}</style>\n{shown}</svg>\n"
    )


def single(lab: Lab, name: str, width: int, height: int) -> None:
    """One picture of a network with a refused candidate."""
    page = lab.open(width, color_scheme="light")
    page.set_viewport_size({"width": width, "height": height})
    page.locator(".column .cell.refused").last.click()
    page.wait_for_selector("#detail .field svg.trie", state="attached")
    page.wait_for_timeout(500)
    page.screenshot(path=IMAGES / name)


def draw(browser: Browser, blank: Page) -> None:
    """All pictures."""
    lab = Lab(Served("node", "--dev", "--build", "manual"), browser)
    try:
        pictures = [
            (words, bytes(blank.evaluate(_WEBP, f"data:image/png;base64,{base64.b64encode(png).decode()}")))
            for words, png in frames(lab)
        ]
        (IMAGES / "lab.svg").write_text(animation(pictures), encoding="utf-8")
        single(lab, "node-desktop.png", 1400, 900)
        single(lab, "node-phone.png", 390, 844)
    finally:
        lab.node.end()


if __name__ == "__main__":
    own = ready()
    with TemporaryDirectory(prefix="browser-") as home, sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=own.executable, env=dict(own.environment(Path(home))), chromium_sandbox=False
        )
        draw(started, started.new_page())
        started.close()
