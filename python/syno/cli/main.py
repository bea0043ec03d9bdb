"""The entry point of `syno`."""

from __future__ import annotations

import click

from syno._util.helper_process import protect_command_line
from syno.cli import output
from syno.cli.framework import LazyGroup

# One line of help each; `syno.cli.commands` has a module of the name.
COMMANDS = {
    "demo": "See the whole way in a few minutes, on embedded images.",
    "search": "Find operators for a network: compose, train, measure, store.",
    "train": "Train chosen operators in a network, with several seeds.",
    "resume": "Go on with a search where it stopped.",
    "status": "What a store holds and how far its searches are.",
    "report": "Write a search's report: one page that needs nothing else.",
    "select": "Pick operators of a search, to go on with them.",
    "store": "Check a store for damage, and save what is intact in it.",
    "sample": "Draw operators of a specification without training them.",
    "enumerate": "List all operators of a specification, and count them.",
    "show": "Print one operator: formula, steps, cost, drawing.",
    "explain": "Print how a search builds an operator, and what it uses.",
    "why-not": "Print what keeps an operator out, and what would admit it.",
    "zoo": "Well-known operators by name: list, show, verify.",
    "models": "Networks by name: list them, and what operators may replace.",
    "verify": "Check an operator's generated code against the interpreter.",
    "export": "Write an operator as code that runs without Syno.",
    "rules": "What the rules of the search refuse, and why nothing is lost.",
    "data": "Data sets: list, show, prepare copies that load fast.",
    "experiment": "Repeat the experiments of the paper on synthesis.",
    "bench": "Measure how fast operators are found.",
    "doctor": "Check this installation and say what to do.",
}


@click.command(
    name="syno",
    cls=LazyGroup,
    commands_by_name=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    invoke_without_command=True,
    no_args_is_help=False,
)
@click.option("--version", is_flag=True, help="Print the version and leave.")
@click.pass_context
def cli(ctx: click.Context, version: bool) -> None:
    """Syno takes a neural network and finds new linear operators for its layers.

    It composes them from eight primitives, trains the network with each, measures it, and hands
    back the best trade-offs as code that runs without Syno. Start with `syno demo`.
    """
    if version:
        from syno import __version__

        output.echo(f"syno {__version__}")
    elif ctx.invoked_subcommand is None:
        output.echo(ctx.get_help())


def main() -> None:
    """Run the command line."""
    protect_command_line()
    cli.main(prog_name="syno")
