"""Saves and loads training checkpoints: weights, the two moments of the optimizer, and the step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from eirkit.lacuna.models.network.layout import read_tensors, write_tensors
from studies.training.transformer import Network

FILES = {"weights": None, "first": "exp_avg", "second": "exp_avg_sq"}


def save(folder: Path, network: Network, optimizer: torch.optim.Optimizer, step: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, moment in FILES.items():
        arrays = {
            key: (weight if moment is None else optimizer.state[weight][moment]).detach().float().cpu().numpy()
            for key, weight in network.named_parameters()
        }
        write_tensors(folder / f"{name}.safetensors", arrays, {"step": str(step)})


def load(folder: Path, network: Network, optimizer: torch.optim.Optimizer | None = None) -> int:
    """Put a checkpoint into a network and its optimizer; return the step it was written after."""
    step = 0
    for name, moment in FILES.items():
        if moment is not None and optimizer is None:
            continue
        found = read_tensors(folder / f"{name}.safetensors")
        step = int(found.about["step"])
        for key, weight in network.named_parameters():
            array = torch.from_numpy(np.array(found.arrays[key])).to(weight.device)
            if moment is None or optimizer is None:
                weight.data.copy_(array)
            else:
                state = optimizer.state[weight]
                state["step"] = torch.tensor(float(step), device=weight.device)
                state[moment] = array
    return step
