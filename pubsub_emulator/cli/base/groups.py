"""Groups of commands: their help shows the first sentence of each command whole."""

import click

from pubsub_emulator.cli.base.extras import Command


class Group(click.Group):
    """A group whose help cuts no sentence, and whose commands name the extras that they need."""

    command_class = Command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands with the first sentence of each."""
        with formatter.section("Commands"):
            formatter.write_dl(self.sentences(ctx))

    def sentences(self, ctx: click.Context) -> list[tuple[str, str]]:
        """Return the commands with the first sentence of each."""
        commands = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        return [
            (name, first_sentence(command.help or ""))
            for name, command in commands
            if command is not None
        ]


def first_sentence(text: str) -> str:
    """Return the first sentence of a help text, without its period."""
    return " ".join(text.strip().partition("\n\n")[0].split()).partition(". ")[0].rstrip(".")
