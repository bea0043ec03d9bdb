"""The entry point of `syno`."""

from __future__ import annotations

import click

from syno.cli import output
from syno.cli.framework import LazyGroup
from syno.runs.helper_process import protect_command_line

# Each command with a line of help; `syno.cli.commands` has a module of the name.
COMMANDS = {
    "demo": "Run a complete search on embedded images in a few minutes.",
    "search": "Search for operators for a network.",
    "train": "Train given operators in a network, with several seeds.",
    "adapt": "Choose faster operators for the layers of a trained network.",
    "resume": "Resume a search that was stopped or killed.",
    "worker": "Evaluate what searches on a store propose.",
    "status": "Show the studies of a store and their progress.",
    "report": "Write the report of a study as a self-contained HTML page.",
    "select": "Select operators of a study for further use.",
    "store": "Check a store for damage, and copy it.",
    "sample": "Sample operators of a specification without training them.",
    "enumerate": "Enumerate and count all operators of a specification.",
    "show": "Print an operator: its formula, drawing, text and cost.",
    "explain": "Print how a search builds an operator.",
    "why-not": "Print why a specification rejects an operator.",
    "zoo": "List, show, verify and time well-known operators.",
    "models": "List networks, and show which of their layers are replaceable.",
    "verify": "Verify generated code against the reference interpreter.",
    "tune": "Tune operators for a device in several back ends.",
    "measure": "Measure operators on this machine for the store of another one.",
    "import": "Store the measurements of another machine.",
    "device": "Lend this machine as a device for tuning, and list devices.",
    "export": "Write an operator or a network as code that runs without Syno.",
    "export-network": "Write a trained network of a study as code that runs without Syno.",
    "rules": "List, show and check the rules of the search.",
    "data": "List, show and prepare data sets.",
    "bench": "Measure the speed of networks, operators and searches.",
    "doctor": "Check the installation, and print how to fix problems.",
}


@click.command(
    name="syno",
    cls=LazyGroup,
    commands_by_name=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    invoke_without_command=True,
    no_args_is_help=False,
)
@click.option("--version", is_flag=True, help="Print the version and exit.")
@click.pass_context
def cli(ctx: click.Context, version: bool) -> None:
    """Search for new linear operators for the layers of a neural network.

    Syno composes operators from eight primitives, trains the network with each of them, measures
    the latency, and writes the best trade-offs as code that runs without Syno. Start with
    `syno demo`.
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
