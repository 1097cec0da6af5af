"""Draws training batches of full-information steps on the device: tokens, and the digits to predict.

Records are laid out as the harness shows them: mostly a window of neighboring labels, or any labels in ascending
order, sometimes with a few at the end (as restored ones are) or in any order. Every referenced label is present.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from eirkit.lacuna.models.network import layout as f

IGNORED = -100  # no digit is to be written after this token


@dataclass(frozen=True, slots=True)
class Shape:
    """The largest step that a batch has room for."""

    width: int
    fan_in: int
    operators: tuple[float, ...]  # how often each of them
    records: int = 18  # 16 and up to two restored ones

    @property
    def tokens(self) -> int:
        prompt = self.records * self.width + 1 + self.width + self.fan_in
        return prompt + (self.fan_in + 1) * (1 + f.PLACES * self.width)


@dataclass(frozen=True, slots=True)
class Focus:
    """What every step of a batch has in common; None: drawn."""

    operator: int | None = None
    records: int | None = None
    references: int | None = None
    digits: int | None = None
    width: int | None = None


@dataclass(frozen=True, slots=True)
class Steps:
    """What was drawn, before it becomes tokens. B rows; sizes of the shape."""

    operator: Tensor  # (B,)
    digits: Tensor  # (B,)
    width: Tensor  # (B,)
    labels: Tensor  # (B, records)
    shown: Tensor  # (B, records): how many are there is a prefix
    values: Tensor  # (B, records, width)
    fresh: Tensor  # (B, width)
    has_input: Tensor  # (B,)
    chosen: Tensor  # (B, fan_in): places in `labels`
    referenced: Tensor  # (B, fan_in): which of them count
    answer: Tensor  # (B, width)


@dataclass(frozen=True, slots=True)
class Batch:
    features: Tensor  # (B, T, MOST): FEATURES where there is none
    there: Tensor  # (B, T)
    targets: Tensor  # (B, T): the digit to write after each token


DIGITS = (0.10, 0.10, 0.15, 0.65)


class Drawer:
    """Draws rows of one shape from a generator."""

    def __init__(self, shape: Shape, rows: int, generator: torch.Generator) -> None:
        self.shape, self.rows, self.generator = shape, rows, generator
        self.device = generator.device

    def uniform(self, *more: int) -> Tensor:
        return torch.rand(self.rows, *more, generator=self.generator, device=self.device)

    def below(self, limit: Tensor | int, *more: int) -> Tensor:
        """Return whole numbers from 0 to limit − 1."""
        if isinstance(limit, Tensor):
            limit = limit.view(-1, *[1] * len(more))
        return (self.uniform(*more) * limit).long()

    def among(self, weights: tuple[float, ...]) -> Tensor:
        edges = torch.tensor(weights, device=self.device).cumsum(0)
        return torch.bucketize(self.uniform(), edges[:-1])

    def steps(self, focus: Focus = Focus()) -> Steps:  # noqa: B008 - a frozen fact
        shape = self.shape
        operator = self._fixed(focus.operator, self.among(shape.operators))
        digits = self._fixed(focus.digits, self.among(DIGITS) + 1)
        most = self.below(shape.width) + 1 if shape.width > 2 else torch.full_like(digits, shape.width)
        width = self._fixed(focus.width, most)
        count = self._fixed(focus.references, self._references(operator))
        count = torch.where(operator == f.COPY, count.clamp(max=1), count)
        records = torch.maximum(self._fixed(focus.records, self._records()), count)
        shown = torch.arange(shape.records, device=self.device) < records[:, None]
        labels = self._labels(records)
        chosen = self._choose(shown, count)
        referenced = torch.arange(shape.fan_in, device=self.device) < count[:, None]
        values, fresh = self._values(operator, digits, width)
        order = self._order(shown, chosen, referenced)
        labels, values = labels.gather(1, order), values.gather(1, order[..., None].expand_as(values))
        chosen = order.argsort(1).gather(1, chosen)  # where each chosen record stands now
        has_input = (operator != f.COPY) | (count == 0)
        operands = values.gather(1, chosen[..., None].expand(-1, -1, shape.width)) * referenced[..., None]
        answer = _operate(operator, digits, fresh * has_input[:, None], operands)
        return Steps(operator, digits, width, labels, shown, values, fresh, has_input, chosen, referenced, answer)

    def batch(self, focus: Focus = Focus()) -> Batch:  # noqa: B008 - a frozen fact
        return tokenize(self.steps(focus), self.shape)

    def _fixed(self, value: int | None, drawn: Tensor) -> Tensor:
        return drawn if value is None else torch.full_like(drawn, value)

    def _references(self, operator: Tensor) -> Tensor:
        drawn, most = self.uniform(), self.shape.fan_in
        few = (drawn * 4).long().clamp(max=most) if most > 2 else torch.ones_like(operator)
        count = torch.where(drawn < 0.04, 0, torch.where(self.uniform() < 0.3, few, most))
        return torch.where(operator == f.COPY, (drawn > 0.2).long(), count)

    def _records(self) -> Tensor:
        kind = self.uniform()
        more = self.below(self.shape.records - 16 + 1) + 16
        return torch.where(kind < 0.4, 16, torch.where(kind < 0.55, more, self.below(17)))

    def _labels(self, records: Tensor) -> Tensor:
        """Return distinct ascending labels: neighbors or any up to a step number."""
        size, kind, u = self.shape.records, self.uniform(), self.uniform()
        last = torch.where(kind < 0.6, 64.0, torch.where(kind < 0.85, 16 + 112 * u, 16 * 624.0**u)).long()
        room = (last - records).clamp(min=1)
        spread = self.uniform(size).sort(1).values * torch.where(self.uniform() < 0.5, 0.0, 1.0)[:, None]
        start = self.below(room) * (spread[:, -1] == 0)
        return (spread * room[:, None]).long() + start[:, None] + torch.arange(1, size + 1, device=self.device)

    def _choose(self, shown: Tensor, count: Tensor) -> Tensor:
        """Return the places of distinct records in ascending order, those that count first."""
        picked = (self.uniform(self.shape.records) - 2.0 * ~shown).topk(self.shape.fan_in, 1).indices
        unused = torch.arange(self.shape.fan_in, device=self.device) >= count[:, None]
        ordered = (picked + unused * self.shape.records).sort(1).values
        return ordered % self.shape.records

    def _order(self, shown: Tensor, chosen: Tensor, referenced: Tensor) -> Tensor:
        """Return in which order records stand: half ascending, a quarter with referenced ones last, a quarter any."""
        kind, size = self.uniform(1), self.shape.records
        key = torch.arange(size, device=self.device).expand(self.rows, -1).float()
        late = torch.zeros_like(key).scatter(1, chosen, (referenced & (self.uniform(1) < 0.7)).float())
        key = key + late * size * ((kind > 0.5) & (kind < 0.75))
        key = torch.where(kind > 0.75, self.uniform(size) * size, key)
        return (key + 4.0 * size * ~shown).argsort(1)

    def _values(self, operator: Tensor, digits: Tensor, width: Tensor) -> tuple[Tensor, Tensor]:
        """Return values as tasks have them: any, or large ones (maxima grow), or near to each other."""
        shape, q = self.shape, 10.0**digits
        kind, power = self.uniform(1), torch.exp(self.uniform(1) * 3.7)
        u = self.uniform(shape.records + 1, shape.width).flatten(1)
        skewed = u ** torch.where((operator == f.SUM)[:, None] | (kind < 0.4), 1.0, 1 / power)
        span = (q ** self.uniform())[:, None].ceil()
        near = (self.uniform(1) * (q[:, None] - span + 1)).floor() + (u * span).floor()
        drawn = torch.where(kind > 0.8, near, skewed * q[:, None]).floor().clamp(max=q[:, None] - 1).long()
        drawn = drawn.view(self.rows, -1, shape.width)
        drawn = drawn * (torch.arange(shape.width, device=self.device) < width[:, None, None])
        values = torch.where((operator == f.TOP)[:, None, None], drawn.sort(2, descending=True).values, drawn)
        plain = (self.uniform(shape.width) * q[:, None]).long()
        plain = plain * (torch.arange(shape.width, device=self.device) < width[:, None])
        return values[:, 1:], torch.where(self.uniform(1) < 0.5, plain, drawn[:, 0])


def _operate(operator: Tensor, digits: Tensor, fresh: Tensor, operands: Tensor) -> Tensor:
    """Return the answers; what is absent is zero, which changes none of them."""
    everything = torch.cat((fresh[:, None], operands), 1)
    total = everything.sum(1) % (10**digits)[:, None]
    largest = everything.max(1).values
    top = everything.flatten(1).sort(1, descending=True).values[:, : fresh.shape[1]]
    kinds = operator[:, None]
    return torch.where(kinds == f.SUM, total, torch.where(kinds == f.TOP, top, largest))


def tokenize(steps: Steps, shape: Shape) -> Batch:
    """Return the tokens of the prompt and of the whole reply, and which digit follows each of them."""
    prompt = [_records(steps), _operator(steps), _inputs(steps), _references(steps)]
    picked = steps.chosen.clamp(min=0)
    operands = steps.values.gather(1, picked[..., None].expand(-1, -1, shape.width))
    labels = steps.labels.gather(1, picked)
    falling = steps.digits[:, None] - 1 - torch.arange(f.PLACES, device=labels.device)
    rising = steps.digits[:, None] * 0 + torch.arange(f.PLACES, device=labels.device)
    parts, targets = list(prompt), []
    for i in range(shape.fan_in):
        there = steps.referenced[:, i]
        part, wanted = _line(steps, f.OPERAND, i, _label(labels[:, i, None]), operands[:, i], falling, there)
        parts.append(part), targets.append(wanted)
    places = torch.where((steps.operator == f.SUM)[:, None], rising, falling)
    nothing = torch.full((len(labels), 1, f.PLACES), f.FEATURES, device=labels.device)
    always = torch.ones_like(steps.has_input)
    part, wanted = _line(steps, f.ANSWER, f.FAN_IN, nothing, steps.answer, places, always)
    parts.append(part), targets.append(wanted)
    features = torch.cat([padded for padded, _ in parts], 1)
    there = torch.cat([there for _, there in parts], 1)
    silent = features.shape[1] - sum(wanted.shape[1] for wanted in targets)
    quiet = torch.full((len(labels), silent), IGNORED, device=labels.device)
    return Batch(features, there, torch.cat([quiet, *targets], 1))


Part = tuple[Tensor, Tensor]  # features (B, tokens, MOST), and which tokens are there


def _pad(features: Tensor, there: Tensor) -> Part:
    missing = f.MOST - features.shape[2]
    return torch.nn.functional.pad(features, (0, missing), value=f.FEATURES), there


def _label(labels: Tensor) -> Tensor:
    """Return a label's digits as features, one more dimension."""
    places = torch.arange(f.PLACES, device=labels.device)
    return f.LABEL + 10 * places + labels[..., None] // 10**places % 10


def _value(values: Tensor, digits: Tensor) -> Tensor:
    places = torch.arange(f.PLACES, device=values.device)
    shown = places < digits.view(-1, *[1] * values.dim())
    return torch.where(shown, f.VALUE + 10 * places + values[..., None] // 10**places % 10, f.FEATURES)


def _constant(like: Tensor, value: int) -> Tensor:
    return torch.full_like(like, value)[..., None]


def _records(steps: Steps) -> Part:
    values = steps.values
    index = torch.arange(values.shape[2], device=values.device)
    label = _label(steps.labels)[:, :, None].expand(-1, -1, values.shape[2], -1)
    each = (
        _constant(values, f.RECORD),
        label,
        _value(values, steps.digits),
        (f.INDEX + index).expand_as(values)[..., None],
    )
    there = steps.shown[..., None] & (index < steps.width[:, None, None])
    return _pad(torch.cat(each, 3).flatten(1, 2), there.flatten(1))


def _operator(steps: Steps) -> Part:
    parts = (f.operator(0) + steps.operator, f.DIGITS + steps.digits - 1, f.SLOTS + steps.width - 1)
    return _pad(torch.stack(parts, 1)[:, None], torch.ones_like(steps.has_input)[:, None])


def _inputs(steps: Steps) -> Part:
    fresh = steps.fresh
    index = torch.arange(fresh.shape[1], device=fresh.device)
    each = (_constant(fresh, f.INPUT), _value(fresh, steps.digits), (f.INDEX + index).expand_as(fresh)[..., None])
    return _pad(torch.cat(each, 2), steps.has_input[:, None] & (index < steps.width[:, None]))


def _references(steps: Steps) -> Part:
    labels = steps.labels.gather(1, steps.chosen)
    order = (f.ORDER + torch.arange(labels.shape[1], device=labels.device)).expand_as(labels)
    return _pad(torch.cat((_constant(labels, f.REFERENCE), _label(labels), order[..., None]), 2), steps.referenced)


def _line(
    steps: Steps, role: int, order: int, label: Tensor, values: Tensor, places: Tensor, there: Tensor
) -> tuple[Part, Tensor]:
    """Return the tokens of one written line and the digits that follow them."""
    rows, width = values.shape
    slots = torch.arange(f.PLACES * width, device=values.device).expand(rows, -1)
    index = slots // steps.digits[:, None]
    place = places.gather(1, slots % steps.digits[:, None])
    digit = values.gather(1, index.clamp(max=width - 1)) // 10**place % 10
    used = there[:, None] & (slots < (steps.digits * steps.width)[:, None])
    named = label.expand(-1, slots.shape[1], -1)
    tokens = (
        _constant(slots, f.DIGIT),
        named,
        _constant(slots, f.ORDER + order),
        (f.WRITTEN + digit)[..., None],
        (f.PLACE + place)[..., None],
        (f.INDEX + index.clamp(max=f.WIDTH - 1))[..., None],
    )
    begin = (
        torch.full((rows, 1, 1), role, device=values.device),
        label,
        torch.full((rows, 1, 1), f.ORDER + order, device=values.device),
    )
    first, line = _pad(torch.cat(begin, 2), there[:, None]), _pad(torch.cat(tokens, 2), used)
    part = torch.cat((first[0], line[0]), 1), torch.cat((first[1], line[1]), 1)
    wanted = torch.where(used, digit, IGNORED)
    return part, torch.cat((wanted, torch.full((rows, 1), IGNORED, device=values.device)), 1)
