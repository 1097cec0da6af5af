"""The command that installs an extra is the one that works where the package runs from."""

import json
from importlib.metadata import Distribution, distribution

import pytest

from eirkit.errors import install_command, is_of_folder


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
    ("note", "of_folder"),
    [
        (None, False),  # from an index
        ({"url": "file:///x/eirkit-0-py3-none-any.whl", "archive_info": {}}, False),
        ({"url": "file:///x/eirkit", "dir_info": {}}, True),
        ({"url": "file:///x/eirkit", "dir_info": {"editable": True}}, True),
    ],
)
def test_a_folder_is_told_from_an_index_and_a_wheel(installed, note, of_folder):
    assert is_of_folder(installed(note)) == of_folder


def test_the_command_fits_how_this_package_is_installed():
    here = is_of_folder(distribution("eirkit"))
    assert install_command("plot").startswith("pip install -e '.[plot]'" if here else "pip install 'eirkit[plot]'")
