"""Products and attention of the network library, of sizes that are cut into several blocks."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from syno.codegen.native import QUICK_FLAGS, find_compiler
from syno.inference.library.load import NetworkLibrary
from syno.inference.library.lower import lower
from syno.inference.library.source import emit
from syno.inference.prepare import prepare_sample

pytestmark = pytest.mark.usefixtures("one_torch_thread")

SHAPE = (4, 210, 72)

NOISE = torch.randn(4, 100, 210, generator=torch.Generator().manual_seed(2))
# With rows of nothing, and rows that begin after the first block of keys.
BANDS = torch.ones(100, 210).tril(110).bool()
BANDS[:, :105], BANDS[7:30] = False, False


def attend(x, rows, keys, width=72, out=72, **options):
    """Rows and keys are different parts of the input."""
    q, k, v = x[:, :, :rows, :width], x[:, :, 210 - keys :, :width] * 2, x[:, :, :keys, 72 - out :]
    return F.scaled_dot_product_attention(q, k, v, **options)


def grouped(x, heads):
    """The heads of the queries share fewer ones of keys and values."""
    return F.scaled_dot_product_attention(
        x, x[:, :heads, 20:180], x[:, :heads, :160], enable_gqa=True
    )


def few_rows(x):
    """Rows that few lanes of a vector would hold, and keys in two blocks."""
    x = x.reshape(-1, 4, 420, 36)
    return F.scaled_dot_product_attention(x[:, :, :3], x * 2, x)


def one_row_of_groups(x):
    """The heads of single rows share keys and values."""
    return F.scaled_dot_product_attention(x[:, :, 9:10], x[:, :2], x[:, 2:], enable_gqa=True)


def windows(x):
    """Parts of an image side by side in the batch, with a bias for each head."""
    q = x.reshape(-1, 35, 3, 24).transpose(1, 2)
    y = F.scaled_dot_product_attention(q, q * 2, q * 0.5, NOISE[:3, :35, :35][None])
    return y.transpose(1, 2).reshape(-1, 840, 72)


def biased(x):
    """The bias is that of heads, which come after windows."""
    q = x.unflatten(2, (6, 35)).permute(0, 2, 1, 3, 4)
    return F.scaled_dot_product_attention(q, q, q, NOISE[None, None, :, :35, :35])


def split(x):
    """Queries, keys and values side by side in rows, and heads side by side in the result."""
    q, k, v = x[:, 0].reshape(-1, 210, 3, 3, 8).permute(2, 0, 3, 1, 4).unbind(0)
    return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(-1, 210, 24)


CASES = {
    "rows and keys in blocks": lambda x: attend(x, 197, 197),
    "one row": lambda x: attend(x, 1, 210),
    "two rows": lambda x: attend(x, 2, 209, 72, 65),
    "few rows": few_rows,
    "few causal rows": lambda x: attend(x, 3, 50, 9, 8, is_causal=True),
    "few masked rows": lambda x: attend(x, 3, 210, attn_mask=BANDS[6:9]),
    "one row of groups": one_row_of_groups,
    "few numbers": lambda x: attend(x, 33, 101, 5, 3),
    "other values": lambda x: attend(x, 65, 90, 64, 19),
    "causal": lambda x: attend(x, 197, 197, is_causal=True),
    "causal, more keys": lambda x: attend(x, 70, 199, 9, 8, is_causal=True),
    "masked rows": lambda x: attend(x, 100, 210, 16, 16, attn_mask=BANDS),
    "masked keys": lambda x: attend(x, 100, 130, 16, 16, attn_mask=NOISE[0, :1, :130]),
    "groups": lambda x: grouped(x, 2),
    "heads side by side": split,
    "windows": windows,
    "windows with heads": biased,
    "product": lambda x: x[:, :, :75] @ x.mT,
    "product, many terms": lambda x: x.mT @ x[..., :50],
    "product, of columns": lambda x: x.mT[..., :72] @ x.mT[..., 100:],
    "product, one row": lambda x: x[:, :, :1] @ x.mT,
    "product, shared": lambda x: x @ x[:, 1:2, :72, :20],
}


class Products(nn.Module):
    """All of them side by side."""

    def forward(self, x):
        """Their results in one row."""
        return torch.cat([case(x).flatten(1) for case in CASES.values()], 1)


@torch.no_grad()
def test_products_and_attention_in_blocks_compute_what_torch_does(tmp_path):
    net = Products().eval()
    source = emit(lower(prepare_sample(net, torch.zeros(1, *SHAPE)).graph), "syno_products")
    weights = tmp_path / "products.bin"
    weights.write_bytes(source.weights)
    library = find_compiler().library(source.code, QUICK_FLAGS)
    network = NetworkLibrary(library, "syno_products", weights)
    x = torch.randn(2, *SHAPE, generator=torch.Generator().manual_seed(1))
    y = torch.from_numpy(network(x.numpy(), threads=1))
    begin = 0
    for name, case in CASES.items():
        expected = case(x).flatten(1)
        found = y[:, begin : begin + expected.shape[1]]
        begin += expected.shape[1]
        worst = (found - expected).abs().max() / expected.abs().max()
        assert worst <= 1e-5, f"{name}: {worst:.1e}"
    assert begin == y.shape[1]
    for threads in (2, 3, 5):
        assert torch.equal(torch.from_numpy(network(x[:1].numpy(), threads=threads)), y[:1])
