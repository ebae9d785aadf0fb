"""The configuration of Sphinx: Markdown pages, the API from docstrings, and no network needed.

`python3 dev.py docs` builds the site with warnings as errors.
"""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent.parent)]

from pubsub_emulator.version import VERSION  # noqa: E402  # found by the line above

project = "pubsub-emulator"
author = "the pubsub-emulator authors"
version = release = VERSION
language = "en"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton", "api_reference", "made"]

# Markdown: links to headings work, and a link that leads nowhere is a warning, so an error.
myst_heading_anchors = 4

# A button that copies a block; prompts and outputs are blocks of their own, so a block is copied
# whole.
copybutton_selector = "div:not(.no-copybutton) > div.highlight > pre"

# The API: one page for each package, out of docstrings, in the order of the source.
api_rooms = (
    "pubsub_emulator/primitives",
    "pubsub_emulator/files",
    "pubsub_emulator/trie",
    "pubsub_emulator/xcm",
    "pubsub_emulator/runtime",
    "pubsub_emulator/collator",
    "pubsub_emulator/emulator",
    "pubsub_emulator/spark_audit",
    "pubsub_emulator/testing",
    "pubsub_emulator/node",
    "pubsub_emulator/serving",
    "pubsub_emulator/pages",
    "pubsub_emulator/client",
    "pubsub_emulator/laboratory",
    "pubsub_emulator/explorer",
    "pubsub_emulator/session",
    "pubsub_emulator/inspection",
    "pubsub_emulator/proving",
    "pubsub_emulator/runs",
    "pubsub_emulator/cli",
    "interchain_events/database",
    "interchain_events/pallets",
    "interchain_events/events",
    "interchain_events/delivery_audit",
    "interchain_events/prism",
    "interchain_events/distributor",
    "interchain_events/icrc72",
    "interchain_events/testing",
    "interchain_events/tour",
    "interchain_events/cli",
)
default_role = "code"  # docstrings write `names` as Markdown does
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_use_type_comments = (
    False  # there are none, and each function would be parsed again for them
)
add_module_names = False
toc_object_entries = False

html_theme = "furo"
# The sidebar shows the version, and links to those of `versions.json` above the site.
templates_path = ["_templates"]
html_static_path = ["_static"]
html_js_files = [("versions.js", {"defer": "defer"})]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/versions.html",
        "sidebar/scroll-end.html",
    ],
}
html_title = f"pubsub-emulator {VERSION}"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_show_search_summary = (
    False  # would fetch pages, which a browser refuses where the site is opened from a folder
)

exclude_patterns = ["_build", "_static", "_templates"]
suppress_warnings = [
    "ref.python"
]  # two rooms may each have a `Session`; a type in a signature links to either
