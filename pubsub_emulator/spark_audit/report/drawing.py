"""Charts as pictures, drawn offline: SVG and PNG files, and SVG within a page that follows the page's colours."""

import re
from dataclasses import dataclass
from typing import Final
from xml.etree import ElementTree as ET

import vl_convert

from pubsub_emulator.spark_audit.report.style import DAY

_SVG: Final = "http://www.w3.org/2000/svg"
_KEPT_ROLES: Final = {"graphics-symbol"}
_SILENT: Final = ("role", "aria-label", "aria-roledescription", "aria-hidden", "class", "pointer-events")
_VARIABLES: Final = {color: f"var(--{name})" for name, color in DAY.items()}
_LONG: Final = re.compile(r"-?\d+\.\d{3,}(e-\d+)?")

ET.register_namespace("", _SVG)


@dataclass(frozen=True, slots=True)
class Picture:
    """One chart, drawn."""

    svg: str

    def png(self) -> bytes:
        """The same in pixels, two for one."""
        return vl_convert.svg_to_png(self.svg, scale=2)

    def inline(self, label: str) -> str:
        """The picture as an element of a page that says `label`: marks have titles, colours are variables."""
        root = ET.fromstring(self.svg)  # noqa: S314  # drawn here a moment ago
        for element in root.iter():
            description = element.get("aria-label") if element.get("role") in _KEPT_ROLES else None
            for attribute in _SILENT:
                element.attrib.pop(attribute, None)
            if description is not None and element.tag == f"{{{_SVG}}}path":
                title = ET.Element(f"{{{_SVG}}}title")
                title.text = description
                element.insert(0, title)
            for attribute, value in element.attrib.items():
                if attribute in {"fill", "stroke"} and value in _VARIABLES:
                    element.set(attribute, _VARIABLES[value])
                elif attribute in {"d", "transform"}:
                    element.set(attribute, _LONG.sub(lambda found: f"{float(found[0]):.2f}", value))
            element.attrib.pop("font-family", None)
        root.attrib.pop("version", None)
        root.set("role", "img")
        root.set("aria-label", label)
        return ET.tostring(root, encoding="unicode")


def draw(spec: dict[str, object]) -> Picture:
    """Draws a Vega-Lite specification."""
    return Picture(vl_convert.vegalite_to_svg(spec))
