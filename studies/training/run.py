"""The training loop, with periodic evaluation and checkpoints.

Batches are derived from the seed and the number of the batch, so that a resumed run equals an uninterrupted one up to
the rounding of the device.
"""

from __future__ import annotations

import csv
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from studies.training import checkpoint
from studies.training.curriculum import EXAMS, PHASES, Phase
from studies.training.examples import IGNORED, Batch, Drawer
from studies.training.size import Size
from studies.training.transformer import Network


@dataclass(frozen=True, slots=True)
class Plan:
    """How long and how fast to learn."""

    phases: tuple[Phase, ...] = PHASES
    decay: float = 0.05
    seed: int = 1
    size: Size = Size()  # noqa: RUF009 - a frozen fact
    rows: float = 1.0  # share of the rows of each kind, for trials on small machines

    @property
    def batches(self) -> int:
        return self.phases[-1].end

    def phase_at(self, batch: int) -> Phase:
        return next((phase for phase in self.phases if batch < phase.end), self.phases[-1])


class Training:
    def __init__(self, plan: Plan, device: torch.device, out: Path) -> None:
        self.plan, self.device, self.out = plan, device, out
        torch.manual_seed(plan.seed)
        torch.set_float32_matmul_precision("high")
        self.network = Network(plan.size).to(device)
        if device.type == "cuda":
            for block in self.network.blocks:
                block.compile()
        self.optimizer = torch.optim.AdamW(
            self.network.parameters(), lr=0.0, betas=(0.9, 0.98), weight_decay=plan.decay, fused=True
        )
        self.done = 0
        self._generator = torch.Generator(device=device)
        self._kinds = torch.Generator()
        self._began = time.monotonic()
        out.mkdir(parents=True, exist_ok=True)

    def resume(self, folder: Path) -> None:
        self.done = checkpoint.load(folder, self.network, self.optimizer)

    def run(self, seconds: float, every: int = 500) -> None:
        """Learn until the plan or the time is over, then save and test."""
        losses = torch.zeros((), device=self.device)
        while self.done < self.plan.batches and time.monotonic() - self._began < seconds:
            losses += self.learn()
            self.done += 1
            if self.done % every == 0:
                self.log(loss=losses.item() / every)
                losses.zero_()
            if self.done % (8 * every) == 0:
                self.test(rows=2048)
                checkpoint.save(self.out, self.network, self.optimizer, self.done)
        checkpoint.save(self.out, self.network, self.optimizer, self.done)

    def learn(self) -> torch.Tensor:
        """Take one step; return the loss."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.plan.phase_at(self.done).rate_at(self.done)
        batch = self.draw()
        with torch.autocast(self.device.type, torch.bfloat16):
            scores = self.network(batch.features, batch.there, True)
        loss = functional.cross_entropy(scores.flatten(0, 1).float(), batch.targets.flatten(), ignore_index=IGNORED)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.optimizer.step()
        return loss.detach()

    def draw(self) -> Batch:
        self._kinds.manual_seed(self.plan.seed * 1_000_003 + self.done)
        self._generator.manual_seed(self.plan.seed * 1_000_003 + self.done)
        drawn, kinds = torch.rand((), generator=self._kinds).item(), list(self.plan.phase_at(self.done).kinds)
        while len(kinds) > 1 and drawn >= kinds[0].share:
            drawn -= kinds.pop(0).share
        rows = max(1, int(kinds[0].rows * self.plan.rows))
        return Drawer(kinds[0].shape, rows, self._generator).batch()

    def test(self, rows: int) -> None:
        """Write down how many replies are right in every digit, for steps with many records."""
        self._generator.manual_seed(self.done)
        for name, (shape, focus) in EXAMS.items():
            batch = Drawer(shape, rows, self._generator).batch(focus)
            self.log(exam=name, right=whole_replies(self.network, batch), loss=None)

    def log(self, **fields: Any) -> None:
        row = {
            "batch": self.done,
            "seconds": round(time.monotonic() - self._began, 1),
            "exam": "",
            "right": "",
        } | fields
        row["rate"] = f"{self.plan.phase_at(self.done).rate_at(self.done):.2e}"
        print(" ".join(f"{key}={value}" for key, value in row.items() if value not in ("", None)), flush=True)
        path = self.out / "log.csv"
        with path.open("a", newline="") as stream:
            writer = csv.writer(stream)
            if stream.tell() == 0:
                writer.writerow(["batch", "seconds", "exam", "right", "loss", "rate"])
            writer.writerow([row["batch"], row["seconds"], row["exam"], row["right"], row.get("loss"), row["rate"]])


def whole_replies(network: Network, batch: Batch) -> float:
    """Return the share of replies of which every digit is right, given the right ones before it."""
    with (
        torch.no_grad(),
        torch.autocast(batch.features.device.type, torch.bfloat16),
        torch.compiler.set_stance("force_eager"),
    ):
        wrong = network(batch.features, batch.there, True).argmax(2) != batch.targets
    return round(1 - (wrong & (batch.targets != IGNORED)).any(1).float().mean().item(), 5)
