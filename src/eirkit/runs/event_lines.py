"""The events of a run as lines of a file: a trace comes in, bytes go out.

Decisions, and exchanges with agents that cost nothing, are most of what a big sweep writes, so these two are spelt out
here. `tests/lacuna/test_event_lines.py` holds them to the bytes that `encode` makes of `event_records`.
"""

from __future__ import annotations

from functools import lru_cache
from json import JSONEncoder
from json.encoder import encode_basestring as quote

from eirkit.agents.exchange import prompt_hash, text_hash
from eirkit.agents.model import Reply
from eirkit.agents.session import Decision
from eirkit.agents.telemetry import SCHEMA, Entry, Exchange, Trace, event_records
from eirkit.records import encode

_FREE = Reply("").usage  # what agents report that cost nothing; the default of every reply
_TEXT = JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)  # as records are written
_NOTHING_SPENT = (
    '"latency_seconds":0.0,"input_tokens":0,"output_tokens":0,"cached_tokens":0,"cost_usd":0.0,"from_cache":false'
)


def event_lines(trace: Trace, run: str, *, texts: bool = True) -> bytes:
    """Return one line for each entry of a trace, as `encode` writes the records of `event_records`."""
    head = encode(SCHEMA, {"run": run})[:-2].decode() + ","
    try:
        return "".join([head + _line(entry, run, texts) for entry in trace.log]).encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return b"".join([encode(SCHEMA, record) for record in event_records(trace, run, texts=texts)])


def _line(entry: Entry, run: str, texts: bool) -> str:
    """Return the line of an entry behind its head."""
    if isinstance(entry, Decision) and not entry.restored:
        return _decision(entry)
    if isinstance(entry, Exchange) and _is_plain(entry.reply):
        return _exchange(entry, texts)
    (record,) = event_records(Trace([entry]), run, texts=texts)
    del record["run"]
    return _TEXT.encode(record)[1:] + "\n"


def _is_plain(reply: Reply) -> bool:
    return reply.usage is _FREE and reply.latency_seconds == 0 and not reply.calls


def _decision(entry: Decision) -> str:
    missing = _integers(entry.missing)
    unavailable = missing if entry.unavailable is entry.missing else _integers(entry.unavailable)
    submitted = "null" if entry.submitted is None else _integers(entry.submitted)
    fault = "null" if entry.fault is None else quote(entry.fault)
    return (
        f'"type":"decision","t":{entry.t},"required":{_integers(entry.required)},"retained":{_integers(entry.retained)}'
        f',"missing":{missing},"unavailable":{unavailable},"restored":[],"submitted":{submitted},"fault":{fault}'
        f',"fetched":{_integers(entry.fetched)},"reads":{entry.reads},"recomputations":{entry.recomputations}'
        f',"recovery_depth":{entry.recovery_depth},"actions":{entry.actions},"answers":{entry.answers}}}\n'
    )


@lru_cache(maxsize=1 << 14)  # the same windows and references come back in every run of a cell
def _integers(values: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, values))}]"


def _exchange(entry: Exchange, texts: bool) -> str:
    asked, said = entry.request.messages, entry.reply.text
    hashes = f'"prompt_sha256":"{prompt_hash(entry.request)}","reply_sha256":"{text_hash(said)}"'
    shown = ""
    if texts:
        state = "\n".join([message.content for message in asked if message.role != "system"])
        shown = f',"prompt":{quote(state)},"reply":{quote(said)}'
    return f'"type":"exchange","t":{entry.t},{hashes},{_NOTHING_SPENT}{shown}}}\n'
