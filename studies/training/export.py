"""Writes trained weights in the form that ships, eight bits each.

python -m studies.training.export CHECKPOINT FILE
"""

from __future__ import annotations

import sys
from hashlib import sha256
from pathlib import Path

import numpy as np

from eirkit.lacuna.models.network.layout import load_weights, pack, read_tensors, write_tensors
from studies.training.size import Size


def export(checkpoint: Path, file: Path, size: Size | None = None) -> str:
    """Write the weights of a checkpoint; return the SHA-256 of the file."""
    found = read_tensors(checkpoint / "weights.safetensors")
    arrays, about = pack({name: np.array(array) for name, array in found.arrays.items()}, (size or Size()).heads)
    write_tensors(file, arrays, {**about, "batches": found.about["step"], "license": "Apache-2.0"})
    load_weights(file)  # it is refused here or nowhere
    return sha256(file.read_bytes()).hexdigest()


if __name__ == "__main__":
    print(export(Path(sys.argv[1]), Path(sys.argv[2])))
