"""Groups of commands: their help shows the first sentence of each command whole."""

import click


class Group(click.Group):
    """A group whose help cuts no sentence."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands with the first sentence of each."""
        found = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        with formatter.section("Commands"):
            formatter.write_dl([(name, _first_sentence(each.help or "")) for name, each in found if each is not None])


def _first_sentence(text: str) -> str:
    paragraph = " ".join(text.strip().partition("\n\n")[0].split())
    return paragraph.partition(". ")[0].rstrip(".")
