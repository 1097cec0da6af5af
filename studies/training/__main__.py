"""Command line of training: python -m studies.training --out DIR [--resume DIR] [--seconds S]."""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from studies.training.run import Plan, Training


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the network of bundled/lacuna-tiny.")
    parser.add_argument("--out", type=Path, default=Path("out/training"), help="where checkpoints and the log go")
    parser.add_argument("--resume", type=Path, help="a folder with a checkpoint to go on from")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop and save after so long")
    parser.add_argument("--rows", type=float, default=1.0, help="share of the rows of a batch, for trials")
    parser.add_argument("--seed", type=int, default=Plan().seed)
    given = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    plan = Plan(seed=given.seed, rows=given.rows)
    training = Training(plan, device, given.out)
    if given.resume is not None:
        training.resume(given.resume)
    training.run(given.seconds, every=500 if device.type == "cuda" else 10)
    training.test(rows=16_384 if device.type == "cuda" else 128)


if __name__ == "__main__":
    main()
