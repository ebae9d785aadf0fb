"""The list of other versions in the sidebar of the site."""

import json
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from support.plumbing.processes import ROOT

pytestmark = pytest.mark.xdist_group("browser")

PAGE = """<!DOCTYPE html><html lang="en" data-content_root="../"><head><title>A page</title>
<link rel="icon" href="data:,"></head><body>{sidebar}<script src="../_static/versions.js">
</script></body></html>"""


class Quiet(SimpleHTTPRequestHandler):
    """A server of files that prints nothing."""

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def sites(tmp_path: Path) -> Iterator[str]:
    """The address of a folder with the site of version 0.4.0 and a list of three versions."""
    site = tmp_path / "0.4.0"
    (site / "howto").mkdir(parents=True)
    (site / "_static").symlink_to(ROOT / "docs" / "_static")
    template = ROOT / "docs" / "_templates" / "sidebar" / "versions.html"
    sidebar = template.read_text(encoding="utf-8").replace("{{ version }}", "0.4.0")
    (site / "howto" / "page.html").write_text(PAGE.format(sidebar=sidebar), encoding="utf-8")
    (tmp_path / "versions.json").write_text(json.dumps(["0.5.0", "0.4.0", "0.3.0"]))
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=tmp_path)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_page_links_to_the_other_versions(browser: Browser, sites: str) -> None:
    page = browser.new_page()
    page.goto(f"{sites}/0.4.0/howto/page.html")
    links = page.get_by_role("navigation", name="Versions").get_by_role("link")
    expect(links).to_have_text(["0.5.0", "0.3.0"])
    assert links.last.get_attribute("href") == f"{sites}/0.3.0/index.html"
    expect(page.get_by_text("Version 0.4.0")).to_be_visible()
    page.close()


def test_a_site_that_stands_alone_shows_its_version(browser: Browser, sites: str) -> None:
    page = browser.new_page()
    page.route("**/versions.json", lambda route: route.fulfill(status=404))
    with page.expect_response("**/versions.json"):
        page.goto(f"{sites}/0.4.0/howto/page.html")
    expect(page.get_by_text("Version 0.4.0")).to_be_visible()
    expect(page.get_by_role("navigation", name="Versions").get_by_role("link")).to_have_count(0)
    page.close()
