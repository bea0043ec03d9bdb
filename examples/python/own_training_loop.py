"""Drive a study by hand: `ask` gives operators, `tell` stores what became of them."""

import torch
from torch import nn

import syno
from syno.store import Store
from syno.study import SamplerSpace, Study, StudySettings


def main(path: str = "sqlite://") -> syno.StudyResults:
    """Train networks in a custom loop."""
    torch.manual_seed(0)
    x = torch.randn(256, 4, 8, 8)
    y = (x.mean((1, 2, 3)) > 0).long()
    net = nn.Sequential(nn.Conv2d(4, 8, 3, padding=1), nn.Flatten(), nn.Linear(512, 2))
    net = syno.substitute(net, syno.conv2d(kernel=3), x[:1])
    specification = syno.Specification(
        "[N, C_in: unordered, H, H]",
        "[N, C_out: unordered, H, H]",
        ["N: 0", "C_in: 2", "C_out: 2", "H: 0"],
        ["k=3: 2"],
        passed_through=[(0, 0)],
        max_depth=8,
    )
    sampler = syno.Sampler.from_specification(specification, net=net, max_nodes=20_000)
    with Store.open(path) as store:
        settings = StudySettings(evaluations=3, method="uniform")
        study = Study.create(store, "by-hand", settings, SamplerSpace(sampler))
        for proposal in study.ask(4):  # the baseline first
            trained = sampler_network(net, proposal.operator)
            accuracy = train(trained, x, y)
            study.tell(proposal.id, syno.Outcome("ok", accuracy=accuracy))
        study.close()
        found = syno.load_study(store)
    print(found)
    return found


def sampler_network(net: nn.Module, operator: syno.Operator | None) -> nn.Module:
    """A copy of the network, with an operator in its slots unless it is the baseline."""
    import copy

    made = copy.deepcopy(net)
    if operator is not None:
        syno.replace(made, operator)
    return made


def train(net: nn.Module, x: torch.Tensor, y: torch.Tensor) -> float:
    """Train for a few steps, and return the accuracy on what was not trained on."""
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    for _ in range(20):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x[:192]), y[:192]).backward()
        optimizer.step()
    return float((net(x[192:]).argmax(1) == y[192:]).double().mean())


if __name__ == "__main__":
    main()
