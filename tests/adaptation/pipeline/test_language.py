"""An adaptation of a language model: causal projections, perplexity, and their latency."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

import syno
from syno import Operator
from syno.adaptation.pipeline.kinds import kinds_of
from syno.adaptation.pipeline.pool import Candidate, candidates
from syno.data import load_text
from syno.network import models
from syno.study.evaluate.network import Network
from syno.train import fidelity, train

from .conftest import options

pytest.importorskip("transformers")

SIZES = {"context": 64, "layers": 1, "heads": 2, "width": 64}


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Words of a small vocabulary, each of which says what the next one is."""
    random = np.random.default_rng(0)
    words = ["alpha", "beta", "gamma", "delta", "omega"]
    place, found = 0, []
    for _ in range(20_000):
        found.append(words[place])
        place = (2 * place + int(random.random() < 0.3)) % len(words)
    path = tmp_path_factory.mktemp("text") / "words.txt"
    lines = [" ".join(found[at : at + 40]) for at in range(0, len(found), 40)]
    path.write_text("\n".join(lines))
    return path


@pytest.fixture(scope="module")
def weights(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = load_text(str(text))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = models.build("gpt2-small", vocabulary=data.vocabulary, **SIZES)
    length = fidelity("fast/text").changed(context=64, steps=120, batch=16, held_tokens=2048)
    outcome = train(net, data, length, 0)
    assert outcome.loss is not None and outcome.loss < 0.6 * math.log(data.vocabulary)
    path = tmp_path_factory.mktemp("weights") / "best.pt"
    torch.save(net.state_dict(), path)
    return path


@pytest.mark.slow
def test_projections_are_adapted_and_stay_causal(text, weights, tmp_path) -> None:
    told = []
    found = syno.adapt(
        "gpt2-small",
        str(text),
        model_options={"weights": str(weights), **SIZES},
        slots="0.9x",
        fidelity={"steps": 20, "context": 64, "batch": 16, "held_tokens": 2048},
        options=options(zoo=True, samples=0, mutations=6, keep=4),
        store=str(tmp_path / "runs.db"),
        progress=lambda *each: told.append(each),
        max_drop=20.0,
    )
    assert found.objective.is_entropy
    (network,) = found.networks
    assert network.name == "slots 0.9x"
    (row,) = network.slots
    assert row.slot == "transformer.h.0.attn.c_attn"
    assert row.operator != "original"
    assert row.after_ms <= 0.9 * row.before_ms
    assert network.row.macs < found.original.macs
    # Perplexity within a fifth of the original's, and far from that of a guess.
    assert network.row.value < found.original.value + math.log(1.2)
    assert found.best is network
    assert "nats" in "\n".join(found.table().lines())
    # What a network gives for a position does not depend on later tokens.
    tokens = torch.randint(found.networks[0].net.config.vocab_size, (2, 64))
    changed = tokens.clone()
    changed[:, 10:] = (changed[:, 10:] + 1) % 50
    with torch.no_grad():
        one, other = network.net(tokens), network.net(changed)
    torch.testing.assert_close(one[:, :10], other[:, :10], rtol=1e-4, atol=1e-5)
    assert not torch.allclose(one[:, 10:], other[:, 10:], atol=1e-3)


def test_an_operator_that_reads_later_positions_is_no_candidate() -> None:
    net = models.build("gpt2-small", vocabulary=64, **SIZES)
    example = torch.zeros(1, 64, dtype=torch.long)
    network = Network(models.slots(net, example=example), (64,), 0, vocabulary=64)
    (kind,) = kinds_of(network.template, example, causal=network.causal).values()
    centered = Operator.parse(
        "y[n,t,o] = sum(i:H_in, a:k) x[n,t+a-k/2,i] * w0[o,i,a]",
        syno.Specification(
            "[N, seq_len, H_in]",
            "[N, seq_len, H_out]",
            ["N: 1", "seq_len: 2", "H_in: 2", "H_out: 2"],
            ["k=3: 2"],
        ),
    )
    with pytest.raises(syno.UserError, match="not causal along seq_len"):
        kind.binding(Candidate("centered", "given", centered.text, {"k": 3}))
    free = kinds_of(network.template, example, causal=False)
    (other,) = free.values()
    other.binding(Candidate("centered", "given", centered.text, {"k": 3}))
    pool = candidates(network, zoo_too=True, samples=0, seed=0)
    causal = []
    for each in pool:
        try:
            kind.binding(each)
        except syno.UserError:
            continue
        causal.append(each.name)
    assert {"low-rank[R=4]", "low-rank[R=8]", "low-rank[R=16]", "low-rank[R=32]"} <= set(causal)
