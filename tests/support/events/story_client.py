"""A client process that stores the events that it receives: `story_client.py URL TOKEN FILE`.

Each line of the file has the cursor, the seq and the id of one event; or the cursor, `cut` and the
last seq that a rewind left. A last line without its end was being written when the process was
killed. It does not count, and the event is sent again.
"""

import http.client
import json
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, TextIO


def kept_lines(path: Path) -> list[list[str]]:
    """Return the stored lines: cursor, seq and id of each event."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [line.split() for line in text[: text.rfind("\n") + 1].splitlines()]


def seen(path: Path) -> list[list[str]]:
    """Return seq and id of each event that the client has, without those that were taken back."""
    found: list[list[str]] = []
    for _, name, value in kept_lines(path):
        if name == "cut":
            found = [each for each in found if int(each[0]) <= int(value)]
        else:
            found.append([name, value])
    return found


def main(url: str, token: str, path: Path) -> None:
    """Read events for ever, beginning after the last stored one."""
    whole = kept_lines(path)
    path.write_text("".join(f"{' '.join(line)}\n" for line in whole), encoding="utf-8")
    cursor = whole[-1][0] if whole else None
    with path.open("a", encoding="utf-8") as file:
        while True:
            headers = {
                "Authorization": f"Bearer {token}",
                **({} if cursor is None else {"Last-Event-ID": cursor}),
            }
            try:
                request = urllib.request.Request(f"{url}/events", headers=headers)  # noqa: S310  # of the test's server
                with urllib.request.urlopen(request, timeout=5) as answer:  # noqa: S310
                    name, kind = cursor, ""
                    for raw in answer:
                        line = raw.decode().rstrip("\n")
                        if line.startswith("id: "):
                            name = line[4:]
                        elif line.startswith("event: "):
                            kind = line[7:]
                        elif line.startswith("data: ") and kind == "event":
                            row = json.loads(line[6:])
                            file.write(f"{name} {row['seq']} {row['id']}\n")
                            file.flush()
                            cursor = name
                        elif line.startswith("data: ") and kind == "end":
                            cursor = cut(file, json.loads(line[6:]), cursor)
                        elif not line:
                            cursor, kind = name, ""
            except urllib.error.HTTPError as error:
                if error.code == http.HTTPStatus.GONE:
                    cursor = cut(file, json.load(error), cursor)
                time.sleep(0.05)
            except (OSError, http.client.HTTPException, ValueError):
                time.sleep(0.05)


def cut(file: TextIO, told: dict[str, Any], cursor: str | None) -> str | None:
    """Note that events were taken back; where to go on."""
    if told.get("common") is None:
        return cursor
    file.write(f"{told['after']} cut {told['common']}\n")
    file.flush()
    return str(told["after"])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
