"""One proposed operator: built, checked, trained and timed, in a process of its own."""
