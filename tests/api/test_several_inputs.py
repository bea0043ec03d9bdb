"""Networks of several inputs in every format that holds them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from marks import slow_but
from syno import UserError
from syno.codegen.export import cross, export_network, formats
from syno.codegen.export.write import network_subject
from syno.inference import load

from .test_cross import TARGET, needs_cross_tools

FORMATS = ("torch-export", "onnx", "aoti", "torch-network", "cpp-network")


class Conditioned(nn.Module):
    """An image, numbers and token ids, and an input that is not used."""

    def __init__(self) -> None:
        super().__init__()
        self.image = nn.Conv2d(3, 8, 3, padding=1)
        self.scale, self.word = nn.Linear(5, 8), nn.Embedding(11, 8)

    def forward(
        self, x: torch.Tensor, z: torch.Tensor, words: torch.Tensor, unused: torch.Tensor
    ) -> torch.Tensor:
        scale, shift = torch.sigmoid(self.scale(z)), self.word(words).mean(1)
        return torch.relu(self.image(x)) * scale[:, :, None, None] + shift[:, :, None, None]


def network() -> Conditioned:
    torch.manual_seed(0)
    return Conditioned().eval()


def example(batch: int = 2) -> tuple[torch.Tensor, ...]:
    words = torch.randint(11, (batch, 4))
    return torch.randn(batch, 3, 6, 5), torch.randn(batch, 5), words, torch.randn(batch, 2)


@pytest.mark.parametrize("name", slow_but(FORMATS, "cpp-network"))
def test_a_network_of_several_inputs_runs_without_syno(name: str, tmp_path: Path) -> None:
    try:
        chosen = formats.get(name, networks=True)
    except UserError as error:
        pytest.skip(str(error))
    net = network()
    subject = network_subject(net, example())
    run = chosen.check(export_network(net, tmp_path / "net", example(), format=name), subject)
    assert run.passed, run.output
    # The check reads all inputs: another weight of the last of them is noticed.
    if name == "cpp-network":
        with torch.no_grad():
            net.word.weight.mul_(1.5)
        written = export_network(net, tmp_path / "net", example(), format=name)
        assert not chosen.check(written, subject).passed


def test_the_library_takes_the_inputs_in_order(tmp_path: Path) -> None:
    net = network()
    library = load(export_network(net, tmp_path / "net", example(), format="cpp-network").code)
    assert library.input_shapes == ((3, 6, 5), (5,), (4,), (2,))
    for batch in (1, 2, 5):
        given = example(batch)
        with torch.no_grad():
            expected = net(*given)
        found = torch.from_numpy(library(*(x.numpy() for x in given)))
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(UserError, match="the network has 4 inputs\n  got: 1"):
        library(example()[0].numpy())


@needs_cross_tools
@pytest.mark.slow
def test_a_network_of_several_inputs_runs_on_another_processor(tmp_path: Path) -> None:
    subject = network_subject(network(), example())
    written = formats.get("cpp-network", networks=True).write(subject, tmp_path / "net.cpp")
    run = cross.check(written, subject, TARGET)
    assert run.passed, run.output


def test_inputs_that_have_no_one_batch_are_refused(tmp_path: Path) -> None:
    x, *others = example()
    for inputs, what in (
        ((x[:1], *others), "different sizes of the first dimension(?s:.*)got: 1, 2, 2, 2"),
        ((), "got: no tensor"),
        ((x, torch.tensor(1.0)), r"'example_input\[1\]' is a tensor whose first dimension"),
        ((x, 3), r"'example_input\[1\]'"),
        ((x, others[0]), "fails on inputs like the example"),
    ):
        with pytest.raises(UserError, match=what):
            export_network(network(), tmp_path / "net", inputs)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_a_format_of_one_input_says_so() -> None:
    subject = network_subject(network(), example())
    with pytest.raises(
        UserError, match=r"'tvm-network' takes networks of one input\n.*cpp-network"
    ):
        formats.check_inputs(formats._get("tvm-network"), subject)
