"""Replaces `[made: NAME](made.py)` in pages by parts that code writes, when the site is built.

`.venv/bin/python docs/made.py scenarios` prints `docs/scenarios.md` with its parts.

Parts between `<!-- made: NAME -->` and `<!-- end -->` are in the page itself, for readers of a
checkout. `.venv/bin/python docs/made.py --write distributor` writes them anew, and a test compares.
"""

import json
import re
import runpy
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, get_args

from pydantic import BaseModel
from rule_tests import PAGES, with_places

ROOT: Final = Path(__file__).resolve().parents[1]
VERIFIER: Final = ROOT / "examples" / "verifier" / "verifier.py"
_KEPT: Final = re.compile(r"<!-- made: ([a-z0-9-]+) -->\n.*?<!-- end -->", re.DOTALL)
"""A part that is in the page itself."""
_MARK: Final = re.compile(r"\[made: ([a-z0-9-]+)\]\(made\.py\)")


def parts() -> Mapping[str, Callable[[], Iterable[str]]]:
    """The functions that write parts, by name; each gives lines."""
    sys.path[:0] = [
        each
        for each in (str(ROOT), str(ROOT / "docs"), str(ROOT / "tests"))
        if each not in sys.path
    ]
    from command_reference import MADE  # noqa: PLC0415  # after the path
    from node_methods import methods  # noqa: PLC0415  # as above
    from table_columns import columns  # noqa: PLC0415  # as above

    return {
        **MADE,
        "acts": acts,
        "calls": calls,
        "columns": columns,
        "distributor-calls": distributor_calls,
        "distributor-steps": distributor_steps,
        "fixture-fields": fixture_fields,
        "node-methods": methods,
        "parachain-items": parachain_items,
        "prism-cheats": prism_cheats,
        "real-differences": real_differences,
        "subscriber-events": subscriber_events,
        "worked-cases": worked_cases,
        "xcm-others": xcm_others,
    }


def calls() -> Iterator[str]:
    """The table of the calls of both kinds of chains, with the indices of pallets and calls."""
    from pubsub_emulator.emulator.relay.pallets import RELAY  # noqa: PLC0415  # after the path
    from pubsub_emulator.runtime.framework.dispatch import calls_of  # noqa: PLC0415  # as above
    from pubsub_emulator.runtime.parachain.pallets import PARACHAIN  # noqa: PLC0415  # as above

    for title, runtime in (("relay chain", RELAY), ("parachain", PARACHAIN)):
        yield from (f"| {title} | call | what it does |", "|---|---|---|")
        for kind in runtime.kinds:
            for call in calls_of(kind):
                said = (getattr(kind, call.name).__doc__ or "").partition("\n\n")[0]
                yield (
                    f"| `{kind.pallet}` {kind.pallet.index} | `{call.name}` {call.index} |"
                    f" {' '.join(said.split())} |"
                )
        yield ""


def real_differences() -> Iterator[str]:
    """The tables of differences from real runtimes, of the list that a test holds to metadata."""
    from support.runtime.real_differences import SIGNS, kept  # noqa: PLC0415  # after the path

    words = dict(zip(SIGNS, ("not here", "only here", "other bytes"), strict=True))
    chain = ""
    for place, entry in kept().items():
        before, chain = chain, place.partition(".")[0]
        if chain != before:
            title = {"relay": "relay chain", "parachain": "parachain"}[chain]
            yield from ("", f"| {title} | why | what differs |", "|---|---|---|")
        differs = []
        for kind, signs in entry.items():
            for sign, names in signs.items() if isinstance(signs, dict) else ():
                differs.append(f"{kind}, {words[sign]}: {', '.join(names)}")
        yield f"| `{place.partition('.')[2]}` | {entry['reason']} | {'. '.join(differs)} |"


def xcm_others() -> Iterator[str]:
    """The instructions of XCM v5 that the executor does not name in its contract, by number."""
    from pubsub_emulator.xcm import executor  # noqa: PLC0415  # after the path
    from pubsub_emulator.xcm.instructions import Instruction  # noqa: PLC0415  # as above

    executed = re.findall(
        r"`(\w+)`",
        (executor.__doc__ or "").partition("Executed here:")[2].partition("Everything")[0],
    )
    others = {
        at: kind.__name__
        for at, kind in Instruction.VARIANTS.items()
        if kind.__name__ not in executed
    }
    yield ", ".join(f"{at} `{name}`" for at, name in sorted(others.items())) + "."


def distributor_calls() -> Iterable[str]:
    """The table of a distributor's calls, by its description."""
    from interchain_events.distributor.service.openapi import (  # noqa: PLC0415  # after the path
        ANYWHERE,
        document,
    )

    found = document(distributor=True)
    yield from ("| call | what it does | answers |", "|---|---|---|")
    for path, item in found["paths"].items():
        if path.startswith(("/api/v2/", "/health", "/livez", "/metrics", "/openapi.json")):
            for method in sorted({"get", "post", "delete"} & item.keys()):
                codes = [
                    f"`{each}`" for each in item[method]["responses"] if int(each) not in ANYWHERE
                ]
                yield (
                    f"| `{method.upper()} {path}` | {item[method]['summary']} |"
                    f" {', '.join(codes)} |"
                )


def distributor_steps() -> Iterable[str]:
    """Yield the table of the steps of a scenario file: their names, fields and effects."""
    from interchain_events.distributor.simulation.file import STEPS  # noqa: PLC0415  # after the path

    return _kinds(STEPS, "do")


def acts() -> Iterable[str]:
    """The table of the acts of a scenario."""
    from pubsub_emulator.emulator.network.actions import Act  # noqa: PLC0415  # after the path

    return _kinds(get_args(Act), "kind")


def _kinds(models: Iterable[type[BaseModel]], tag: str) -> Iterator[str]:
    yield from (f"| `{tag}` | fields | what happens |", "|---|---|---|")
    for model in models:
        names = ", ".join(f"`{each}`" for each in get_args(model.model_fields[tag].annotation))
        fields = [
            f"`{name}`" + ("" if field.is_required() else " (optional)")
            for name, field in model.model_fields.items()
            if name not in {"at", tag}
        ]
        yield f"| {names} | {', '.join(fields)} | {(model.__doc__ or '').strip()} |"


def prism_cheats() -> Iterable[str]:
    """The tables of cheats of a PRISM server: what each does, and as what the audit finds it."""
    from interchain_events.prism.cheats import (  # noqa: PLC0415  # after the path
        CHEATS,
        STATUS_CHEATS,
    )

    for head, cheats in (("cheat", CHEATS), ("cheat of channel 7", STATUS_CHEATS)):
        yield from (f"| {head} | what the server does | found as |", "|---|---|---|")
        yield from (
            f"| `{each.name}` | {each.words} | {each.found_as} |" for each in cheats.values()
        )
        yield ""


def fixture_fields() -> Iterable[str]:
    """The table of the fields of a fixture and of its parts, from their schema."""
    from pubsub_emulator.emulator.fixtures import Fixture  # noqa: PLC0415  # after the path

    found = Fixture.model_json_schema()
    yield from ("| part | field | meaning |", "|---|---|---|")
    for part, schema in {"": found, **found["$defs"]}.items():
        yield f"| `{part or 'Fixture'}` | | {' '.join(schema['description'].split())} |"
        for name, field in schema["properties"].items():
            yield f"| | `{name}` | {field.get('description', '')} |"


def worked_cases() -> Iterator[str]:
    """Yield the fixtures of `tests/vectors/worked`, valid ones first, as Markdown.

    Each is shown with the steps of the verifier of `examples/`.
    """
    verifier = runpy.run_path(str(VERIFIER))
    fixtures = [
        json.loads(path.read_bytes())
        for path in sorted((ROOT / "tests/vectors/worked").glob("*.json"))
    ]
    order = (None, *verifier["VERDICTS"])
    walks: dict[tuple[str, ...], int] = {}
    for number, fixture in enumerate(
        sorted(fixtures, key=lambda each: order.index(each["expected"]["verdict"])), 1
    ):
        outcome = verifier["judged"](fixture)
        found = verifier["expected"](outcome)
        steps = tuple(outcome.walk.steps)
        same = walks.setdefault(steps, number)
        walk = (
            (f"The walk is that of case {same}.",) if same < number else ("```text", *steps, "```")
        )
        yield from (f"### {number}. {fixture['name']}", "", fixture["about"], "", *walk, "")
        for offence in found["evidence"]:
            subject = ", ".join(
                f"`{part[2:]}`" if len(part) <= 66 else "a node" for part in offence["subject"]
            )
            yield from (f"Verdict: `{offence['verdict']}`. Subject: {subject or 'none'}.", "")
        if not found["evidence"]:
            at = (
                "none"
                if found["cursor"] is None
                else f"publisher {found['cursor'][0]}, `{found['cursor'][1][2:]}`"
            )
            said = (
                f"The walk used {found['used']:,} bytes; cursor: {at}. Deliveries:"
                f" {len(found['deliveries'])}."
            )
            yield from (f"{said} Post-state root: `{found['post_state_root'][2:]}`.", "")


def parachain_items() -> Iterable[str]:
    """The table of the storage items of a parachain that the verifier of `examples/` names."""
    from pubsub_emulator.runtime.parachain.pallets import (  # noqa: PLC0415  # after the path
        PARACHAIN,
    )

    named = VERIFIER.read_text(encoding="utf-8")
    yield from ("| item | prefix | keys | value | meaning |", "|---|---|---|---|---|")
    for name, item in PARACHAIN.items.items():
        if f'"{item.item}"' in named:
            keys = ", ".join(f"`{hasher}` {codec.name}" for hasher, codec in item.key_parts)
            yield (
                f"| `{name}` | `{item.prefix.hex()}` | {keys} | `{item.codec.name}` | {item.docs} |"
            )


def subscriber_events() -> Iterable[str]:
    """The table of the events of the pallet `Subscriber`."""
    from pubsub_emulator.runtime.pallet_subscriber import events  # noqa: PLC0415  # after the path

    yield from ("| variant | event | fields | meaning |", "|---|---|---|---|")
    for variant, event in sorted(events.DataProcessed.PALLET.events.items()):
        fields = ", ".join(f"{name} `{codec.name}`" for name, codec in event.CODECS)
        yield (
            f"| {variant} | `{event.__name__}` | {fields} |"
            f" {' '.join((event.__doc__ or '').split())} |"
        )


def page_of(name: str, text: str) -> str:
    """A page with all that code writes for it. Raises `KeyError` for a part that nothing writes."""
    return filled(with_places(text) if name in PAGES else text)


def filled(text: str) -> str:
    """A text with all of its parts. Raises `KeyError` for a part that nothing writes."""
    if _MARK.search(text) is None:
        return text
    known = parts()
    return _MARK.sub(lambda found: "\n".join(known[found.group(1)]()).strip(), text)


def setup(app: Any) -> dict[str, bool]:
    """Have Sphinx fill every page that it reads.

    Pages of rules also get the code and the tests beside each rule that has some.
    """

    def read(_app: Any, name: str, source: list[str]) -> None:
        source[0] = page_of(name, source[0])

    app.connect("source-read", read)
    return {"parallel_read_safe": True}


def renewed(text: str) -> str:
    """A page with the parts that it has itself as the code writes them now."""
    known = parts() if _KEPT.search(text) else {}

    def one(found: re.Match[str]) -> str:
        name = found[1]
        return "\n".join((f"<!-- made: {name} -->\n", *known[name](), "\n<!-- end -->"))

    return _KEPT.sub(one, text)


def main(names: list[str]) -> int:
    """Print the pages with these names and return the exit code.

    The code is 2 if one of them is not a page. After `--write`, the parts that pages have
    themselves are written anew instead.
    """
    is_written = names[:1] == ["--write"]
    if is_written:
        names = names[1:]
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    from pubsub_emulator.cli.streams import prepare_streams  # noqa: PLC0415  # after the path
    from pubsub_emulator.files.near import near_to  # noqa: PLC0415  # as above

    prepare_streams()
    folder = ROOT / "docs"
    pages = sorted(
        path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.md")
    )
    for name in names:
        if name not in pages:
            hint = near_to(name, pages, "`ls docs` shows all")
            sys.stderr.write(f"made.py: there is no page {name!r}; {hint}\n")
            return 2
    for name in names:
        page = folder / f"{name}.md"
        text = page.read_text(encoding="utf-8")
        if is_written:
            page.write_text(renewed(text), encoding="utf-8")
        else:
            sys.stdout.write(page_of(name, text))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
