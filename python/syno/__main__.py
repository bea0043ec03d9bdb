"""Run the command line with `python -m syno`."""

from syno.cli.main import main

main()
