"""Expands the words of a command (variables, braces, tildes) and splits options from operands; globs are not matched.

What the text does not determine, such as the output of a command, becomes `UNKNOWN` inside the expanded word. An array
is one text, with its items separated by `APART`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from eirkit.vestige.shell.syntax import Word, WordPiece


class ParsedOptions(Struct, frozen=True, gc=False):
    """Options with their values, and the operands."""

    operands: list[str]
    flags: set[str]
    values: dict[str, list[str]]

    def has(self, *names: str) -> bool:
        """Return whether one of the options was given."""
        return not self.flags.isdisjoint(names)

    def first(self, *names: str) -> str | None:
        """Return the first value of the first of these options that was given."""
        for name in names:
            if name in self.values:
                return self.values[name][0]
        return None


def split_options(arguments: Sequence[str], valued: str = "", long_valued: Sequence[str] = ()) -> ParsedOptions:
    """Return options and operands.

    Args:
        arguments: what follows the command's name.
        valued: the one-letter options that take a value.
        long_valued: the long options that take one in the next argument.
    """
    operands: list[str] = []
    flags: set[str] = set()
    values: dict[str, list[str]] = {}
    waiting: str | None = None
    for index, argument in enumerate(arguments):
        if waiting is not None:
            values.setdefault(waiting, []).append(argument)
            waiting = None
        elif argument[:1] != "-" or argument == "-":
            operands.append(argument)
        elif argument == "--":
            operands.extend(arguments[index + 1 :])
            break
        elif argument.startswith("--"):
            name, has_value, value = argument.partition("=")
            flags.add(name)
            if has_value:
                values.setdefault(name, []).append(value)
            elif name in long_valued:
                waiting = name
        elif len(argument) == 2:
            flags.add(argument)
            waiting = argument if argument[1] in valued else None
            if argument[1].isdigit() and waiting is None:
                values.setdefault("-#", []).append(argument[1])
        else:
            waiting = _letters(argument, valued, flags, values)
    return ParsedOptions(operands, flags, values)


def _letters(argument: str, valued: str, flags: set[str], values: dict[str, list[str]]) -> str | None:
    for index, letter in enumerate(argument[1:], 1):
        name = f"-{letter}"
        flags.add(name)
        if letter in valued:
            if argument[index + 1 :]:
                values.setdefault(name, []).append(argument[index + 1 :])
                return None
            return name
        if letter.isdigit():
            values.setdefault("-#", []).append(argument[index:])
            return None
    return None


UNKNOWN = "\0"
APART = "\x1f"
ARRAY: Word = (WordPiece("name", "()"),)  # marks the items of an array
_MOST_WORDS = 64  # words that one word may expand to
_LONGEST_VALUE = 1 << 16  # characters of a variable, which `x=$x$x` doubles
_LONGEST_WORD = 1 << 20  # characters of an expanded word
_SPECIAL = re.compile(r"[*?\[{~\\]")
_GLOB = re.compile(r"[*?\[]")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_BRACES = re.compile(r"\{([^{},]*+,[^{}]*+|-?\d{1,18}\.\.-?\d{1,18}(?:\.\.-?\d{1,18})?|[a-zA-Z]\.\.[a-zA-Z])\}")
_VARIABLE = re.compile(r"\\([$`\\])|\$(\w+|[@*#?])|\$\{([^{}]{1,200})\}")
_ALL = re.compile(r"(@|\*|\w+\[[@*]\])")  # every item of an array
_ITEM = re.compile(r"(\w+)\[(\d{1,4})\]")
_CUT = re.compile(r"(\w+)(%%|%|##|#|//|/|:-|-)(.*)", re.DOTALL)
_FIXED = {"HOME": "~"}


class Glob(str):
    """An expanded word in which `*`, `?` or `[…]` still match names."""

    __slots__ = ()


def is_unknown(word: str, output: str) -> bool:
    """Return whether it is not known which files a word names; those that `mktemp` made matter to nobody.

    A glob that an error in the output repeats matched no file.
    """
    if isinstance(word, Glob):
        return f"'{word}'" not in output and f"{word}: No such file" not in output
    return UNKNOWN in word and not word.startswith(f"/tmp/{UNKNOWN}")


def open_word(text: str) -> Word:
    """Return the word of an unquoted text."""
    return (WordPiece("open", text),) if _SPECIAL.search(text) else text


def document_word(text: str, split: bool = False) -> Word:
    """Return the word of a text with variables, such as a here-document."""
    if "$" not in text and "\\" not in text:
        return text
    pieces: list[WordPiece] = []
    position = 0
    for found in _VARIABLE.finditer(text):
        pieces.append(WordPiece("plain", text[position : found.start()]))
        if found[1]:
            pieces.append(WordPiece("plain", found[1]))
        else:
            pieces.append(WordPiece("split" if split else "name", (found[2] or found[3])))
        position = found.end()
    pieces.append(WordPiece("plain", text[position:]))
    return tuple(piece for piece in pieces if piece.text)


def joined(words: Sequence[Word], quoted: bool = False) -> Word:
    """Return several words as one; without any, an unknown word."""
    if not words:
        return (WordPiece("unknown"),)
    pieces: list[WordPiece] = []
    for word in words:
        if not isinstance(word, str):
            pieces.extend(word)
        elif word:
            pieces.append(WordPiece("plain", word))
    if all(piece.kind == "plain" for piece in pieces):
        return "".join(piece.text for piece in pieces)
    # `{a,b}` arrives in pieces, none of which would expand alone.
    if not quoted and any(piece.kind == "open" for piece in pieces):
        pieces = [WordPiece("open", piece.text) if _is_bare(piece) else piece for piece in pieces]
    return tuple(pieces)


def _is_bare(piece: WordPiece) -> bool:
    return piece.kind == "plain" and not _SPECIAL.search(piece.text) and " " not in piece.text


def expand(words: Iterable[Word], variables: Mapping[str, str]) -> list[str]:
    """Return the arguments to which words expand."""
    arguments: list[str] = []
    for word in words:
        if isinstance(word, str):
            arguments.append(word)
        else:
            arguments.extend(_expand_one(word, variables))
    return arguments


def expand_text(word: Word, variables: Mapping[str, str], unknown: str = UNKNOWN) -> str:
    """Return the text to which a word expands without splitting, as in an assignment or a here-document."""
    if isinstance(word, str):
        return word
    if _is_too_long(word, variables):
        return unknown
    parts = []
    for piece in word:
        if piece.kind in ("name", "split"):
            value = value_of(piece.text, variables).replace(APART, " ")
            parts.append(value if unknown or UNKNOWN not in value else _spelled(piece.text, unknown))
        elif piece.kind == "open":
            parts.append(_ESCAPE.sub(r"\1", piece.text))
        else:
            parts.append(unknown if piece.kind == "unknown" else piece.text)
    return "".join(parts)


def _is_too_long(word: tuple[WordPiece, ...], variables: Mapping[str, str]) -> bool:
    if len(word) <= _LONGEST_WORD // _LONGEST_VALUE:
        return False
    return sum(len(variables.get(piece.text, "")) for piece in word) > _LONGEST_WORD


def assigned(words: Sequence[Word], variables: Mapping[str, str]) -> str:
    """Return the value of an assignment: the text of one word, or the items of an array."""
    if words[0] != ARRAY:
        value = expand_text(words[0], variables)
    else:
        items = expand(words[1:], variables)
        # `[key]=value` fills an associative array, whose items have no position.
        value = UNKNOWN if any(item.startswith("[") and "]=" in item for item in items) else APART.join(items)
    return value if len(value) <= _LONGEST_VALUE else UNKNOWN


def value_of(name: str, variables: Mapping[str, str]) -> str:
    """Return the value of a variable or of `${…}`; `UNKNOWN` if it is not known."""
    value = variables.get(name)
    if value is not None:
        return value.partition(APART)[0] if APART in value and name not in ("@", "*") else value
    if name.isidentifier():
        return _FIXED.get(name, UNKNOWN)
    if _ALL.fullmatch(name):
        return variables.get(name.partition("[")[0], UNKNOWN)
    if found := _ITEM.fullmatch(name):
        items = variables.get(found[1], UNKNOWN).split(APART)
        return items[int(found[2])] if int(found[2]) < len(items) else UNKNOWN
    return _cut(found, variables) if (found := _CUT.fullmatch(name)) else UNKNOWN


def _cut(found: re.Match[str], variables: Mapping[str, str]) -> str:
    """Return a value without a prefix or suffix, or with a part replaced; only simple patterns are supported."""
    value, sign, given = value_of(found[1], variables), found[2], found[3]
    if sign in (":-", "-"):
        is_unset = UNKNOWN in value and found[1].isdigit()
        return value if not is_unset else UNKNOWN if "$" in given else given
    if UNKNOWN in value or "$" in given or "\\" in given:
        return UNKNOWN
    old, _, new = given.partition("/")
    if sign in ("/", "//"):
        plain = old and not _GLOB.search(old) and old[0] not in "#%"
        return value.replace(old, new, -1 if sign == "//" else 1) if plain else UNKNOWN
    return _without_end(value, sign, given) if sign[0] == "%" else _without_start(value, sign, given)


def _without_end(value: str, sign: str, pattern: str) -> str:
    if not _GLOB.search(pattern):
        return value.removesuffix(pattern)
    stop = pattern[:-1]
    if not pattern.endswith("*") or _GLOB.search(stop):
        return UNKNOWN
    index = value.find(stop) if sign == "%%" else value.rfind(stop)
    return value[:index] if index >= 0 else value


def _without_start(value: str, sign: str, pattern: str) -> str:
    if not _GLOB.search(pattern):
        return value.removeprefix(pattern)
    stop = pattern[1:]
    if not pattern.startswith("*") or _GLOB.search(stop):
        return UNKNOWN
    index = value.rfind(stop) if sign == "##" else value.find(stop)
    return value[index + len(stop) :] if index >= 0 else value


def _spelled(name: str, unknown: str) -> str:
    if name[0] in "$`":  # a command substitution
        return unknown
    return f"${name}" if name.isidentifier() else f"${{{name}}}"


def _expand_one(word: tuple[WordPiece, ...], variables: Mapping[str, str]) -> list[str]:
    if len(word) == 1 and word[0].kind in ("name", "split") and (found := _many(word[0], variables)) is not None:
        return found
    if _is_too_long(word, variables):
        return [UNKNOWN]
    text, pattern = "", ""
    for piece in word:
        if piece.kind == "open":
            text, pattern = text + piece.text, pattern + piece.text
        elif piece.kind in ("name", "split"):
            value = value_of(piece.text, variables).replace(APART, " ")
            text, pattern = text + value, pattern + (value if piece.kind == "split" else "")
        else:
            text += UNKNOWN if piece.kind == "unknown" else piece.text
    return [_marked(one, pattern) for one in _braces(text)] if "{" in pattern else [_marked(text, pattern)]


def _many(piece: WordPiece, variables: Mapping[str, str]) -> list[str] | None:
    """Return the words to which an unquoted variable expands, None if it is quoted and so one word."""
    is_array = piece.text == "@" or piece.text.endswith("[@]")
    if piece.kind == "name" and not is_array:
        return None
    value = value_of(piece.text, variables)
    if piece.kind == "split" or piece.text == "@":
        parts = value.replace(APART, " ").split()
    else:
        parts = value.split(APART) if value else []
    return [_marked(part, part) for part in parts[:_MOST_WORDS]]


def _marked(text: str, pattern: str) -> str:
    if "\\" in pattern:
        return _ESCAPE.sub(r"\1", text)
    return Glob(text) if _GLOB.search(pattern) else text


def _braces(text: str) -> list[str]:
    done: list[str] = []
    waiting = [text]
    while waiting:
        if len(done) + len(waiting) > _MOST_WORDS:
            return [UNKNOWN]
        current = waiting.pop(0)
        found = _BRACES.search(current)
        if found is None:
            done.append(current)
        else:
            choices = _choices(found[1])
            if len(choices) > _MOST_WORDS:
                return [UNKNOWN]
            head, tail = current[: found.start()], current[found.end() :]
            waiting[:0] = [head + part + tail for part in choices]
    return done


def _choices(inside: str) -> list[str]:
    """Return what braces expand to: the words between commas, or a range of numbers or letters."""
    if "," in inside:
        return inside.split(",")
    first, last, step = [*inside.split(".."), ""][:3]
    if first.isalpha():
        start, end = ord(first), ord(last)
    else:
        start, end = int(first), int(last)
    by = (abs(int(step or 1)) or 1) * (1 if end >= start else -1)
    steps = range(start, end + (1 if by > 0 else -1), by)
    if len(steps) > _MOST_WORDS:
        return [UNKNOWN]
    if first.isalpha():
        return [chr(step) for step in steps]
    padded = any(re.match(r"-?0\d", word) for word in (first, last))
    width = max(len(first), len(last)) if padded else 0
    return [str(step).zfill(width) for step in steps]
