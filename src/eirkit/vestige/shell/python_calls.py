"""Python calls that touch files (open, shutil, os, pathlib), and the record of what a program did to files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from eirkit.vestige.shell.python_values import (
    GLOB,
    UNKNOWN_VALUE,
    ProgramValue,
    ProgramWrite,
    carried,
    combined,
    joined_path,
    replaced,
)
from eirkit.vestige.trajectory import WriteKind

# Methods by which libraries save to a named file; other arguments mean something else.
SAVING = ("savefig", "savetxt", "savez", "to_csv", "to_excel", "to_json", "to_parquet", "to_pickle", "writeto")
_MOST_CHOICES = 8  # values of one operand that are followed
_FILE_NAME = re.compile(r"[\w./~+-]{1,200}\.[A-Za-z][A-Za-z0-9]{0,7}")


class ProgramFiles:
    """What a program has done to files so far."""

    def __init__(self) -> None:
        self.changes: dict[str, ProgramWrite] = {}
        self.shown: dict[str, None] = {}  # files whose content was printed
        self.said: set[str] = set()  # literal lines printed
        self.read: set[str] = set()
        self.parts: dict[str, list[str] | None] = {}  # text written to an open file, as long as all of it is known
        self.folder = ""
        self.line = 0  # line of the current top-level statement
        self.is_unnamed = False  # it changed a file whose name is made at run time
        self.loops = 0  # loops around the current statement
        self.branches = 0

    def settled(self) -> Iterator[ProgramWrite]:
        """Yield the changes, with the content that is known of each."""
        for path, change in self.changes.items():
            parts = self.parts.get(path)
            if change.kind == "whole" and parts and change.content is None:
                yield replace(change, content="".join(parts))
            else:
                yield change

    def resolve(self, text: str) -> str:
        """Return a path relative to the program's current folder."""
        return joined_path(self.folder, text) if self.folder else text

    def change(self, texts: Sequence[str], kind: WriteKind, content: str | None = None) -> None:
        """Record that files are changed."""
        self.is_unnamed = self.is_unnamed or not texts
        for text in texts:
            path = self.resolve(text)
            # Which of the files found by a pattern a condition selects is unknown.
            if (GLOB in path and self.branches) or not path or (path in self.changes and kind == "edit"):
                continue
            is_edit = kind == "whole" and path in self.read
            self.changes[path] = ProgramWrite(
                path, "edit" if is_edit else kind, None if is_edit else content, self.line
            )

    def start(self, name: str, *operands: Sequence[str]) -> None:
        """Record the shell command that is equivalent to a call, for every combination of its operands."""
        for chosen in product(*(texts[:_MOST_CHOICES] for texts in operands)):
            command = (*name.split(), *map(self.resolve, chosen))
            self.changes[" ".join(command)] = ProgramWrite(command[-1], "edit", line=self.line, command=command)

    def reading(self, paths: ProgramValue) -> ProgramValue:
        """Return the content of files that are read."""
        files = frozenset(self.resolve(text) for text in paths.texts)
        self.read |= files
        return ProgramValue(carries=files, opened=paths.texts)


@dataclass(frozen=True, slots=True)
class ProgramCall:
    """A call of a function or a method, with the value before its name."""

    base: ProgramValue
    arguments: list[ProgramValue]
    keywords: dict[str, ProgramValue]


def open_file(ledger: ProgramFiles, call: ProgramCall) -> ProgramValue:
    """A file opened for reading carries its content; for writing it is changed."""
    # `Path(x).open("w")` has its path before the call, `open(x, "w")` in its arguments.
    own = bool(call.base.texts)
    paths = call.base if own else call.arguments[0] if call.arguments else call.keywords.get("file", UNKNOWN_VALUE)
    index = 0 if own else 1
    given = call.arguments[index] if len(call.arguments) > index else call.keywords.get("mode", UNKNOWN_VALUE)
    mode = given.texts[0] if given.texts else "r"
    if set(mode) & set("wax+"):
        ledger.change(paths.texts, "whole" if "w" in mode or "x" in mode else "edit")
        if "w" in mode:
            ledger.parts.update({ledger.resolve(text): [] for text in paths.texts})
        return ProgramValue(opened=paths.texts)
    return ledger.reading(paths)


def write(ledger: ProgramFiles, call: ProgramCall) -> ProgramValue:
    """Text written to an open file, kept while all of it is known; with more arguments, a library's save method."""
    if not call.base.opened and (len(call.arguments) > 1 or call.keywords):
        return save(ledger, call)
    for text in call.base.opened:
        parts = ledger.parts.get(ledger.resolve(text))
        if parts is not None and call.arguments and len(call.arguments[0].texts) == 1 and not ledger.loops:
            parts.append(call.arguments[0].texts[0])
        else:
            ledger.parts[ledger.resolve(text)] = None
    return UNKNOWN_VALUE


def save(ledger: ProgramFiles, call: ProgramCall) -> ProgramValue:
    """A method by which tables, arrays and figures are saved to a file named first."""
    if named := [text for text in (call.arguments[0].texts if call.arguments else ()) if _FILE_NAME.fullmatch(text)]:
        ledger.change(named, "whole")
    return UNKNOWN_VALUE


def save_alone(ledger: ProgramFiles, call: ProgramCall) -> ProgramValue:
    """`save` with a name only; with content beside it the name belongs to some storage API."""
    return save(ledger, call) if len(call.arguments) == 1 else UNKNOWN_VALUE


def write_text(ledger: ProgramFiles, call: ProgramCall) -> ProgramValue:
    """`Path.write_text`."""
    text = call.arguments[0].texts if call.arguments else ()
    ledger.change(call.base.texts, "whole", text[0] if len(text) == 1 else None)
    return UNKNOWN_VALUE


def read_text(ledger: ProgramFiles, call: ProgramCall) -> ProgramValue:
    """`Path.read_text`."""
    return replace(ledger.reading(call.base), opened=())


def show(ledger: ProgramFiles, call: ProgramCall) -> ProgramValue:
    """`print` shows the content that its arguments carry."""
    if "file" not in call.keywords:
        ledger.shown.update(dict.fromkeys(sorted(carried(call.arguments).carries)))
        for text in combined(lambda *words: " ".join(words), call.arguments).texts:
            ledger.said.update(text.split("\n"))
    return UNKNOWN_VALUE


def delete(ledger: ProgramFiles, call: ProgramCall) -> ProgramValue:
    """A file removed."""
    ledger.change(call.arguments[0].texts if call.arguments else call.base.texts, "delete")
    return UNKNOWN_VALUE


def copy(ledger: ProgramFiles, call: ProgramCall) -> ProgramValue:
    """A file copied: only the copy is written."""
    _transfer(ledger, "cp", call.arguments)
    return UNKNOWN_VALUE


def _transfer(ledger: ProgramFiles, name: str, arguments: list[ProgramValue]) -> None:
    if len(arguments) < 2:
        return
    if arguments[0].texts:
        ledger.start(name, arguments[0].texts, arguments[1].texts)
    else:  # if the source is unknown, only a target that names a file is certain
        ledger.change([text for text in arguments[1].texts if _FILE_NAME.fullmatch(text)], "whole")


def copy_exactly(ledger: ProgramFiles, call: ProgramCall) -> ProgramValue:
    """A file copied or linked to a path that is not a folder."""
    if len(call.arguments) > 1:
        ledger.change(call.arguments[1].texts, "whole")
    return UNKNOWN_VALUE


def copy_folder(ledger: ProgramFiles, call: ProgramCall) -> ProgramValue:
    """`shutil.copytree`."""
    if len(call.arguments) > 1:
        ledger.start("cp -r", [f"{text.rstrip('/')}/." for text in call.arguments[0].texts], call.arguments[1].texts)
    return UNKNOWN_VALUE


def move(ledger: ProgramFiles, call: ProgramCall) -> ProgramValue:
    """A file moved."""
    _transfer(ledger, "mv", call.arguments)
    return UNKNOWN_VALUE


def rename(ledger: ProgramFiles, call: ProgramCall) -> ProgramValue:
    """`Path.rename` and `Path.replace`; the `replace` of a string has two arguments."""
    if len(call.arguments) == 1 and call.base.texts:
        ledger.start("mv", call.base.texts, call.arguments[0].texts)
        return call.arguments[0]
    if len(call.arguments) == 2 and call.base.texts and not any(GLOB in text for text in call.base.texts):
        return combined(replaced, [call.base, *call.arguments])
    return carried([call.base, *call.arguments]) if call.base.carries else UNKNOWN_VALUE


def touch(ledger: ProgramFiles, call: ProgramCall) -> ProgramValue:
    """`Path.touch`."""
    ledger.start("touch", call.base.texts)
    return UNKNOWN_VALUE


def make_folder(ledger: ProgramFiles, call: ProgramCall) -> ProgramValue:
    """`os.makedirs` and `Path.mkdir`."""
    ledger.start("mkdir -p", call.base.texts or (call.arguments[0].texts if call.arguments else ()))
    return UNKNOWN_VALUE


def remove_folder(ledger: ProgramFiles, call: ProgramCall) -> ProgramValue:
    """`shutil.rmtree`."""
    ledger.start("rm -rf", call.arguments[0].texts if call.arguments else ())
    return UNKNOWN_VALUE


def edit_in_place(ledger: ProgramFiles, call: ProgramCall) -> ProgramValue:
    """`fileinput`, which can change the files that it reads."""
    files = call.arguments[0] if call.arguments else call.keywords.get("files", UNKNOWN_VALUE)
    texts = files.texts or tuple(text for item in files.items for text in item.texts)
    if "inplace" in call.keywords or len(call.arguments) > 1:
        ledger.change(texts, "edit")
        return UNKNOWN_VALUE  # its printed output goes into the file
    return ledger.reading(ProgramValue(texts))


def change_folder(ledger: ProgramFiles, call: ProgramCall) -> ProgramValue:
    """`os.chdir`."""
    if call.arguments and len(call.arguments[0].texts) == 1:
        ledger.folder = ledger.resolve(call.arguments[0].texts[0])
    return UNKNOWN_VALUE


Act = Callable[[ProgramFiles, ProgramCall], ProgramValue]
ACTS: dict[str, Act] = {
    **dict.fromkeys(("open", "io.open", "codecs.open"), open_file),
    **dict.fromkeys(("print", "pprint", "pprint.pprint", "sys.stdout.write"), show),
    **dict.fromkeys(("os.remove", "os.unlink"), delete),
    **dict.fromkeys(("shutil.copy", "shutil.copy2"), copy),
    **dict.fromkeys(("shutil.copyfile", "os.symlink", "os.link"), copy_exactly),
    **dict.fromkeys(("os.makedirs", "os.mkdir"), make_folder),
    "shutil.copytree": copy_folder,
    "shutil.rmtree": remove_folder,
    **dict.fromkeys(("os.rename", "os.replace", "shutil.move"), move),
    **dict.fromkeys(("fileinput.input", "fileinput.FileInput", "FileInput"), edit_in_place),
    **dict.fromkeys(("np.save", "numpy.save"), save),
    "os.chdir": change_folder,
}
METHODS: dict[str, Act] = {
    "open": open_file,
    "write_text": write_text,
    "write_bytes": write_text,
    "read_text": read_text,
    "read_bytes": read_text,
    "unlink": delete,
    "rename": rename,
    "replace": rename,
    "touch": touch,
    "mkdir": make_folder,
    "write": write,
    "writelines": write,
    "save": save_alone,
    **dict.fromkeys(SAVING, save),
}
