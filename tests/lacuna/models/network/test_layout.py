"""From files to networks: the shipped one is what its card says, and what is no network is refused."""

import re
from pathlib import Path

import numpy as np
import pytest

from eirkit.errors import InputFileError
from eirkit.lacuna.agents.bundled import WEIGHTS
from eirkit.lacuna.models.network.layout import load_weights, pack, read_tensors, write_tensors
from tests.lacuna.models.network import small

CARD = Path(__file__).parents[4] / "docs" / "lacuna-tiny.md"
MOST_BYTES = 6_000_000


def test_the_shipped_file_is_the_one_on_the_card():
    weights = load_weights(WEIGHTS)
    assert weights.sha256 in CARD.read_text("utf-8")
    assert f"{weights.parameters:,}" in CARD.read_text("utf-8")
    assert 2_000_000 <= weights.parameters <= 4_000_000
    assert WEIGHTS.stat().st_size <= MOST_BYTES


def test_weights_are_rounded_to_eight_bits_and_embeddings_to_sixteen(tmp_path):
    given = small.parameters(0)
    weights = small.network(tmp_path, given)
    layer, trained = weights.layers[0], given["blocks.0.fall"]
    stored = (layer.fall.weights * layer.fall.units).T
    half_a_step = np.abs(trained).max(1, keepdims=True) / 127 / 2
    rounding = 1e-6  # of the units, which are float32
    assert (np.abs(stored - trained) <= half_a_step * (1 + rounding) + rounding).all()
    assert (
        np.abs(weights.embedding * weights.unit - given["embedding"]).max() < np.abs(given["embedding"]).max() / 32767
    )


def broken(change):
    arrays, about = pack(small.parameters(0), small.HEADS)
    change(arrays, about)
    return arrays, about


FAULTS = {
    "another format": lambda arrays, about: about.update(format="gpt"),
    "no format": lambda arrays, about: about.pop("format"),
    "no heads": lambda arrays, about: about.pop("heads"),
    "heads that do not share out": lambda arrays, about: about.update(heads="3"),
    "heads beyond reason": lambda arrays, about: about.update(heads="9" * 30),
    "layers that are not there": lambda arrays, about: about.update(layers="3"),
    "a matrix missing": lambda arrays, about: arrays.pop("1.gather"),
    "units missing": lambda arrays, about: arrays.pop("1.gather.units"),
    "units that are not finite": lambda arrays, about: arrays.update({"digits.units": np.full(10, np.nan, np.float32)}),
    "a matrix of another shape": lambda arrays, about: arrays.update({"0.rise": np.zeros((4, 3), np.int8)}),
    "a matrix of another type": lambda arrays, about: arrays.update({"digits": np.zeros((10, 16), np.float32)}),
    "a matrix that is a row": lambda arrays, about: arrays.update({"0.rise": np.zeros(4, np.int8)}),
    "embeddings of other tokens": lambda arrays, about: arrays.update({"embedding": np.zeros((9, 16), np.int16)}),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_file_of_another_network_is_refused_in_one_line(tmp_path, fault):
    path = tmp_path / "w.safetensors"
    write_tensors(path, *broken(FAULTS[fault]))
    with pytest.raises(InputFileError) as caught:
        load_weights(path)
    assert re.fullmatch(
        r".*w\.safetensors does not hold weights of this network \(.+\); give a file .*", str(caught.value)
    )


def test_the_file_says_what_it_is():
    about = read_tensors(WEIGHTS).about
    assert about["format"] == "eirkit-lacuna-tiny/1"
    assert about["license"] == "Apache-2.0"
