"""Search operators for a projection of a small language model, on custom tokens."""

import torch
from torch import nn
from torch.utils.data import TensorDataset

import syno

TOKENS, POSITIONS, WIDTH = 32, 24, 32


class Model(nn.Module):
    """One causal layer: each position reads the mean of those before it."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, WIDTH)
        self.mix = nn.Linear(WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, TOKENS)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Scores [N, T, tokens] of the next token at each position."""
        x = self.embedding(tokens)
        count = torch.arange(1, x.shape[1] + 1).unsqueeze(1)
        return self.head(x + torch.relu(self.mix(x.cumsum(1) / count)))


def main(store: str = "sqlite://") -> syno.StudyResults:
    """Search; Syno sees that the model is causal, so no operator reads later positions."""
    torch.manual_seed(0)
    text = (torch.arange(POSITIONS + 1) * torch.randint(1, 4, (256, 1)) + 5) % TOKENS
    data = TensorDataset(text[:, :-1], text[:, 1:])
    net = syno.substitute(Model(), syno.linear(name="mix"), text[:1, :-1])
    found = syno.search(
        net,
        data,
        metric="loss",  # instead of the accuracy of the next token
        evaluations=3,
        store=store,
        isolation=syno.IsolationOptions(isolate=False),
        space=syno.SpaceOptions(max_nodes=20_000),
    )
    print(found)
    return found


if __name__ == "__main__":
    main()
