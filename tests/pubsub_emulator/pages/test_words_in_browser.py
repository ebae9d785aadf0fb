"""Figures in words: pages that a script fills say them as those that Python fills."""

import random

from playwright.sync_api import Page

from pubsub_emulator.pages.assets import script
from pubsub_emulator.pages.words import percent, size
from pubsub_emulator.primitives.words import counted

SIZES = [0, 1, 1023, 1024, 1536, 1_048_575, 1_048_576, 5 * 2**30, 3 * 2**40, -2048]
SHARES = [(0, 9), (1, 3), (1, 10_000), (1, 1000), (95, 1000), (1, 8), (10, 100), (3, 0), (-1, 8)]


def test_scripts_and_python_say_figures_in_the_same_words(page: Page) -> None:
    draws = random.Random("words")
    sizes = [*SIZES, *(draws.randrange(2 ** draws.randrange(1, 44)) for _ in range(200))]
    shares = [*SHARES, *((draws.randrange(10_000), 9_999) for _ in range(200))]
    said = page.evaluate(
        f"""(given) => {{ {script("words.js")}
        const words = modules["words.js"];
        const [sizes, shares] = given;
        return [
          sizes.map(words.size),
          shares.map(([part, whole]) => words.percent(part, whole)),
          sizes.map((count) => words.counted(count, "entry", "entries")),
        ]; }}""",
        [sizes, [list(pair) for pair in shares]],
    )
    assert said == [
        [size(count) for count in sizes],
        [percent(*pair) for pair in shares],
        [counted(count, "entry", "entries") for count in sizes],
    ]
