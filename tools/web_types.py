"""Writes the TypeScript types of the documents that the viewer's server sends, from the structs that it encodes.

`make web` runs it with `--write` before it builds the pages; without it, it says whether the types are those of the
structs.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec
from msgspec import inspect

from eirkit.records.events import Cause, Kind
from eirkit.report.document import Mark, Scale, Value
from eirkit.report.table import Cell
from eirkit.report.viewer.documents import FolderKind, ValueState
from eirkit.report.viewer.excerpts import Text
from eirkit.report.viewer.routes import ROUTES
from eirkit.report.viewer.tables import FieldKind

TYPES = Path(__file__).parents[1] / "web" / "src" / "documents.ts"
HEAD = "// The documents that the viewer's server sends. tools/web_types.py writes this file; `make web` runs it.\n"
# Types that have a name of their own; a longer one is looked for first.
NAMED: dict[str, Any] = {
    "Cause": Cause,
    "Cell": Cell,
    "FieldKind": FieldKind,
    "FolderKind": FolderKind,
    "Mark": Mark,
    "Scale": Scale,
    "Text": Text,
    "Value": Value,
    "ValueState": ValueState,
    "WrongKind": Kind,
}
WIDTH = 120  # characters of a line


class Types:
    """The types met so far, by name."""

    def __init__(self) -> None:
        self.written: dict[str, str] = {}
        self._classes: dict[str, type] = {}
        self._named: dict[str, frozenset[str]] = {}
        for name, kind in sorted(NAMED.items()):
            members = self._members(inspect.type_info(kind))
            self._named[name] = frozenset(members)
            self.written[name] = _definition(name, members)

    def name(self, kind: inspect.Type) -> str:
        """Return how a type is written where it is used."""
        members = self._members(kind)
        for name, parts in sorted(self._named.items(), key=lambda entry: -len(entry[1])):
            if parts <= set(members):
                members = [name, *(member for member in members if member not in parts)]
        return " | ".join(members)

    def _members(self, kind: inspect.Type) -> list[str]:
        if isinstance(kind, inspect.UnionType):
            parts = [part for member in kind.types for part in self._members(member)]
            return list(dict.fromkeys(sorted(parts, key=lambda part: part == "null")))
        if isinstance(kind, inspect.LiteralType):
            return [json.dumps(value) for value in kind.values]
        return [self._single(kind)]

    def _single(self, kind: inspect.Type) -> str:
        if isinstance(kind, inspect.Metadata):
            return self._single(kind.type)
        if isinstance(kind, (inspect.StructType, inspect.DataclassType)):
            return self._class(kind)
        if isinstance(kind, inspect.TupleType):
            return f"[{', '.join(map(self.name, kind.item_types))}]"
        if isinstance(kind, (inspect.VarTupleType, inspect.ListType)):
            item = self.name(kind.item_type)
            return f"({item})[]" if " | " in item else f"{item}[]"
        if isinstance(kind, inspect.DictType):
            return f"Record<{self.name(kind.key_type)}, {self.name(kind.value_type)}>"
        return _PLAIN[type(kind)]

    def _class(self, kind: inspect.StructType | inspect.DataclassType) -> str:
        name = kind.cls.__name__
        if self._classes.setdefault(name, kind.cls) is not kind.cls:
            raise ValueError(f"two types are called {name}; rename one of {kind.cls} and {self._classes[name]}")
        if name not in self.written:
            self.written[name] = ""  # a type may contain itself
            self.written[name] = self._definition(name, kind)
        return name

    def _definition(self, name: str, kind: inspect.StructType | inspect.DataclassType) -> str:
        words = (kind.cls.__doc__ or name).splitlines()[0]
        omits = False
        fields = []
        if isinstance(kind, inspect.StructType):
            if kind.array_like:
                items = [f"{field.encode_name}: {self.name(field.type)}" for field in kind.fields]
                return f"// {words}\nexport type {name} = [{', '.join(items)}];\n"
            omits = kind.cls.__struct_config__.omit_defaults
            if kind.tag is not None:
                fields.append(f"  {kind.tag_field}: {json.dumps(kind.tag)};\n")
        for field in kind.fields:
            # A default of UNSET is told as no default.
            is_unset = field.default is field.default_factory is msgspec.NODEFAULT
            may_lack = not field.required and (omits or is_unset)
            fields.append(f"  {field.encode_name}{'?' if may_lack else ''}: {self.name(field.type)};\n")
        return f"// {words}\nexport interface {name} {{\n{''.join(fields)}}}\n"


_PLAIN: dict[type, str] = {
    inspect.AnyType: "unknown",
    inspect.NoneType: "null",
    inspect.BoolType: "boolean",
    inspect.IntType: "number",
    inspect.FloatType: "number",
    inspect.StrType: "string",
}


def _definition(name: str, members: list[str]) -> str:
    line = f"export type {name} = {' | '.join(members)};\n"
    if len(line) <= WIDTH:
        return line
    return f"export type {name} =\n" + "".join(f"  | {member}\n" for member in members)[:-1] + ";\n"


def web_types() -> str:
    """Return the file of types."""
    types = Types()
    answers = []
    for path, route in ROUTES.items():
        found = get_type_hints(route)["return"]
        kinds = [types.name(inspect.type_info(kind)) for kind in get_args(found) or (found,)]
        answers.append(f"  {path.removeprefix('/api/')}: {' | '.join(kinds)};\n")
    table = f"// What each path answers with.\nexport interface Answers {{\n{''.join(answers)}}}\n"
    return "\n".join([HEAD, *types.written.values(), table])


def main(arguments: list[str]) -> int:
    now = web_types()
    if "--write" in arguments:
        TYPES.write_text(now, "utf-8")
        return 0
    if not TYPES.is_file() or TYPES.read_text("utf-8") != now:
        print("web/src/documents.ts is not that of the structs in eirkit.report.viewer; run `make web`")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
