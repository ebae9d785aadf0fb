"""The command that installs extras of this package, for errors about a missing optional package."""

import sys
from functools import cache
from typing import Final

NAME: Final = "pubsub-emulator"
PLACES: Final = {NAME: ".", "interchain-events": "interchain_events"}
"""The folders of distributions in a checkout of this one."""


def brings(*extras: str) -> str:
    """Return the end of an error about a missing package: the command that installs `extras`."""
    return f"which `{install_command(*extras)}` installs"


@cache
def install_command(*extras: str) -> str:
    """Return a shell command that adds `extras` to this installation.

    An extra belongs to this distribution or to an extension. The command installs the distribution
    again: a checkout or a wheel from where it came, and a copy from a package index by its name.
    Raises `BadExtension`.
    """
    from pubsub_emulator.extension import extensions  # noqa: PLC0415  # only an error needs it

    owners: dict[str, str] = {}
    for extension in extensions():
        owners |= dict.fromkeys(extension.extra_names, extension.distribution)
    by_owner: dict[str, list[str]] = {}
    for extra in extras:
        by_owner.setdefault(owners.get(extra, NAME), []).append(extra)
    wanted = [_requirement(name, ",".join(listed)) for name, listed in by_owner.items()]
    return _pip_install(wanted)


def install_distribution(name: str) -> str:
    """Return a shell command that installs another distribution beside this one."""
    return _pip_install([_requirement(name, "")])


def _pip_install(wanted: "list[str]") -> str:
    import shlex  # noqa: PLC0415  # only an error about a missing package needs it

    return f"{shlex.quote(sys.executable or 'python3')} -m pip install {' '.join(wanted)}"


def _requirement(name: str, extras: str) -> str:
    """Return the arguments of pip for a distribution with extras."""
    import shlex  # noqa: PLC0415  # as above
    from pathlib import Path  # noqa: PLC0415  # as above
    from urllib.parse import unquote, urlsplit  # noqa: PLC0415  # as above

    listed = f"[{extras}]" if extras else ""
    checkout = Path(__file__).resolve().parents[2]
    folder = checkout / PLACES.get(name, "")
    # An editable installation stays editable.
    if name in PLACES and (folder / "pyproject.toml").is_file():
        return f"--editable {shlex.quote(f'{folder}{listed}')}"
    url = _origin(name)
    place = urlsplit(url)
    requirement = f"{unquote(place.path) if place.scheme == 'file' else name}{listed}"
    if url and place.scheme != "file":
        requirement += f" @ {url}"
    return shlex.quote(requirement)


def _origin(name: str) -> str:
    """Return the source of an installed distribution (PEP 610).

    The text is empty if the source is an index or unknown.
    """
    import json  # noqa: PLC0415  # as above
    from importlib.metadata import PackageNotFoundError, distribution  # noqa: PLC0415  # as above

    try:
        text = distribution(name).read_text("direct_url.json")
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
