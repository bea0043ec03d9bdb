"""Let a custom function train and evaluate each network.

Any training fits here: other losses, several inputs, reinforcement learning, other libraries.
"""

import torch
from torch import nn

import syno


def evaluate(net: nn.Module) -> float:
    """Train a network to remove noise, and return how well it does (dB, greater is better)."""
    random = torch.Generator().manual_seed(0)
    clean = torch.randn(64, 4, 8, 8, generator=random).cumsum(2).cumsum(3) / 8
    noisy = clean + 0.3 * torch.randn(clean.shape, generator=random)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    for _ in range(30):
        optimizer.zero_grad()
        (net(noisy[:48]) - clean[:48]).square().mean().backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        error = (net(noisy[48:]) - clean[48:]).square().mean()
    return float(-10 * torch.log10(error))


def main(store: str = "sqlite://") -> syno.StudyResults:
    """Search with the function."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(4, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 4, 3, padding=1))
    found = syno.search(
        net,
        evaluate=evaluate,
        metric="signal to noise (dB)",
        example_input=torch.zeros(1, 4, 8, 8),
        evaluations=3,
        store=store,
        isolation=syno.IsolationOptions(isolate=False),
        space=syno.SpaceOptions(max_nodes=20_000),
    )
    print(found)
    return found


if __name__ == "__main__":
    main()
