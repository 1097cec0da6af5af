"""Shell commands that show files: cat, head, tail, nl, sed, awk and other filters, with the lines they select."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from eirkit.vestige.shell.state import NOTHING, OTHER, Flow, chosen, last_lines, merged, window
from eirkit.vestige.shell.walk import Handler, Invocation, ShellWrite, Walk
from eirkit.vestige.shell.words import Glob, is_unknown, split_options
from eirkit.vestige.trajectory import FileWrite

_LONGEST_SCRIPT = 4000  # characters of a script that are parsed
_ADDRESS = r"(?:\d{1,9}|\$|/[^/\n]*/)"
_SED_WRITES = re.compile(
    rf"(?m)(?:^|[;{{])[ \t]*+(?:{_ADDRESS}(?:[ \t]*+,[ \t]*+{_ADDRESS})?[ \t]*+)?w[ \t]++([^\n;}}]+)"
)
_PART = r"(?:(?!\1)[^\n\\]|\\.){0,400}"
_SED_PICKS = re.compile(rf"(?m)s([/|#,@!]){_PART}\1{_PART}\1[gIpm\d]{{0,6}}w\s+([^\n;}}]+)")
# A name that is concatenated with other text is unknown.
_AWK_WRITES = re.compile(r'printf?\b(?:(?!print)[^\n;}|>])*+>>?\s*+"([^"\n]++)"\s*+(?=[;}\n]|$)')
_BSD_SUFFIX = re.compile(r"|\.\w{1,10}|~")
_SUFFIX = re.compile(r"(?:-i|--in-place=|-[a-zA-Z0]{1,6}i(?=[.~]))([^/*]+)")


def edit_in_place(walk: Walk, call: Invocation, operands: Sequence[str]) -> None:
    """Record the files that a command changes in place, and the backup copies that it keeps."""
    suffix = next((found[1] for word in call.arguments if (found := _SUFFIX.fullmatch(word))), "")
    if "-i" in call.arguments:
        after = call.arguments[call.arguments.index("-i") + 1 :]
        suffix = after[0] if len(after) > 2 and _BSD_SUFFIX.fullmatch(after[0]) else suffix
    walk.write(call, operands)
    for word in operands if suffix else ():
        for path in walk.paths([word]):
            kept = FileWrite(path + suffix, "whole", content=walk.state.texts.get(path))
            walk.record(ShellWrite(kept, call.step, call.name, word))


def sed_files(walk: Walk, call: Invocation, script: str) -> None:
    """Record the files to which a sed script writes lines."""
    if "w " in script and len(script) <= _LONGEST_SCRIPT:
        named = [*_SED_WRITES.findall(script), *(found[2] for found in _SED_PICKS.finditer(script))]
        walk.write(call, [name.strip() for name in named], "whole")


_SED_LINES = re.compile(r"\s*+(\d{1,9})(?:\s*+,\s*+(\+?\d{1,9}|\$))?\s*+p\s*+")
_SED_QUIT = re.compile(r"\s*+(\d{1,9})\s*+q\s*+")
_AWK_PRINT = r"\s*+(?:\{\s*+print(?:\s++\$0)?;?\s*+\})?\s*+"
_AWK_RANGE = re.compile(rf"\s*+NR\s*+(>=|>|==)\s*+(\d{{1,9}})(?:\s*+&&\s*+NR\s*+(<=|<)\s*+(\d{{1,9}}))?{_AWK_PRINT}")
_AWK_SPAN = re.compile(rf"\s*+NR\s*+==\s*+(\d{{1,9}})\s*+,\s*+NR\s*+==\s*+(\d{{1,9}}){_AWK_PRINT}")


_PAGER_VALUES = {"bat": "rl", "batcat": "rl", "less": "p", "more": "p", "pygmentize": "lfO"}


def contents(walk: Walk, operands: list[str], stdin: Flow) -> Flow:
    """Return the stream of the files that operands name, or of the input if there are none."""
    named = [word for word in operands if word != "-"]
    if not named:
        return stdin
    found = [(word, walk.paths([word])) for word in named]
    files = tuple(path for _, paths in found for path in paths)
    is_unnamed = any(not paths and is_unknown(word, walk.output) for word, paths in found)
    flow = Flow("files" if files else "other", files=files, is_unnamed=is_unnamed)
    if len(named) == len(operands) or stdin.kind == "none":
        return flow
    return merged([stdin, flow] if operands[0] == "-" else [flow, stdin])


def _each(walk: Walk, flow: Flow, operands: list[str], first: int, last: int | None) -> Flow:
    """Return some lines of every file; for several files, `head` and `tail` print the names."""
    if len(operands) <= 1 and not any(isinstance(word, Glob) for word in operands):
        return window(flow, first, last)
    if flow.kind == "mixed":
        return chosen(flow)
    # These names resolve globs that match no known file.
    is_unnamed = flow.is_unnamed and "==> " not in walk.output
    return replace(flow, kind="files", headed=True, folder=walk.folder, first=first, last=last, is_unnamed=is_unnamed)


def cat(walk: Walk, call: Invocation) -> Flow:
    """`cat` and pagers."""
    options = split_options(
        call.arguments, _PAGER_VALUES.get(call.name, ""), ("--line-range", "--language", "--style", "--theme")
    )
    flow = contents(walk, options.operands, call.stdin)
    if call.name == "cat" and options.has("-n", "--number"):
        return numbered(flow)
    spans = options.first("-r", "--line-range") if call.name.startswith("bat") else None
    if spans and (found := re.fullmatch(r"(\d{1,9})?:(\d{1,9})?", spans)):
        return window(flow, int(found[1] or 1), int(found[2]) if found[2] else None)
    return flow


def numbered(flow: Flow) -> Flow:
    """Return a stream with line numbers, counted from the start of the stream."""
    if flow.kind == "text":
        return OTHER
    if flow.headed or flow.kind == "mixed":
        return chosen(flow)
    return replace(flow, numbering="tab", offset=flow.first - 1) if flow.kind == "files" and not flow.chosen else flow


def nl(walk: Walk, call: Invocation) -> Flow:
    """`nl` numbers every line only if told to; otherwise it skips empty lines."""
    options = split_options(call.arguments, "bdfhilnsvw")
    flow = contents(walk, options.operands, call.stdin)
    return numbered(flow) if options.first("-b") == "a" else chosen(flow)


def head(walk: Walk, call: Invocation) -> Flow:
    """The first lines."""
    options = split_options(call.arguments, "nc", ("--lines", "--bytes"))
    flow = contents(walk, options.operands, call.stdin)
    if options.has("-c", "--bytes"):
        return chosen(_each(walk, flow, options.operands, 1, None)) if len(options.operands) > 1 else flow
    count = options.first("-n", "--lines", "-#") or "10"
    if count.isdigit() and len(count) < 10:
        return _each(walk, flow, options.operands, 1, int(count))
    return chosen(_each(walk, flow, options.operands, 1, None))


def tail(walk: Walk, call: Invocation) -> Flow:
    """The last lines, or all from some line on."""
    options = split_options(call.arguments, "nc", ("--lines", "--bytes"))
    start = next((word for word in options.operands if re.fullmatch(r"\+\d{1,9}", word)), None)
    operands = [word for word in options.operands if word != start]
    flow = contents(walk, operands, call.stdin)
    count = start or options.first("-n", "--lines", "-#") or "10"
    if re.fullmatch(r"\+\d{1,9}", count):
        return _each(walk, flow, operands, max(1, int(count)), None)
    if len(operands) > 1 or any(isinstance(word, Glob) for word in operands):
        return chosen(_each(walk, flow, operands, 1, None))
    return last_lines(flow, int(count)) if count.isdigit() and len(count) < 10 else chosen(flow)


def sed(walk: Walk, call: Invocation) -> Flow:
    """`sed`: in place it writes, else it shows; `-n 'a,bp'` selects lines by number."""
    options = split_options(_in_place_apart(call.arguments), "efl", ("--expression", "--file"))
    operands = list(options.operands)
    scripts = options.values.get("-e", []) + options.values.get("--expression", [])
    if not scripts and not options.has("-f", "--file"):
        scripts, operands = operands[:1], operands[1:]
    if options.has("-i", "--in-place"):
        edit_in_place(walk, call, operands)
        return NOTHING
    sed_files(walk, call, "\n".join(scripts))
    flow = contents(walk, operands, call.stdin)
    quiet = options.has("-n", "--quiet", "--silent")
    script = ";".join(scripts)
    if quiet and (spans := _spans(script)):
        kept = window(flow, min(first for first, _ in spans), _furthest(spans))
        return kept if len(spans) == 1 or kept.numbering else replace(kept, chosen=kept.shows_files)
    if not quiet and (found := _SED_QUIT.fullmatch(script)):
        return window(flow, 1, int(found[1]))
    return chosen(flow)


def _in_place_apart(arguments: list[str]) -> list[str]:
    # `-i.bak` has a suffix, not further options, and `-ni` means both.
    if not any(argument.startswith("-i") for argument in arguments):
        return arguments
    apart = ["--in-place" if argument.startswith("-i") else argument for argument in arguments]
    at = apart.index("--in-place")
    # BSD's sed takes the suffix as the next word, empty for none; to GNU's that would be an empty script.
    if arguments[at] == "-i" and len(apart) > at + 2 and _BSD_SUFFIX.fullmatch(apart[at + 1]):
        del apart[at + 1]
    return apart


def _furthest(spans: list[tuple[int, int | None]]) -> int | None:
    ends = [last for _, last in spans]
    return None if None in ends else max(last for last in ends if last is not None)


def _spans(script: str) -> list[tuple[int, int | None]]:
    spans: list[tuple[int, int | None]] = []
    for part in script.replace("\n", ";").split(";"):
        if not part.strip():
            continue
        found = _SED_LINES.fullmatch(part)
        if found is None:
            return []
        first, end = int(found[1]), found[2]
        if end is None:
            spans.append((first, first))
        elif end.startswith("+"):
            spans.append((first, first + int(end)))
        else:
            spans.append((first, None if end == "$" else max(first, int(end))))
    return spans


def awk(walk: Walk, call: Invocation) -> Flow:
    """`awk`: lines by number if its program does nothing else."""
    options = split_options(call.arguments, "Fvf", ("--assign",))
    operands = [word for word in options.operands if "=" not in word or "/" in word]
    program = ""
    if not options.has("-f") and options.operands:
        program, operands = options.operands[0], options.operands[1:]
    if options.has("-i") and "inplace" in options.operands:
        walk.write(call, operands[1:])
        return NOTHING
    # The files to which the program prints.
    if ">" in program and len(program) <= _LONGEST_SCRIPT:
        walk.write(call, _AWK_WRITES.findall(program), "whole")
    flow = contents(walk, operands, call.stdin)
    if found := _AWK_SPAN.fullmatch(program):
        return window(flow, int(found[1]), int(found[2]))
    found = _AWK_RANGE.fullmatch(program)
    if found is None:
        return chosen(flow)
    first = int(found[2]) + (found[1] == ">")
    if found[1] == "==":
        return window(flow, first, first)
    return window(flow, first, int(found[4]) - (found[3] == "<") if found[4] else None)


def picking(valued: str = "") -> Handler:
    """Return a filter that shows its input changed or in part."""

    def show(walk: Walk, call: Invocation) -> Flow:
        options = split_options(call.arguments, valued)
        if call.name == "sort" and (target := options.first("-o", "--output")):
            walk.write(call, [target], "whole")
            return NOTHING
        return chosen(contents(walk, options.operands, call.stdin))

    return show


_JQ_VALUES = {"--arg": 2, "--argjson": 2, "--slurpfile": 2, "--rawfile": 2, "--indent": 1, "-L": 1, "--tab": 0}
_JQ_FILTER_FILES = ("-f", "--from-file")


def jq(walk: Walk, call: Invocation) -> Flow:
    """`jq` and `yq`: the first operand is a filter, unless a file holds it; `yq -i` edits in place."""
    words, operands, has_filter = list(call.arguments), list[str](), False
    while words:
        word = words.pop(0)
        if word in ("--args", "--jsonargs"):
            break
        if word in _JQ_FILTER_FILES:
            has_filter, words = True, words[1:]
        elif word in _JQ_VALUES:
            words = words[_JQ_VALUES[word] :]
        elif not word.startswith("-") or word == "-":
            operands.append(word)
    if not has_filter and operands[:1] not in (["eval"], ["e"]):
        operands = operands[1:]
    elif operands[:1] in (["eval"], ["e"]):
        operands = operands[2:]
    if call.name == "yq" and any(word in ("-i", "--inplace") for word in call.arguments):
        walk.write(call, operands)
        return NOTHING
    shows = not any(word in ("-n", "--null-input") for word in call.arguments)
    return chosen(contents(walk, operands, call.stdin)) if shows else OTHER


def diff(walk: Walk, call: Invocation) -> Flow:
    """`diff` shows lines of both files."""
    options = split_options(call.arguments, "UCILxX", ("--label", "--exclude"))
    if options.has("-q", "--brief"):
        return OTHER
    files = walk.paths([word for word in options.operands if word != "-"])
    if options.has("-r", "--recursive"):
        return Flow("diff", folder=walk.folder)
    is_unnamed = any(is_unknown(word, walk.output) for word in options.operands)
    flow = replace(Flow("files", files=files, chosen=True) if files else OTHER, is_unnamed=is_unnamed)
    return flow if call.stdin.kind != "files" else replace(flow, files=(*flow.files, *call.stdin.files))


def look(walk: Walk, call: Invocation) -> Flow:
    """`tr`, `rev` and similar commands, which only pass their input on."""
    return chosen(call.stdin)


VIEWERS: dict[str, Callable[[Walk, Invocation], Flow]] = {
    **dict.fromkeys(("cat", "less", "more", "bat", "batcat", "zcat", "tac", "pygmentize", "glow"), cat),
    "nl": nl,
    "head": head,
    "tail": tail,
    "sed": sed,
    "gsed": sed,
    **dict.fromkeys(("awk", "gawk", "mawk"), awk),
    "sort": picking("kotST"),
    "uniq": picking("fsw"),
    "cut": picking("dfcb"),
    "paste": picking("d"),
    "column": picking("stc"),
    "fold": picking("w"),
    "fmt": picking("w"),
    "expand": picking("t"),
    "unexpand": picking("t"),
    "rev": picking(),
    "comm": picking(),
    "join": picking("t12aoje"),
    "od": picking("AtNjw"),
    "hexdump": picking("nsef"),
    "xxd": picking("lscg"),
    "strings": picking("nt"),
    "base64": picking("w"),
    "iconv": picking("fto"),
    **dict.fromkeys(("jq", "gojq", "jaq", "yq"), jq),
    "tr": look,
    "diff": diff,
    "colordiff": diff,
    "vimdiff": diff,
    **dict.fromkeys(  # they report on files without showing their content
        ("wc", "file", "stat", "ls", "tree", "du", "md5sum", "sha1sum", "sha256sum", "cksum", "cmp", "basename"),
        lambda walk, call: OTHER,
    ),
}
