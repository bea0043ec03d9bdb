"""What all tests need."""

import signal


def pytest_configure() -> None:
    """Lets tests press Ctrl-C: a shell that starts them in the background has it ignored, here and
    in every process that is started here."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
