"""What a Python program would do to files, told without running it."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eirkit.vestige.shell.python_programs import effects_of
from tests.timing import UNITS_IN_A_SECOND, cost

LONGEST = 10 * UNITS_IN_A_SECOND  # they take less than a tenth of it; without bounds it would be minutes

PROGRAMS = {
    "open('a', 'w').write('x')": (["a"], []),
    "open('a', mode='a').write('x')": (["a"], []),
    "with open('a') as f:\n    t = f.read()\nwith open('a', 'w') as f:\n    f.write(t)": (["a"], []),
    "p = 'a'\nfor q in [p, 'b']:\n    open(q, 'w')": (["a", "b"], []),
    "for q, n in [('a', 1), ('b', 2)]:\n    open(q, 'w')": (["a", "b"], []),
    "files = {'a': 1, 'b': 2}\nfor name, n in files.items():\n    print(name)\nopen('c', 'w')": (["c"], []),
    "import os\nopen(os.path.join('d', 'a'), 'w')": (["d/a"], []),
    "from pathlib import Path\n(Path('d') / 'a').write_text('x')": (["d/a"], []),
    "from pathlib import Path\nbase = Path('d')\n(base / 'a').open('w').write('')": (["d/a"], []),
    "name = 'a'\nopen(f'd/{name}.py', 'w')": (["d/a.py"], []),
    "def fix(path, old='x'):\n    open(path, 'w')\nfix('a')\nfix(path='b')": (["a", "b"], []),
    "def main():\n    open('a', 'w')\nif __name__ == '__main__':\n    main()": (["a"], []),
    "def unused():\n    open('a', 'w')": ([], []),
    "import sys\nopen(sys.argv[1], 'w')": (["given"], []),
    "import os\nos.rename('a', 'b')\nos.remove('c')": (["mv a b", "c"], []),
    "import shutil\nshutil.copy('a', 'b')\nshutil.move('c', 'd')": (["cp a b", "mv c d"], []),
    "import fileinput\nfor line in fileinput.input('a', inplace=True):\n    print(line)": (["a"], []),
    "import os\nos.chdir('d')\nopen('a', 'w')": (["d/a"], []),
    "import tempfile, os\nopen(os.path.join(tempfile.mkdtemp(), 'a'), 'w')": ([], []),
    "print(open('a').read())": ([], ["a"]),
    "for i, line in enumerate(open('a')):\n    if 'x' in line:\n        print(i, line.rstrip())": ([], ["a"]),
    "lines = open('a').readlines()\nprint(''.join(lines[3:9]))": ([], ["a"]),
    "import re\nprint(re.findall('x', open('a').read()))": ([], ["a"]),
    "print(len(open('a').read()))": ([], []),
    "print('x' in open('a').read())": ([], []),
    "text = open('a').read()\nprint('done')": ([], []),
    "answer = Response(open('a'))\nprint(answer)": ([], []),
    "open('a', 'w'": ([], []),
    "table.write('t.ecsv', format='ascii.ecsv')": (["t.ecsv"], []),
    "f.write('t.ecsv')": ([], []),  # a text, for all that can be known
    "df.to_csv('d/x.csv', index=False)\nplt.savefig('p.png')\nnp.save('a.npy', a)": (["d/x.csv", "p.png", "a.npy"], []),
    "form.save()\nrow.save('draft')\nimage.save(stream)\nstorage.save('a.css', content)": ([], []),
    "image.save('a.png')": (["a.png"], []),
    "from pathlib import Path\nPath('a').rename('b')\nPath('c').touch()": (["mv a b", "touch c"], []),
    "from pathlib import Path\nPath('a').replace('b')\nPath('d').mkdir()": (["mv a b", "mkdir -p d"], []),
    "for path, text in {'a': '1', 'b': '2'}.items():\n    open(path, 'w').write(text)": (["a", "b"], []),
    "names = {'k': 'a'}\nopen(names['k'], 'w')\nopen(names['l'], 'w')": (["a"], []),
    "class A:\n    def go(self):\n        open('a', 'w')\nA().go()": (["a"], []),
    "class A:\n def __init__(self, p):\n  self.p = p\n def go(self):\n  open(self.p, 'w')\nA('a').go()": (["a"], []),
    "class A:\n    def never(self):\n        open('a', 'w')\nA()": ([], []),
    "import asyncio\nasync def main():\n    open('a', 'w')\nasyncio.run(main())": (["a"], []),
    "match x:\n    case 1:\n        open('a', 'w')\n    case _:\n        open('b', 'w')": (["a", "b"], []),
    "import sys\nopen('a', 'w')\nsys.exit(0)\nopen('b', 'w')": (["a"], []),
    "import sys\nif bad:\n    sys.exit(1)\nopen('b', 'w')": (["b"], []),
    "def f():\n    return 1\n    open('a', 'w')\nf()\nopen('b', 'w')": (["b"], []),
    "import shutil\nshutil.copy(unknown(), 'docs')\nshutil.copy(unknown(), 'a.py')": (["a.py"], []),
    "open('a.py'.replace('.py', '.txt'), 'w')": (["a.txt"], []),
    "import glob\nfor p in glob.glob('*.py'):\n    if x:\n        open(p, 'w')": ([], []),
}


@pytest.mark.parametrize("text", PROGRAMS)
def test_effects_of_a_program(text: str) -> None:
    effects = effects_of(text, ("fix.py", "given"))
    written, shown = PROGRAMS[text]
    assert [" ".join(change.command) or change.path for change in effects.writes] == written
    assert list(effects.shown) == shown


def test_commands_that_a_program_starts_are_told() -> None:
    text = "import os, subprocess\nos.system('rm a')\nsubprocess.run(['sed', '-i', 's/x y/z/', 'b'])"
    assert effects_of(text).commands == ("rm a", "sed -i 's/x y/z/' b")


def test_what_is_written_is_known_where_it_is_spelled_out() -> None:
    effects = effects_of("with open('a', 'w') as f:\n    f.write('one\\n')\n    f.write('two\\n')")
    assert effects.writes[0].content == "one\ntwo\n"


def test_a_write_in_a_loop_has_no_known_content() -> None:
    assert effects_of("f = open('a', 'w')\nfor i in [1, 2]:\n    f.write('x')").writes[0].content is None


@given(st.text(alphabet="open('a','w').rd\n ()[]{}=:+x1\\\"", max_size=300))
@settings(max_examples=200, deadline=None)
def test_no_program_is_too_strange(text: str) -> None:
    found = effects_of(f"open({text}")
    assert all(one.path in text for one in found.writes), "no file that is not named"


@pytest.mark.parametrize("text", ["open(" + "(" * 5000, "open(x)" + "+x" * 50_000, "open('\\d')\n" * 10_000])
def test_programs_have_bounds(text: str) -> None:
    assert effects_of(text).writes == ()
    assert cost(lambda: effects_of(text)) < LONGEST


GROWING = {
    "a list that doubles": "x = ['a']\n" + "x = x + x\n" * 60 + "for one in x: open(one, 'w')",
    "a text that doubles": "x = 'a'\n" + "x = x + x\n" * 60 + "open(x, 'w')",
    "a form that is filled": f"x = '{'%s' * 40_000}'\ny = '{'y' * 90_000}'\nopen(x % y, 'w')",
    "a part that is replaced": f"x = '{'a' * 40_000}'\ny = '{'y' * 90_000}'\nopen(x.replace('a', y), 'w')",
    "a list of lists": "x = ['a']\n" + "x = [x, x, x]\n" * 60 + "for one in x: open(one, 'w')",
}
MOST_BYTES = 64 << 20  # they need less than a tenth of it; without bounds it would be gigabytes


@pytest.mark.parametrize("name", GROWING)
def test_what_grows_with_every_line_has_bounds(name: str) -> None:
    tracemalloc.start()
    try:
        effects_of(GROWING[name])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MOST_BYTES
