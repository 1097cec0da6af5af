"""Small networks with drawn weights, for tests of the arithmetic."""

from pathlib import Path

import numpy as np

from eirkit.lacuna.models.network.layout import FEATURES, Weights, load_weights, pack, write_tensors

WIDTH, HEADS, HIDDEN, LAYERS = 16, 2, 24, 2


def parameters(seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)

    def drawn(*shape: int) -> np.ndarray:
        return rng.normal(size=shape)

    found = {"embedding": drawn(FEATURES, WIDTH), "digits": drawn(10, WIDTH)}
    for number in range(LAYERS):
        found |= {
            f"blocks.{number}.attention": drawn(3 * WIDTH, WIDTH),
            f"blocks.{number}.gather": drawn(WIDTH, WIDTH),
            f"blocks.{number}.rise": drawn(HIDDEN, WIDTH),
            f"blocks.{number}.fall": drawn(WIDTH, HIDDEN),
        }
    return found


def network(folder: Path, given: dict[str, np.ndarray]) -> Weights:
    arrays, about = pack(given, HEADS)
    write_tensors(folder / "small.safetensors", arrays, about)
    return load_weights(folder / "small.safetensors")
