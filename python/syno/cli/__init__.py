"""The command line: `syno COMMAND`, one file a command."""
