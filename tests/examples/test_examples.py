import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "publish_subscribe.py"


def test_the_ten_line_example_delivers_what_it_publishes(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert capsys.readouterr().out == "relay block 3: b'7.42', ValidFor(blocks=100)\n"


def test_the_readme_shows_the_example_as_it_is() -> None:
    shown = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert shown is not None
    source = EXAMPLE.read_text(encoding="utf-8")
    assert shown.group(1) == source.split('"""\n\n', 1)[1]
    assert len(shown.group(1).strip().splitlines()) <= 11
