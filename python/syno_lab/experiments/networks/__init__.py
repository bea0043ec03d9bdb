"""Known networks in all inference engines, each engine alone in a process and all in turns."""
