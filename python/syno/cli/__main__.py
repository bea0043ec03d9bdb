"""`python -m syno.cli` is `syno`."""

from syno.cli.main import main

main()
