"""Tracing a network in one thread while another one trains."""

import threading

import torch
from torch import nn

import syno

from .networks import EXAMPLE, network


def test_tracing_leaves_modules_of_other_threads_alone():
    """torch's counter of FLOP puts hooks on every module of the process."""
    done, wrong = threading.Event(), []

    def train():
        layer, x = nn.Linear(4, 4), torch.ones(2, 4, requires_grad=True)
        while not done.is_set():
            try:
                torch.autograd.grad(layer(x).sum(), [x, *layer.parameters()])
            except RuntimeError as error:
                wrong.append(error)
                return

    thread = threading.Thread(target=train)
    thread.start()
    try:
        for _ in range(10):
            syno.substitute(network(), example_input=EXAMPLE)
    finally:
        done.set()
        thread.join()
    assert wrong == []


def test_tracing_in_several_threads_leaves_torchs_settings_as_they_were():
    settings = (torch.backends.mha.get_fastpath_enabled, torch.backends.cuda.flash_sdp_enabled)
    assert all(setting() for setting in settings)
    threads = [
        threading.Thread(target=lambda: syno.substitute(network(), example_input=EXAMPLE))
        for _ in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(setting() for setting in settings)
