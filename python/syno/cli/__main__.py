"""Run the command line with `python -m syno.cli`."""

from syno.cli.main import main

main()
