"""Language models of transformers, from token ids to scores."""

from __future__ import annotations

import torch
from torch import nn

from syno._util.errors import UserError
from syno.network.models.extras import load_extra


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
    net.register_forward_pre_hook(_check_length)
    net.register_forward_hook(_scores)
    return net


def _check_length(net: nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
    context: int = net.config.n_positions  # type: ignore[union-attr,assignment]  # of transformers
    if inputs and (inputs[0].dim() != 2 or inputs[0].shape[1] > context):
        raise UserError(
            "GPT-2 cannot read token ids of this shape\n"
            f"  expected: [N, T] with T up to context={context}      got: {list(inputs[0].shape)}"
        )


def _scores(net: nn.Module, inputs: tuple[torch.Tensor, ...], output: object) -> torch.Tensor:
    """The scores alone, without what transformers returns beside them."""
    return output.logits  # type: ignore[attr-defined]
