"""What the job `release` refuses in a distribution, before anybody can upload it."""

import base64
import hashlib
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from development.release import changelog_faults, file_faults, sdist_faults

METADATA = """Metadata-Version: 2.4
Name: pubsub-emulator
Version: 1.2.3
Summary: One line
Author: the authors
License-Expression: Apache-2.0
Requires-Python: >=3.11
Description-Content-Type: text/markdown
Requires-Dist: click>=8

# A description
"""
INFO = "pubsub_emulator-1.2.3.dist-info"


def wheel(
    folder: Path, metadata: str = METADATA, more: Mapping[str, str] | None = None, listed: str = ""
) -> Path:
    """Write a wheel with some files. Its list has those, and the lines `listed`."""
    files = {f"{INFO}/METADATA": metadata, "pubsub_emulator/__init__.py": "", **(more or {})}
    rows = []
    for name, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest())
        rows.append(f"{name},sha256={digest.rstrip(b'=').decode()},{len(text)}")
    record = "\n".join([*rows, f"{INFO}/RECORD,,", *filter(None, [listed])]) + "\n"
    path = folder / "pubsub_emulator-1.2.3-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
        archive.writestr(f"{INFO}/RECORD", record)
    return path


def test_a_whole_wheel_has_no_fault(tmp_path: Path) -> None:
    assert list(file_faults(wheel(tmp_path), "1.2.3")) == []


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("Version: 1.2.3", "Version: 1.2.4", "its metadata is of pubsub-emulator 1.2.4"),
        ("Name: pubsub-emulator", "Name: another", "its metadata is of another 1.2.3"),
        ("Author: the authors\n", "", "Author is missing"),
        ("License-Expression: Apache-2.0\n", "", "License-Expression is missing"),
        ("Requires-Python: >=3.11\n", "", "Requires-Python is missing"),
        ("Summary: One line\n", "", "Summary is missing"),
        ("One line", "x" * 513, "the summary is not one line of at most 512 characters"),
        ("text/markdown", "text/plain", "the description is not Markdown"),
        ("# A description", "", "the description is empty"),
    ],
)
def test_metadata_that_an_index_refuses_is_named(
    tmp_path: Path, before: str, after: str, said: str
) -> None:
    assert before in METADATA
    faults = list(file_faults(wheel(tmp_path, METADATA.replace(before, after)), "1.2.3"))
    assert any(said in fault for fault in faults), faults


def test_a_wheel_and_its_list_have_the_same_files(tmp_path: Path) -> None:
    path = wheel(tmp_path, listed="gone.py,sha256=x,1")
    assert list(file_faults(path, "1.2.3")) == [f"{path.name}: gone.py is not in it"]
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("stray.py", "")
    assert f"{path.name}: stray.py is not listed" in list(file_faults(path, "1.2.3"))


def test_a_file_with_another_hash_than_listed_is_named(tmp_path: Path) -> None:
    path = wheel(tmp_path, listed="changed.py,sha256=AAAA,0")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("changed.py", "")
    (fault,) = file_faults(path, "1.2.3")
    assert fault == f"{path.name}: changed.py has another hash than its list says"


@pytest.mark.parametrize("name", ["/etc/passwd", "../outside.py"])
def test_names_that_lead_out_are_refused(tmp_path: Path, name: str) -> None:
    path = wheel(tmp_path, more={name: ""})
    assert f"{path.name}: {name} leads out of it" in list(file_faults(path, "1.2.3"))


def test_a_source_distribution_requires_what_its_wheel_does(tmp_path: Path) -> None:
    path = wheel(tmp_path)
    sdist = tmp_path / "pubsub_emulator-1.2.3.tar.gz"
    for metadata, faults in ((METADATA, 0), (METADATA.replace("click>=8", "click>=9"), 1)):
        info = tmp_path / "PKG-INFO"
        info.write_text(metadata, encoding="utf-8")
        with tarfile.open(sdist, "w:gz") as archive:
            archive.add(info, "pubsub_emulator-1.2.3/PKG-INFO")
        assert list(file_faults(sdist, "1.2.3")) == []
        assert len(list(sdist_faults([path, sdist]))) == faults


def test_the_changelog_of_a_release_is_built_and_begins_with_its_version(tmp_path: Path) -> None:
    (tmp_path / "changes/data").mkdir(parents=True)
    (tmp_path / "changes/README.md").write_text("", encoding="utf-8")
    (tmp_path / "CHANGELOG.md").write_text("# Log\n\n## 1.2.3 (today)\n", encoding="utf-8")
    assert list(changelog_faults(tmp_path, "1.2.3")) == []
    (older,) = changelog_faults(tmp_path, "1.2.4")
    assert older == "CHANGELOG.md begins with 1.2.3, and the version is 1.2.4"
    (tmp_path / "changes/thing.new.md").write_text("News.\n", encoding="utf-8")
    (tmp_path / "changes/data/table.new.md").write_text("News.\n", encoding="utf-8")
    (waiting,) = changelog_faults(tmp_path, "1.2.3")
    assert waiting.startswith("changes/ has 2 files")
