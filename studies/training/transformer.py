"""The network in torch: a decoder without biases and gains, so that only matrices are stored.

Root-mean-square normalization, causal attention, ReLU. Late in training the matrices are rounded to eight bits in the
forward pass, as they are stored; gradients ignore the rounding.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from eirkit.lacuna.models.network import layout as f
from studies.training.size import Size

STEPS = 127  # of a stored weight, either side of zero


class Block(nn.Module):
    def __init__(self, size: Size) -> None:
        super().__init__()
        self.heads = size.heads
        self.attention = _matrix(3 * size.width, size.width, 0.05)
        self.gather = _matrix(size.width, size.width, 0.05 / (2 * size.layers) ** 0.5)
        self.rise = _matrix(size.hidden, size.width, 0.05)
        self.fall = _matrix(size.width, size.hidden, 0.05 / (2 * size.layers) ** 0.5)

    def forward(self, x: Tensor, mask: Tensor, rounded: bool) -> Tensor:
        rows, tokens, width = x.shape
        q, k, v = (
            functional.linear(normal(x), stored(self.attention, rounded))
            .view(rows, tokens, 3, self.heads, width // self.heads)
            .permute(2, 0, 3, 1, 4)
        )
        seen = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + functional.linear(seen.transpose(1, 2).reshape(rows, tokens, width), stored(self.gather, rounded))
        risen = functional.relu(functional.linear(normal(x), stored(self.rise, rounded)))
        return x + functional.linear(risen, stored(self.fall, rounded))


class Network(nn.Module):
    """Features of tokens come in, scores of the ten digits for the next token go out."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.size = size
        self.embedding = nn.Parameter(torch.randn(f.FEATURES, size.width) * 0.3)
        self.blocks = nn.ModuleList(Block(size) for _ in range(size.layers))
        self.digits = _matrix(10, size.width, 0.02)

    def forward(self, features: Tensor, there: Tensor, rounded: bool) -> Tensor:
        rows, tokens, _ = features.shape
        several = torch.zeros(rows, tokens, f.FEATURES + 1, dtype=torch.bfloat16, device=features.device)
        several.scatter_(2, features, 1.0)
        x = several[..., : f.FEATURES] @ self.embedding.to(several.dtype)
        causal = torch.ones(tokens, tokens, dtype=torch.bool, device=features.device).tril()
        itself = torch.eye(tokens, dtype=torch.bool, device=features.device)
        mask = (causal & there[:, None, None]) | itself  # what is not there sees itself, and nobody sees it
        x = x.float()
        for block in self.blocks:
            x = block(x, mask, rounded)
        return functional.linear(normal(x), stored(self.digits, rounded))


def normal(x: Tensor) -> Tensor:
    return functional.rms_norm(x, x.shape[-1:], eps=1e-6)


def stored(weight: Tensor, rounded: bool) -> Tensor:
    """Return a matrix as it will be stored: a scale and eight bits a weight, by rows."""
    if not rounded:
        return weight
    scale = weight.detach().abs().amax(1, keepdim=True) / STEPS
    return weight + ((weight.detach() / scale).round() * scale - weight.detach())


def _matrix(out: int, width: int, deviation: float) -> nn.Parameter:
    return nn.Parameter(torch.randn(out, width) * deviation)
