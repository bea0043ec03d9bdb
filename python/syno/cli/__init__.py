"""The command line: `syno COMMAND`, with a file for each command."""
