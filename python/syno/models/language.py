"""Language models of transformers, from token ids to scores."""

from __future__ import annotations

import torch
from torch import nn

from syno.extras import load_extra


def gpt2(*, vocabulary: int, context: int, layers: int, heads: int, width: int) -> nn.Module:
    """GPT-2 (Radford et al. 2019): token ids [N, T] -> scores [N, T, vocabulary], T <= context.

    Its attention is causal. Names of layers and weights are those of transformers'
    GPT2LMHeadModel, so that a state dict of that loads.
    """
    transformers = load_extra("transformers", "a GPT-2 model", "GPT2Config", "GPT2LMHeadModel")
    config = transformers.GPT2Config(
        vocab_size=vocabulary,
        n_positions=context,
        n_layer=layers,
        n_head=heads,
        n_embd=width,
        bos_token_id=vocabulary - 1,
        eos_token_id=vocabulary - 1,
        use_cache=False,
    )
    net = transformers.GPT2LMHeadModel(config)
    net.register_forward_hook(_scores)
    return net


def _scores(net: nn.Module, inputs: tuple[torch.Tensor, ...], output: object) -> torch.Tensor:
    """The scores alone, without what transformers returns beside them."""
    return output.logits  # type: ignore[attr-defined]
