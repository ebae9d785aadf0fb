"""The pace of a node's page in the tests' browser: the first click, the first paint, the frames of
a scroll.

    PYTHONPATH=tests python -m support.explorer.page_pace

prints seconds from the start of `pubsub lab` until its page has built the first block; milliseconds
until the page of a node with 1,000 blocks is painted and shows the newest; and the frames while ten
thousand blocks of twelve chains scroll by, of which those within 20 ms are in time.
"""

import sys
import time
from collections.abc import Iterator
from statistics import median
from typing import Final

from support.explorer.lab import Lab, many_blocks
from support.plumbing.browser import launched
from support.plumbing.chromium import ready
from support.plumbing.served import Served

_FRAMES: Final = """async () => {
  const strip = document.querySelector(".strip"), times = [];
  strip.scrollLeft = strip.scrollWidth / 2;
  let before = await new Promise(requestAnimationFrame);
  for (let at = 0; at < 300; at++) {
    strip.scrollLeft += 40;
    const now = await new Promise(requestAnimationFrame);
    times.push(now - before);
    before = now;
  }
  return times;
}"""
_PAINT: Final = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
_IN_TIME: Final = 20
"""Milliseconds of a frame that was not missed, at 60 a second."""


def _measure() -> Iterator[str]:
    with launched(ready()) as browser:
        start = time.perf_counter()
        node = Served("--no-open", command=("lab",))
        lab = Lab(node, browser)
        page = lab.open()
        lab.step(page)
        yield (
            "from the start of `pubsub lab` to a block built from its page:"
            f" {time.perf_counter() - start:.1f} s"
        )
        node.call("dev_newBlock", {"count": 1_000 - lab.best()})
        page = lab.open(ready=lambda page: page.add_init_script("window.began = performance.now()"))
        page.wait_for_selector("[aria-label='relay block 1000']")
        shown = page.evaluate("performance.now() - window.began")
        yield (
            f"1,000 blocks: first paint after {page.evaluate(_PAINT):.0f} ms, the newest seen after"
            f" {shown:.0f} ms"
        )
        page = lab.open(ready=lambda page: page.route_web_socket("**/*", many_blocks(10_000, 12)))
        page.wait_for_selector("[aria-label='relay block 10000']")
        frames: list[float] = page.evaluate(_FRAMES)
        yield (
            f"10,000 blocks of 12 chains: {sum(each <= _IN_TIME for each in frames)} of"
            f" {len(frames)} frames within {_IN_TIME} ms, half of them within {median(frames):.1f}"
            f" ms, the longest {max(frames):.0f} ms"
        )
        node.end()


if __name__ == "__main__":
    for line in _measure():
        sys.stdout.write(f"{line}\n")
