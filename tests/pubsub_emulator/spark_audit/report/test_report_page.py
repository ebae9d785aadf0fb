"""The page as a file: the same for the same audit, in need of nothing, and safe whatever a history
says.
"""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pyarrow.parquet as pq
import pytest
from support.spark_audit.audits import drop_a_node, write_history
from support.spark_audit.forged_report import HOSTILE, Reported, block, chain, forge, unread

from pubsub_emulator.cli.commands.evidence import run as evidence
from pubsub_emulator.files.extras import brings
from pubsub_emulator.spark_audit.audit.run import audit as run_audit
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.judge.finding_file import check_finding
from pubsub_emulator.spark_audit.judge.results import ResultError
from pubsub_emulator.spark_audit.report import CHARTS, PAGE
from pubsub_emulator.spark_audit.report.breakdown import ByteShare
from pubsub_emulator.spark_audit.report.charts import where_bytes_go
from pubsub_emulator.spark_audit.report.drawing import draw
from pubsub_emulator.spark_audit.report.page import MOST_DRAWN, write_report

pytestmark = pytest.mark.xdist_group("browser")  # where the audited history is made
LARGEST = 3 * 1024 * 1024


def _page(audit: Path, out: Path) -> str:
    out.mkdir()
    write_report(audit, out)
    return (out / PAGE).read_text(encoding="utf-8")


def _words(page: str) -> str:
    """The page with a space where the template breaks a line."""
    return " ".join(page.split())


def _visible(page: str) -> str:
    return re.sub(r"<(style|script)>.*?</\1>", "", page, flags=re.DOTALL)


def test_the_same_audit_gives_the_same_files(reported: Reported, tmp_path: Path) -> None:
    assert _page(reported.audit, tmp_path / "again") == reported.page.read_text(encoding="utf-8")
    first = {path.name: path.read_bytes() for path in (reported.page.parent / CHARTS).iterdir()}
    assert {
        path.name: path.read_bytes() for path in (tmp_path / "again" / CHARTS).iterdir()
    } == first


def test_every_chart_is_there_as_svg_and_png(reported: Reported) -> None:
    names = {path.name for path in (reported.page.parent / CHARTS).iterdir()}
    assert {
        "savings.svg",
        "collators.png",
        "chain-1-time.svg",
        "chain-1-bytes.png",
        "chain-2-delays.svg",
    } <= names
    for path in (reported.page.parent / CHARTS).iterdir():
        data = path.read_bytes()
        assert data.startswith(b"\x89PNG") if path.suffix == ".png" else data.startswith(b"<svg ")


def test_the_page_refers_to_nothing_outside_of_it(reported: Reported) -> None:
    page = reported.page.read_text(encoding="utf-8")
    assert len(page) < LARGEST
    addresses = set(re.findall(r"(?:https?:)?//[\w.]+[\w/.]*", _visible(page)))
    assert addresses == {"http://www.w3.org/2000/svg"}
    assert "default-src 'none'" in page
    assert not re.search(r"<(link|img|iframe|object|base|form)\b", page)
    assert not re.search(r"""src\s*=\s*["'](?!#)""", _visible(page))
    links = re.findall(r"""href\s*=\s*["']([^"'#][^"']*)""", _visible(page))
    assert all(re.fullmatch(r"evidence/[0-9a-f]{16}\.json", link) for link in links), links
    assert not re.search(r"@import|url\((?!#)", page)


def test_findings_have_the_ids_by_which_their_evidence_is_asked_for(reported: Reported) -> None:
    page = reported.page.read_text(encoding="utf-8")
    ids = [row["id"].hex()[: evidence.SHORT] for row in reported.results.rows(schema.FINDINGS)]
    assert len(set(ids)) == len(ids) > 0
    assert all(f"<code>{each}</code>" in page for each in ids)


def test_ids_are_unique_and_links_lead_somewhere(reported: Reported) -> None:
    page = reported.page.read_text(encoding="utf-8")
    ids = re.findall(r'\sid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    wanted = set(re.findall(r'href="#([^"]+)"', page)) | set(re.findall(r"url\(#([^)]+)\)", page))
    labels = {
        each for text in re.findall(r'aria-labelledby="([^"]+)"', page) for each in text.split()
    }
    assert wanted | labels <= set(ids)


def test_a_drawn_name_cannot_leave_its_chart() -> None:
    tree = ByteShare(HOSTILE, 10, (ByteShare(HOSTILE, 10),))
    drawn = draw(where_bytes_go(tree, 900)).inline(HOSTILE)
    root = ET.fromstring(drawn)  # noqa: S314  # drawn here
    assert root.get("aria-label") == HOSTILE
    assert any(HOSTILE in (element.text or "") for element in root.iter())
    assert "<img" not in drawn
    tags = {element.tag.split("}")[1] for element in root.iter()}
    assert tags <= {"svg", "g", "path", "rect", "line", "text", "title"}


def test_an_audit_of_nothing_is_a_page(tmp_path: Path) -> None:
    page = _page(forge(tmp_path / "audit", {}), tmp_path / "out")
    assert "There was no chain to audit." in page
    assert "No findings." in page
    assert "Everything could be read and judged." in page


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (0, ""),
        (1, "No manifest names 1 data file of the history, and it was not"),
        (7, "No manifest names 7 data files of the history, and they were not judged"),
    ],
)
def test_files_that_no_manifest_names_are_on_the_page(
    tmp_path: Path, files: int, said: str
) -> None:
    page = _words(_page(forge(tmp_path / "audit", {}, uncommitted_files=files), tmp_path / "out"))
    assert said in page
    assert ("manifests were lost" in page) == (files > 0)


def test_an_audit_that_could_read_nothing_says_so_first(tmp_path: Path) -> None:
    rows = [
        unread(path=f"blocks/{at:03}.parquet", error="a flipped bit", row_group=at)
        for at in range(250)
    ]
    page = _words(_page(forge(tmp_path / "audit", {schema.READ_ERRORS: rows}), tmp_path / "out"))
    assert "There was no chain to audit." in page
    assert "250 units could not be read or judged." in page
    assert page.count("a flipped bit") == 200
    assert "50 more units in the audit's table." in page


@pytest.mark.parametrize(
    ("statuses", "words"),
    [
        (["verified"], "The one chain is verified."),
        (["verified", "verified", "opened"], "All 2 chains are verified."),
        (["verified", "not verified"], "1 of 2 chains is not verified."),
        (["opened"], "Imported relay proofs of 1 chain were opened. There are no other chains."),
    ],
)
def test_the_first_sentence_is_the_verdict(tmp_path: Path, statuses: list[str], words: str) -> None:
    rows = [chain(chain=at, status=status) for at, status in enumerate(statuses)]
    page = _page(forge(tmp_path / "audit", {schema.CHAINS: rows}), tmp_path / "out")
    assert f'<h2 class="verdict">{words}</h2>' in page


def test_many_chains_are_all_counted_and_few_are_drawn(tmp_path: Path) -> None:
    rows = [chain(chain=at, proof_bytes=at) for at in range(300)]
    rows[7]["status"] = "not verified"
    page = _page(
        forge(tmp_path / "audit", {schema.CHAINS: rows, schema.BLOCK_MEASURES: [block(1)]}),
        tmp_path / "out",
    )
    assert f"Charts are drawn of {MOST_DRAWN} of 300 chains" in _words(page)
    assert page.count('<section class="chain"') == MOST_DRAWN
    assert page.index('href="#chain-1">dev 7</a>') < page.index('href="#chain-2">dev 299</a>')
    assert "100 more chains in the audit's table." in page
    assert len(page) < LARGEST


def test_tables_are_read_as_often_for_many_chains_as_for_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[object] = []
    inner = pq.ParquetFile

    def opening(*arguments: Any, **options: Any) -> pq.ParquetFile:
        opened.append(arguments)
        return inner(*arguments, **options)

    monkeypatch.setattr(pq, "ParquetFile", opening)
    often = []
    for count in (MOST_DRAWN, 3 * MOST_DRAWN):
        rows = [chain(chain=at, proof_bytes=100) for at in range(count)]
        blocks = [block(1, chain=at, unpruned_bytes=300, saved_pruned=200) for at in range(count)]
        opened.clear()
        audit = forge(
            tmp_path / f"audit{count}", {schema.CHAINS: rows, schema.BLOCK_MEASURES: blocks}
        )
        page = _page(audit, tmp_path / f"out{count}")
        savings = page.partition('<table class="savings">')[2].partition("</table>")[0]
        assert savings.count('<th scope="row">dev') == count
        often.append(len(opened))
    assert often[0] == often[1]


def test_there_is_no_report_without_an_audit(tmp_path: Path) -> None:
    with pytest.raises(ResultError, match="there is no audit"):
        write_report(tmp_path / "none", tmp_path)


def test_a_damaged_table_is_named(tmp_path: Path) -> None:
    audit = forge(tmp_path / "audit", {schema.CHAINS: [chain()]})
    next((audit / "summary/forged").glob("chains-*.parquet")).write_bytes(b"PAR1")
    (tmp_path / "out").mkdir()
    with pytest.raises(ResultError, match=r"chains-\w+\.parquet"):
        write_report(audit, tmp_path / "out")


def _pubsub(*arguments: object, before: str = "") -> "subprocess.CompletedProcess[str]":
    words = ["pubsub", *map(str, arguments)]
    script = (
        f"import sys\n{before}\nsys.argv = {words!r}\nfrom pubsub_emulator.cli.main import"
        " main\nmain()"
    )
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )


def test_the_command_writes_beside_the_tables_and_replaces_only_a_report(tmp_path: Path) -> None:
    audit = forge(tmp_path / "audit", {schema.CHAINS: [chain()]})
    for _ in range(2):
        done = _pubsub("report", audit)
        assert done.returncode == 0, done.stderr
        assert str(audit / "report" / PAGE) in done.stdout
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    done = _pubsub("report", audit, "--out", tmp_path / "mine")
    assert done.returncode == 2
    assert "not empty" in done.stderr
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["letter.txt"]


@pytest.mark.parametrize("package", ["altair", "vl_convert", "jinja2"])
def test_the_missing_extra_is_named(reported: Reported, tmp_path: Path, package: str) -> None:
    done = _pubsub(
        "report",
        reported.audit,
        "--out",
        tmp_path / "out",
        before=f"sys.modules[{package!r}] = None",
    )
    assert done.returncode == 4
    assert done.stderr.endswith(f"pubsub: this needs {package}, {brings('plot')}\n")
    assert not (tmp_path / "out").exists()


def test_nothing_infinite_is_drawn_of_proofs_that_weigh_nothing(tmp_path: Path) -> None:
    figures = (
        "proof_bytes",
        "budget",
        "used",
        "static_bytes",
        "top_path_bytes",
        "child_node_bytes",
        "value_bytes",
    )
    rows = [
        block(at, **dict.fromkeys((*figures, "cached_bytes", "cache_net"), 0)) for at in range(5)
    ]
    page = _page(
        forge(tmp_path / "audit", {schema.CHAINS: [chain()], schema.BLOCK_MEASURES: rows}),
        tmp_path / "out",
    )
    for text in (
        page,
        *(path.read_text(encoding="utf-8") for path in (tmp_path / "out").rglob("*.svg")),
    ):
        assert "Infinity" not in text
        assert "NaN" not in text


def test_findings_link_to_their_proving_files_and_the_head_is_named(tmp_path: Path) -> None:
    history = write_history(tmp_path / "history", 5, cheats={3: drop_a_node})
    result = run_audit(history, tmp_path / "audit", engine="python")
    page = _page(tmp_path / "audit", tmp_path / "out")
    linked = sorted((tmp_path / "out" / "evidence").iterdir())
    assert len(linked) == sum(result.findings.values()) > 0
    for path in linked:
        assert f'href="evidence/{path.name}"' in page
        check_finding(path)
    assert f"head 0x{result.head}, as the history itself says" in page
