"""The drawing of charts, offline: SVG and PNG files, and SVG inside of a page.

In a page, a chart uses the page's colours, so that it follows the user's choice of light or dark.
"""

import re
from dataclasses import dataclass
from typing import Final
from xml.etree import ElementTree as ET

import vl_convert

from pubsub_emulator.pages.palette import DAY

_SVG: Final = "http://www.w3.org/2000/svg"
_KEPT_ROLES: Final = {"graphics-symbol"}
"""Roles of elements whose descriptions become titles. A browser shows a title at the pointer."""
_SILENT: Final = (
    "role",
    "aria-label",
    "aria-roledescription",
    "aria-hidden",
    "class",
    "pointer-events",
)
"""Attributes that are removed. The chart as a whole has a description for screen readers."""
_VARIABLES: Final = {color: f"var(--{name})" for name, color in DAY.items()}
"""The page's CSS variables by colour."""
_LONG: Final = re.compile(r"-?\d+\.\d{3,}(e-\d+)?")
"""Numbers with more digits than a screen can show."""

ET.register_namespace("", _SVG)


@dataclass(frozen=True, slots=True)
class DrawnChart:
    """A drawn chart."""

    svg: str

    def png(self) -> bytes:
        """Return the picture in pixels, two for each unit of its size."""
        return vl_convert.svg_to_png(self.svg, scale=2)

    def inline(self, label: str) -> str:
        """Return the picture as an element of a page, with `label` as its description."""
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
                    element.set(attribute, _LONG.sub(lambda match: f"{float(match[0]):.2f}", value))
            element.attrib.pop("font-family", None)
        root.attrib.pop("version", None)
        root.set("role", "img")
        root.set("aria-label", label)
        return ET.tostring(root, encoding="unicode")


def draw(spec: dict[str, object]) -> DrawnChart:
    """Draw a Vega-Lite specification."""
    return DrawnChart(vl_convert.vegalite_to_svg(spec))
