"""The command that installs extras of this package, for errors about a missing optional package."""

import sys
from functools import cache
from typing import Final

NAME: Final = "pubsub-emulator"


def brings(*extras: str) -> str:
    """Return the end of an error about a missing package: the command that installs `extras`."""
    return f"which `{install_command(*extras)}` brings"


@cache
def install_command(*extras: str) -> str:
    """Return a shell command that adds `extras` to this installation.

    A checkout and a wheel are installed again from the place that they came from. A copy from a
    package index is installed again by its name.
    """
    import shlex  # noqa: PLC0415  # only an error about a missing package needs it, and the imports below
    from pathlib import Path  # noqa: PLC0415  # as above
    from urllib.parse import unquote, urlsplit  # noqa: PLC0415  # as above

    python = shlex.quote(sys.executable or "python3")
    listed = ",".join(extras)
    checkout = Path(__file__).resolve().parents[2]
    if (checkout / "pyproject.toml").is_file():  # an editable installation stays editable
        return f"{python} -m pip install --editable {shlex.quote(f'{checkout}[{listed}]')}"
    url = _origin()
    place = urlsplit(url)
    wanted = f"{unquote(place.path) if place.scheme == 'file' else NAME}[{listed}]"
    if url and place.scheme != "file":
        wanted += f" @ {url}"
    return f"{python} -m pip install {shlex.quote(wanted)}"


def _origin() -> str:
    """Return the source of this installation (PEP 610).

    The text is empty if the source is an index or unknown.
    """
    import json  # noqa: PLC0415  # as above
    from importlib.metadata import PackageNotFoundError, distribution  # noqa: PLC0415  # as above

    try:
        text = distribution(NAME).read_text("direct_url.json")
        origin = json.loads(text) if text else {}
    except (PackageNotFoundError, ValueError):
        return ""
    if not isinstance(origin, dict) or not isinstance(origin.get("url"), str):
        return ""
    control = origin.get("vcs_info")
    if isinstance(control, dict) and isinstance(control.get("vcs"), str):
        commit = control.get("commit_id")
        revision = f"@{commit}" if isinstance(commit, str) else ""
        return f"{control['vcs']}+{origin['url']}{revision}"
    return str(origin["url"])
