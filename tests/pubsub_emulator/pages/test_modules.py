"""The linking of modules into one script, and what it refuses."""

from collections.abc import Mapping

import pytest

from pubsub_emulator.pages import assets
from pubsub_emulator.pages.modules import CannotLink, linked


def link(files: Mapping[str, str]) -> str:
    return linked("main.js", files.__getitem__)


def test_a_module_stands_once_behind_those_that_it_imports() -> None:
    script = link(
        {
            "main.js": 'import { a } from "./a.js";\nimport { b } from "./deep/b.js";\na(b);\n',
            "a.js": "export function a() {}\n",
            "deep/b.js": 'import { a as other } from "../a.js";\nexport const b = other;\n',
        }
    )
    places = [script.index(f'modules["{name}"] =') for name in ("a.js", "deep/b.js", "main.js")]
    assert places == sorted(places)
    assert script.count('modules["a.js"] =') == 1
    assert 'const { a: other } = modules["a.js"];' in script
    assert "return { b };" in script


def test_the_forms_of_minified_libraries_are_read() -> None:
    script = link(
        {
            "main.js": 'import{x as y}from"./x.js";import z from "./z.js";y(z);',
            "x.js": "var n=1;export{n as x,n as other};\n",
            "z.js": "var t=1;export default function(){return t}\n",
        }
    )
    assert 'const { x: y } = modules["x.js"];' in script
    assert 'const z = modules["z.js"].default;' in script
    assert "return { x: n, other: n };" in script
    assert "const defaultExport = function(){return t}" in script


@pytest.mark.parametrize(
    "text",
    [
        'export * from "./x.js";\n',
        'export { a } from "./x.js";\n',
        "export let a = 1;\n",
        'const a = 1;\nimport { b } from "./x.js";\n',
        'import * as all from "./x.js";\n',
    ],
)
def test_a_form_that_is_not_known_is_refused_and_not_left_in(text: str) -> None:
    with pytest.raises(CannotLink, match="not a known form"):
        link({"main.js": text, "x.js": "export const b = 1;\n"})


def test_a_circle_is_refused() -> None:
    circle = {
        "main.js": 'import { a } from "./a.js";\na();\n',
        "a.js": 'import { b } from "./main.js";\nexport const a = b;\n',
    }
    with pytest.raises(CannotLink, match=r"main\.js imports a\.js imports main\.js"):
        link(circle)


@pytest.mark.parametrize("text", ["</script>", "</SCRIPT ", "<!--"])
def test_text_that_would_end_its_element_is_refused(text: str) -> None:
    with pytest.raises(CannotLink, match="end its element"):
        link({"main.js": f"say('{text}');\n"})


@pytest.mark.parametrize("entry", ["run/main.js", "report/main.js"])
def test_the_pages_of_one_file_are_linked_the_same_way_each_time(entry: str) -> None:
    assert assets.script(entry) == linked(entry, assets.asset)
