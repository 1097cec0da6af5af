"""The pages that are shipped were built from the sources beside them."""

from __future__ import annotations

import sys
from importlib.resources import files
from pathlib import Path
from typing import Literal

import msgspec
import pytest
from msgspec import UNSET, Struct, UnsetType, inspect

from eirkit.report.viewer.excerpts import Text

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import web_assets  # noqa: E402 - tools, no parts of the package
import web_types  # noqa: E402

pytestmark = pytest.mark.check


def test_the_pages_are_those_of_the_sources(capsys):
    assert web_assets.main([]) == 0, "run `make web`"


def test_the_types_of_the_page_are_those_of_the_documents(capsys):
    assert web_types.main([]) == 0, "run `make web`"


class _Leaf(Struct, frozen=True, array_like=True):
    name: str
    share: float | None


class _Tree(Struct, frozen=True, tag="tree", tag_field="kind", omit_defaults=True):
    """A struct with every form of field."""

    leaves: tuple[_Leaf, ...]
    pair: tuple[int, str]
    counts: dict[Literal["a", "b"], int]
    text: Text | None
    unknown: int | UnsetType = UNSET
    usual: bool = False


def test_types_are_written_as_the_documents_are_encoded():
    types = web_types.Types()
    assert types.name(inspect.type_info(_Tree)) == "_Tree"
    lines = [line.strip() for line in types.written["_Tree"].splitlines()]
    assert lines == [
        "// A struct with every form of field.", "export interface _Tree {", 'kind: "tree";', "leaves: _Leaf[];",
        "pair: [number, string];", 'counts: Record<"a" | "b", number>;', "text: Text | null;", "unknown?: number;",
        "usual?: boolean;", "}",
    ]  # fmt: skip
    assert types.written["_Leaf"].endswith("export type _Leaf = [name: string, share: number | null];\n")
    made = _Tree((_Leaf("x", None),), (1, "b"), {"a": 1, "b": 2}, None)
    assert msgspec.json.decode(msgspec.json.encode(made)) == {
        "kind": "tree", "leaves": [["x", None]], "pair": [1, "b"], "counts": {"a": 1, "b": 2}, "text": None,
    }  # fmt: skip


def test_a_changed_source_is_noticed(tmp_path):
    web = tmp_path / "web"
    (web / "src").mkdir(parents=True)
    for name in web_assets.SETTINGS:
        (web / name).write_text("{}")
    (web / "src" / "a.ts").write_text("1")
    before = web_assets.sources_sha256(web)
    (web / "src" / "a.ts").write_text("2")
    after = web_assets.sources_sha256(web)
    (web / "src" / "a.ts").rename(web / "src" / "b.ts")
    assert len({before, after, web_assets.sources_sha256(web)}) == 3


def test_a_page_asks_nobody_else_for_anything():
    page = files("eirkit.report").joinpath("assets", "viewer", "index.html").read_text("utf-8")
    assert "http:" not in page
    assert "https:" not in page
    assert "<style" not in page


def test_the_lockfile_names_no_registry():
    lock = (ROOT / "web" / "package-lock.json").read_text("utf-8")
    assert '"resolved"' not in lock
