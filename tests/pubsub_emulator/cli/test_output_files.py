"""Files that a user names to be written: nothing else that the user has is replaced."""

import os
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from pubsub_emulator.cli.base.extras import Command
from pubsub_emulator.cli.base.paths import NewFile
from pubsub_emulator.cli.main import pubsub
from pubsub_emulator.files.atomic import NOT_A_FILE, whole_file, write_whole, write_whole_bytes


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(pubsub, list(map(str, words)))


def refused(*words: str | Path) -> str:
    result = run(*words)
    assert result.exit_code == 2, result.output
    return " ".join(result.output.split())


def commands(group: click.Command, name: str = "") -> Iterator[tuple[str, click.Command]]:
    if not isinstance(group, click.Group):
        yield name, group
        return
    context = click.Context(group)
    for each in group.list_commands(context):
        command = group.get_command(context, each)
        assert command is not None
        yield from commands(command, f"{name} {each}")


def test_every_command_that_writes_a_file_checks_its_uses() -> None:
    """`Command` makes the check. No other type of path is for files that do not exist."""
    seen = 0
    for name, command in commands(pubsub):
        for param in command.params:
            if isinstance(param.type, NewFile):
                seen += 1
                assert isinstance(command, Command), name
            elif isinstance(param.type, click.Path) and not param.type.exists:
                assert not param.type.file_okay or param.type.allow_dash, (name, param.name)
    assert seen > 8


def test_a_pipe_is_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert NOT_A_FILE in refused("prove", "node", "--top", "0x12", "--out", pipe)
    for write in (
        lambda: write_whole(pipe, "x"),
        lambda: write_whole_bytes(pipe, b"x"),
    ):
        with pytest.raises(OSError, match="regular file") as caught:
            write()
        assert caught.value.filename == str(pipe)
    assert pipe.is_fifo()
    assert [each.name for each in tmp_path.iterdir()] == ["pipe"]


def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    target = tmp_path / "folder" / "target"
    link = tmp_path / "link"
    link.symlink_to(target)
    write_whole(link, "one")
    write_whole_bytes(link, b"two")
    assert link.is_symlink()
    assert target.read_text() == "two"
    assert [each.name for each in target.parent.iterdir()] == ["target"]


def test_an_error_names_the_file_and_not_its_temporary_place(tmp_path: Path) -> None:
    wanted = tmp_path / "none" / "x.json"
    with pytest.raises(FileNotFoundError) as caught, whole_file(wanted):
        pass
    assert str(caught.value).endswith(f"No such file or directory: '{wanted}'")
