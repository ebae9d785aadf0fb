"""The page as a person meets it, on a phone and on a desk."""

import re
from collections import Counter
from pathlib import Path

import pytest
from playwright.sync_api import Page, ViewportSize, expect
from support.plumbing.browser import DESKTOP, PHONE, NewPage, overflows, show
from support.spark_audit.forged_report import HOSTILE, Reported, chain, finding, forge, unread

from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.judge.results import Results
from pubsub_emulator.spark_audit.report import PAGE
from pubsub_emulator.spark_audit.report.page import write_report

SIZES = pytest.mark.parametrize("window", [PHONE, DESKTOP], ids=["phone", "desktop"])


def _rows(page: Page, selector: str) -> list[list[str]]:
    """The cells of a table, header left out."""
    cells = "rows => rows.map(row => [...row.cells].map(cell => cell.textContent.trim()))"
    found: list[list[str]] = page.locator(f"{selector} tbody tr").evaluate_all(cells)
    return found


def _number(text: str) -> int:
    return int(text.replace(",", "") or 0)


@SIZES
def test_nothing_is_wider_than_the_window_even_when_all_is_open(
    page: Page, reported: Reported, window: ViewportSize
) -> None:
    show(page, reported.page, window)
    assert not overflows(page)
    for picked in page.locator("#pick option").evaluate_all("all => all.map(each => each.value)"):
        page.select_option("#pick", picked)
        page.locator("details").evaluate_all("all => all.forEach(each => each.open = true)")
        assert not overflows(page)


@SIZES
def test_one_chain_is_shown_and_another_on_demand(
    page: Page, reported: Reported, window: ViewportSize
) -> None:
    show(page, reported.page, window)
    shown = page.locator(".chain:visible")
    expect(shown).to_have_count(1)
    expect(shown.locator("h3")).to_have_text("dev 2002")
    page.get_by_label("Chain", exact=True).select_option(
        label=re.compile("^dev 2000").pattern and _label(page, "dev 2000")
    )
    expect(shown.locator("h3")).to_have_text("dev 2000")
    page.get_by_role("link", name="dev 2001").click()
    expect(shown).to_have_count(1)
    expect(shown.locator("h3")).to_be_in_viewport()
    expect(shown.locator("h3")).to_have_text("dev 2001")
    expect(page.locator("#pick option:checked")).to_have_text(re.compile("^dev 2001"))


def _label(page: Page, start: str) -> str:
    labels: list[str] = page.locator("#pick option").all_text_contents()
    return next(label for label in labels if label.startswith(start))


@SIZES
def test_a_publisher_opens_into_what_its_bytes_are(
    page: Page, reported: Reported, window: ViewportSize
) -> None:
    show(page, reported.page, window)
    line = page.locator(".chain:visible .parts details").filter(has_text="publisher 1000")
    inside = line.locator(".inside")
    expect(inside).to_be_hidden()
    line.locator("summary").click()
    expect(inside).to_be_visible()
    expect(inside.locator(".leaf .part-name")).to_have_text(["top path", "child nodes", "values"])
    line.locator("summary").press("Enter")
    expect(inside).to_be_hidden()


def test_everything_that_can_be_used_is_reached_by_keys(page: Page, reported: Reported) -> None:
    show(page, reported.page)
    usable = page.locator(
        "a:visible, button:visible, select:visible, summary:visible, [tabindex='0']:visible"
    ).count()
    met: list[str] = []
    for _ in range(usable):
        page.keyboard.press("Tab")
        met.append(
            page.evaluate(
                "document.activeElement.tagName + document.activeElement.textContent.slice(0, 30)"
            )
        )
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none"
    assert {"SELECT", "SUMMARY", "A"} <= {
        re.match("[A-Z]+?(?=[^A-Z]|$)|SUMMARY|SELECT|A", each)[0] for each in met
    }
    assert page.evaluate("document.activeElement !== document.body")


@SIZES
def test_each_chart_is_drawn_once_per_window_and_has_a_caption(
    page: Page, reported: Reported, window: ViewportSize
) -> None:
    show(page, reported.page, window)
    charts = page.locator("figure svg:visible")
    labels = charts.evaluate_all("all => all.map(each => each.getAttribute('aria-label'))")
    assert labels == [
        "Proof bytes over time, dev 2002",
        "Where the bytes go, dev 2002",
        "Effect of the cache, dev 2002",
        "Delivery delay, dev 2002",
        "Savings by cause",
        "Findings by collator",
    ]
    widths = charts.evaluate_all("all => all.map(each => each.getBoundingClientRect().width)")
    room = page.locator("figure:visible").first.evaluate(
        "each => each.getBoundingClientRect().width"
    )
    assert all(width == pytest.approx(room) for width in widths)
    heights = charts.locator("text").evaluate_all(
        "all => all.map(each => each.getBoundingClientRect().height)"
    )
    assert min(heights) >= 11


def test_charts_follow_day_and_night(new_page: NewPage, reported: Reported) -> None:
    seen = set()
    for scheme in ("light", "dark"):
        page = new_page(color_scheme=scheme)
        show(page, reported.page)
        label = page.locator("figure svg:visible text").first
        seen.add(label.evaluate("each => getComputedStyle(each).fill"))
    assert len(seen) == 2


def test_without_scripts_every_chain_is_there(new_page: NewPage, reported: Reported) -> None:
    page = new_page(java_script_enabled=False)
    show(page, reported.page)
    expect(page.locator(".chain:visible")).to_have_count(5)
    expect(page.locator(".picker")).to_be_hidden()


def test_the_figures_are_those_of_the_tables(page: Page, reported: Reported) -> None:
    results = Results.open(reported.audit)
    show(page, reported.page)
    tiles = dict(
        zip(
            page.locator(".tile dt").all_text_contents(),
            page.locator(".tile b").all_text_contents(),
            strict=True,
        )
    )
    findings = list(results.rows(schema.FINDINGS))
    assert tiles == {
        "verified": "4 chains",
        "not verified": "1 chain",
        "findings": str(len(findings)),
        "candidates": f"{results.report['candidates']:,}",
        "proofs": f"{results.report['proof_bytes'] / 1024:,.1f} KiB",
        "read errors": "1 unit",
    }
    assert {(row[0], row[1], _number(row[3])) for row in _rows(page, "#chains table")} == {
        (f"{row['network']} {row['chain']}", row["status"], row["candidates"])
        for row in results.rows(schema.CHAINS)
    }
    blocks = [row for row in results.rows(schema.BLOCK_MEASURES) if row["chain"] == 2002]
    good = [row for row in blocks if row["status"] == "included" and row["verdict"] is None]
    series = _rows(page, ".chain:visible table.series")
    assert sum(_number(row[2]) for row in series) == sum(row["proof_bytes"] for row in good)
    assert sum(_number(row[1]) for row in series) == len(good)
    cache = _rows(page, ".chain:visible table.cache")
    assert sum(_number(row[3]) for row in cache) == sum(row["cache_net"] for row in good)
    held = [row for row in results.rows(schema.PUBLISHER_MEASURES) if row["chain"] == 2002]
    shown = {_number(row[0]): _number(row[1]) for row in _rows(page, ".chain:visible table.delays")}
    assert shown == Counter(delay for row in held for delay in row["delays"])
    saved = {row[0]: [_number(cell) for cell in row[1:]] for row in _rows(page, "table.savings")}[
        "dev 2002"
    ]
    assert (
        saved[0] == sum(row["proof_bytes"] + row["saved_pruned"] for row in good) == sum(saved[1:5])
    )
    assert {(row[0], row[1]): _number(row[2]) for row in _rows(page, "table.codes")} == Counter(
        (row["code"], row["severity"]) for row in findings
    )
    assert {row[0] for row in _rows(page, "table.collators")} == {
        row["collator"].hex() for row in findings
    }
    assert len(_rows(page, "table.read-errors")) == 1


@SIZES
def test_hostile_names_stay_text_and_inside_the_window(
    page: Page, tmp_path: Path, window: ViewportSize
) -> None:
    name = HOSTILE + "n" * 300
    tables = {
        schema.CHAINS: [chain(network=name, status="not verified", reasons=[name])],
        schema.FINDINGS: [finding(network=name, detail=name, code=name, collator=bytes(32))],
        schema.READ_ERRORS: [unread(path=name, error=name, network=name)],
    }
    audit = forge(tmp_path / "audit", tables)
    (tmp_path / "out").mkdir()
    write_report(audit, tmp_path / "out")
    page.on("dialog", lambda dialog: pytest.fail(f"the page ran {dialog.message}"))
    show(page, tmp_path / "out" / PAGE, window)
    page.locator("details").evaluate_all("all => all.forEach(each => each.open = true)")
    expect(page.locator("#chains tbody th")).to_have_text(f"{name} 1")
    expect(page.locator(".chain h3")).to_have_text(f"{name} 1")
    assert not overflows(page)
    assert page.locator("img").count() == 0
