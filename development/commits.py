"""Check the newest commit messages, and the fragments of the changelog."""

import re
import subprocess
import tomllib

from development.environment import ROOT
from development.report import say

NEWEST = 20
"""The number of commits that are checked: more than anybody pushes at once."""
LONGEST_SUBJECT = 72
FRAGMENT = re.compile(r"[a-z0-9-]+\.(upgrade|new|mended)\.md")
NO_FRAGMENTS = {"README.md", "template.md.jinja"}


def faults_of_message(message: str) -> list[str]:
    """Return what is wrong with a commit message, or an empty list."""
    subject, _, body = message.strip().partition("\n")
    faults = []
    if len(subject) > LONGEST_SUBJECT:
        faults.append(f"the subject has {len(subject)} characters, at most {LONGEST_SUBJECT}")
    if ";" in subject:
        faults.append("the subject has a semicolon: a commit is one change")
    if ": " not in subject:
        faults.append("the subject does not begin with a room and a colon")
    if not body.strip():
        faults.append("a body that says why is missing")
    return faults


def fragment_faults() -> list[str]:
    """Return what is wrong with the files in `changes/`, or an empty list."""
    faults = []
    folder = ROOT / "changes"
    readers = readers_of_changes()
    for path in sorted(folder.rglob("*")):
        place = path.relative_to(ROOT).as_posix()
        if path.is_dir():
            if path.relative_to(folder).as_posix() not in readers:
                faults.append(f"{place}: no reader; there are {', '.join(sorted(readers))}")
        elif path.parent == folder and path.name in NO_FRAGMENTS:
            continue
        elif not FRAGMENT.fullmatch(path.name):
            faults.append(f"{place}: not NAME.upgrade.md, NAME.new.md or NAME.mended.md")
        elif not path.read_text(encoding="utf-8").strip():
            faults.append(f"{place}: empty")
    return faults


def readers_of_changes() -> set[str]:
    """Return the folders below `changes/`, one for each group of readers.

    The settings of towncrier name them.
    """
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    sections = settings["tool"]["towncrier"]["section"]
    return {section["path"] for section in sections if section["path"]}


def messages() -> list[tuple[str, str]]:
    """Return the newest commits of this branch, each with its short hash and message.

    Merges, and the commits that they brought, are left out. The list is empty outside of a
    repository.
    """
    log = ("git", "log", "--first-parent", "--no-merges", f"-{NEWEST}", "--format=%h%x00%B%x01")
    done = subprocess.run(log, cwd=ROOT, capture_output=True, text=True, check=False)
    commits = []
    for entry in done.stdout.split("\x01"):
        name, separator, message = entry.strip().partition("\0")
        if separator:
            commits.append((name, message))
    return commits


def check() -> int:
    """Report every fault. Return 1 if there is one."""
    faults = fragment_faults()
    for name, message in messages():
        faults += [f"commit {name}: {fault}" for fault in faults_of_message(message)]
    for fault in faults:
        say(fault)
    return 1 if faults else 0
