"""Runs for tests of the database, without anything that runs agents."""

from __future__ import annotations

import random
from decimal import Decimal

from msgspec.structs import replace

from eirkit.records.database import FinishedRun, PaidAttempt, PaidCall
from eirkit.records.events import Decision, ModelExchange, Verdicts, WrongStep, encode_events
from eirkit.records.runs import CAUSES, Failure, RunRecord, RunScore, RunUsage
from eirkit.records.settings import Access, ModelSettings, Setting, Task

TASK = Task("store-recall", 12, 6, 6, 2, 1, 4, 2, "uniform", 0)
SETTING = Setting(TASK, "openai/any", ModelSettings(None, 0.0, 20, 0, {}), Access(h=3))
OTHER = replace(SETTING, access=Access(h=2))


def finished(seed: int, setting: Setting = SETTING, *, text: str = "ANSWER 1 7", seconds: float = 0.0) -> FinishedRun:
    """Return a run that took so long; everything else of it depends on its setting and seed."""
    score = RunScore(
        steps=12,
        correct=seed % 13,
        consuming=8,
        consuming_correct=4,
        answered=12,
        self_consistent=12,
        missed=3,
        consuming_all=8,
        missed_references=3,
        final_correct=bool(seed % 2),
        first_miss=4,
        first_error=None,
        errors=dict.fromkeys(CAUSES, 0) | {"computation": 12 - seed % 13},
    )
    record = RunRecord(
        run=f"{setting.id()}-{seed}",
        cell=setting.id(),
        seed=seed,
        fingerprint=f"{seed:064x}",
        rules_sha256="0" * 64,
        ending="finished",
        usage=RunUsage(calls=12, cost_usd=1.32, latency_seconds=seconds),
        score=score,
        setting=setting,
    )
    events = [
        Decision(1, submitted=(seed,), missing=(2,)),
        ModelExchange(1, "0" * 64, latency_seconds=seconds, prompt="ä\n\u2028", reply=text),
        Verdicts((WrongStep(2, "computation", None),)),
    ]
    return FinishedRun(record, encode_events(events))


def long_text(seed: int, length: int) -> str:
    """Return a text that cannot be compressed much."""
    return random.Random(seed).randbytes(length // 2).hex()


def failed(seed: int, message: str = "no reply") -> Failure:
    return Failure(
        run=f"{SETTING.id()}-{seed}",
        cell=SETTING.id(),
        seed=seed,
        workload="store-recall",
        model="openai/any",
        condition="controlled",
        kind="timeout",
        message=message,
        steps=3,
        usage=RunUsage(calls=3),
    )


def reserved(number: int, attempt: int | None = 1) -> PaidCall:
    return PaidCall(
        id=number, attempt=attempt, payer="agent", model="openai/any", reserved_usd=Decimal("0.5"), chars=99
    )


def ended(call: PaidCall, usd: str = "0.11") -> PaidCall:
    return replace(
        call,
        billed_usd=Decimal(usd),
        unconfirmed_usd=Decimal(0),
        input_tokens=100,
        output_tokens=10,
        cached_tokens=0,
    )


def attempt(number: int, seed: int = 0, part: str = "") -> PaidAttempt:
    return PaidAttempt(number, f"{SETTING.id()}-{seed}", part)
