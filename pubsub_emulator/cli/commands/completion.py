"""`pubsub completion`: its arguments and help."""

import click

SHELLS = ("bash", "zsh", "fish")


@click.command(
    "completion",
    epilog=(
        '\b\nExamples:\n  eval "$(pubsub completion bash)"             in ~/.bashrc\n'
        '  eval "$(pubsub completion zsh)"              in ~/.zshrc\n'
        "  pubsub completion fish > ~/.config/fish/completions/pubsub.fish\n"
    ),
)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the completion script for SHELL: commands, options, files, scenarios and strategies."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"the installed click does not support {shell}")
    script = kind(context.find_root().command, {}, "pubsub", "_PUBSUB_COMPLETE")
    # not source(): it starts the shell to ask for its version, and the script may be for another
    # machine
    click.echo(script.source_template % script.source_vars())
