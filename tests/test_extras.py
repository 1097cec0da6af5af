"""The command that installs an extra is the one that works where the package runs from."""

import json
from importlib.metadata import Distribution, distribution

import pytest

from eirkit.errors import checkout_of, install_command


@pytest.fixture
def installed(tmp_path):
    """Return a way to make a distribution with or without a note on where it came from."""

    def make(note):
        folder = tmp_path / "eirkit-0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: eirkit\nVersion: 0\n", "utf-8")
        if note is not None:
            (folder / "direct_url.json").write_text(json.dumps(note), "utf-8")
        return Distribution.at(folder)

    return make


@pytest.mark.parametrize(
    ("note", "editable"),
    [
        (None, None),  # from an index
        ({"url": "file:///x/eirkit-0-py3-none-any.whl", "archive_info": {}}, None),
        ({"url": "file:///x/gone", "dir_info": {}}, None),  # nobody can install there
        ({"url": "file://{}", "dir_info": {}}, False),
        ({"url": "file://{}", "dir_info": {"editable": True}}, True),
    ],
)
def test_a_folder_is_told_from_an_index_and_a_wheel(installed, note, editable, tmp_path):
    checkout = tmp_path / "a checkout"
    checkout.mkdir()
    (checkout / "pyproject.toml").touch()
    if note is not None:
        note = {**note, "url": note["url"].format(str(checkout).replace(" ", "%20"))}
    assert checkout_of(installed(note)) == (None if editable is None else (str(checkout), editable))


def test_the_command_fits_how_this_package_is_installed():
    here = checkout_of(distribution("eirkit"))
    told = "pip install 'eirkit[plot]'"
    if here is not None:
        told = f"pip install {'-e ' if here[1] else ''}'.[plot]' in the checkout {here[0]}"
    assert install_command("plot") == told
