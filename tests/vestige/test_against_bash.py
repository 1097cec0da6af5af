"""Commands run by a real shell in a scratch repository: the files that changed are the files said to be written."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from eirkit.vestige.shell.effects import shell_touches
from eirkit.vestige.shell.state import ShellState
from tests.processes import completed

FILES = ("a.py", "b.py", "src/pkg/m.py", "src/pkg/n.py", "tests/test_m.py", "docs/x.txt")
OVER = "printf 'new\\n' > a.py"
HUNK = "@@ -1,2 +1,2 @@\n-src/pkg/m.py 1 foo\n+new\n src/pkg/m.py 2 foo\n"
PATCH = f"--- a/src/pkg/m.py\n+++ b/src/pkg/m.py\n{HUNK}"
HERE = f"--- a/m.py\n+++ b/m.py\n{HUNK}"
SED = "sed -i s/foo/x/"


def python(*lines: str) -> str:
    return "python3 - <<'E'\n" + "\n".join(lines) + "\nE"


# Of each run the last command counts; those before it lead there.
EXACT = (
    # Files that are put back, written over or made.
    ("cat a.py", OVER, "git checkout a.py"),
    (OVER, "git checkout a.py"),
    ("cat a.py", OVER, "git checkout ."),
    (OVER, "git checkout ."),
    (OVER, "git stash push -q -m words a.py"),
    ("echo 1 > n.py; mkdir d; echo 1 > d/q", "git clean -fq"),
    ("cat a.py", OVER, "git stash"),
    ("cat a.py", OVER, "git reset --hard"),
    ("cat a.py", OVER, "git clean -fd"),
    ("echo 1 > n.py; cat n.py", "git checkout ."),
    ("echo 1 > n.py; cat n.py", "git checkout n.py"),
    ("echo 1 > n.py; cat n.py", "git clean -fd"),
    ("echo x >> a.py", "git restore --source HEAD --staged --worktree a.py"),
    ("echo x >> a.py", "git restore -SW a.py"),
    ("echo x >> a.py", "git restore --staged a.py"),
    ("echo x >> a.py", "git checkout -f"),
    ("echo x >> a.py; echo y >> b.py", "git checkout -f a.py"),
    ("git branch topic/x", "git checkout topic/x"),
    ("echo x >> a.py && git commit -am x", "git revert --no-edit HEAD"),
    ("echo x >> a.py && git commit -am x", "git reset --hard HEAD~1"),
    ("echo x >> a.py; echo y >> b.py", "git stash push -- b.py"),
    ("echo x >> a.py; echo y >> b.py", "git stash push -m words b.py"),
    ("echo x >> a.py; echo y >> b.py", "git stash save b.py"),
    ("echo x >> a.py; echo y >> b.py", "git stash push b.py", "git stash pop"),
    ("echo x >> a.py; echo y > n.py", "git stash -u"),
    ("echo x >> a.py; echo y > n.py", "git stash -u", "git stash pop"),
    ("echo x >> a.py", "git stash", "git stash apply"),
    ("echo x >> a.py", "git stash", "git stash drop"),
    # Patches.
    (f"cd src/pkg && git apply <<'E'\n{PATCH}E",),
    (f"cd src/pkg && git apply <<'E'\n{HERE}E",),
    (f"cd src && git apply <<'E'\ndiff --git a/src/pkg/m.py b/src/pkg/m.py\n{PATCH}E",),
    (f"cd docs && git apply <<'E'\ndiff --git a/src/pkg/m.py b/src/pkg/m.py\n{PATCH}E",),
    (f"git apply --directory=src/pkg <<'E'\n{HERE}E",),
    ("echo x >> a.py", "git diff | git apply -R"),
    ("echo x >> src/pkg/m.py", "git diff > p; git checkout src", "cd src && git apply ../p"),
    ("echo x >> a.py; git commit -qam x", "git diff HEAD~1 -- a.py | git apply -R"),
    # Folders.
    ("mkdir d && cp a.py d",),
    ("mkdir d.d", "cp a.py d.d", "cp b.py d.d"),
    ("cat docs/x.txt", "cp a.py docs"),
    ("find .", "mv a.py docs"),
    ("cat src/pkg/m.py src/pkg/n.py", "mv src/pkg src/old"),
    ("cat src/pkg/m.py src/pkg/n.py; mkdir d", "git mv src/pkg d"),
    ("cat src/pkg/m.py src/pkg/n.py", "cp -r src/pkg src/old"),
    ("cat src/pkg/m.py src/pkg/n.py; mkdir d", "cp -r src/pkg/. d"),
    ("mv -t docs a.py b.py",),
    ("cp -v a.py docs",),
    ("cp gone.py c.py",),
    ("cp a.py gone.py docs/",),
    ("cp a.py a.py.old && cp a.py.back a.py",),
    # Words.
    ("pushd src; echo 1 > q; popd; echo 2 > r",),
    ("pushd src; pushd pkg; echo 1 > q; popd; echo 1 > s; popd; echo 2 > r",),
    ("(pushd src; echo 1 > q); echo 2 > r",),
    ("touch f{1..3}.txt g{01..03} {a..c}.q h{3..1..2} {x,y}{1..2}",),
    ("for i in {1..3}; do echo $i > f$i; done",),
    ("echo x > '{1..3}'",),
    ('files=(a.py "my b.py"); for f in "${files[@]}"; do echo 1 >> "$f"; done',),
    (f'files=(a.py); files+=(b.py); {SED} "${{files[@]}}"',),
    (f"files=(a.py b.py); {SED} $files",),
    (f"files=(a.py b.py); {SED} ${{files[1]}}",),
    (f'files=(src/pkg/{{m,n}}.py); {SED} "${{files[@]}}"',),
    ("ls *.py", f'files=(*.py); {SED} "${{files[@]}}"'),
    (f"f=a; f+=.py; {SED} $f",),
    ("f=src/pkg/m.py; echo x > ${f%.py}.txt; echo y > ${f##*/}.old; echo z > ${f/m.py/k.py}; echo 1 > ${f%%/*}_x",),
    ('for f in a.py b.py; do mv "$f" "${f%.py}.txt"; done',),
    ('echo x > $PWD/q; cd src; echo y > "$(pwd)/r"; echo z > $OLDPWD/s',),
    ("for ((i=0;i<2;i++)); do echo 1 >> f; done",),
    ("for i in $(seq 1 3); do echo $i > f$i; done",),
    ("for f in a.py b.py; do cp $f docs/$(basename $f .py).txt; done",),
    ("cat > r.sh <<'E'\nfor f in \"$@\"; do echo 1 >> $f; done\nE", "bash r.sh a.py b.py"),
    # Names that another command lists.
    ("grep -rl foo src", f"grep -rl foo src | xargs {SED}"),
    ("grep -rn foo src", f"grep -rl foo src | xargs -I% {SED} %"),
    ("cd src && grep -rn foo .", f"cd src && grep -rl foo . | xargs {SED}"),
    ("grep -rn foo src", f"for f in $(grep -rl foo src); do {SED} $f; done"),
    ("git grep -n foo src", f"{SED} $(git grep -l foo src)"),
    ("find src -name '*.py'", f"find src -name '*.py' -exec {SED} {{}} +"),
    ("find src -name '*.py'", f"find src -name '*.py' -print0 | xargs -0 {SED}"),
    ("find src -name '*.py'", "find src -name '*.py' -delete"),
    ("cat src/pkg/m.py", f"find . -type f -name m.py -exec {SED} {{}} \\;"),
    ("find . -name '*.py'", f"for f in $(ls src/pkg/*.py); do {SED} $f; done"),
    ("echo 1 >> a.py; echo 1 > n.py", f"git diff --name-only | xargs {SED}"),
    # Backups, scripts and archives.
    ("sed -i.bak s/foo/x/ a.py gone.py",),
    ("sed --in-place=.orig s/foo/x/ a.py",),
    ("sed -n -e '1w o' -e '/2/w p' a.py",),
    ("sed 's#foo#x#gw o.txt' a.py",),
    ("sed 's/foo/w x/' a.py",),
    ("""awk '{print $1 > "o"} NR>2 {print >> "p"}' a.py""",),
    ("tar czf x.tgz src docs",),
    ("tar cf x.tar a.py src; rm -r a.py src", "tar xvf x.tar"),
    ("gzip a.py",),
    ("gzip a.py", "gunzip a.py.gz"),
    # Python.
    (python("from pathlib import Path", "Path('a.py').rename('c.py')", "Path('q').touch()"),),
    ("cat a.py", python("import pathlib", "pathlib.Path('a.py').touch()")),
    (python("files = {'x.py': '1', 'y.py': '2'}", "for p, t in files.items():", "    open(p, 'w').write(t)"),),
    (python("class A:", " def go(self, p):", "  self.put(p)", " def put(self, p):", "  open(p, 'w')", "A().go('q')"),),
    (python("import asyncio", "async def main():", "    open('q', 'w')", "asyncio.run(main())"),),
    ("cat docs/x.txt", python("import shutil", "shutil.copy('a.py', 'docs')")),
    ("cat src/pkg/m.py src/pkg/n.py", python("import shutil", "shutil.copytree('src/pkg', 'old')")),
    (python("import sys", "open('q', 'w')", "sys.exit(0)", "open('r', 'w')"),),
    (python("import shutil", "if True:", "    raise ValueError", "shutil.copy('a.py', 'c.py')"),),
    ("ls *.py", python("import glob", "for p in glob.glob('*.py'):", "    open(p, 'w').write('1')")),
)  # fmt: skip

# What cannot be known is left out, and nothing is put in its place.
UNKNOWN = (
    ("cp a.py docs",),
    ("mv tests tests2",),
    (f"grep -rl foo src | xargs {SED}",),
    ("grep -rn 'foo' --include='*.txt' .", f"grep -rl foo . | xargs {SED}"),
    ("grep -rn foo src", f"grep -rl foo src | head -1 | xargs {SED}"),
    ("grep -rn foo src", f"for f in $(grep -rl foo src | grep -v n.py); do {SED} $f; done"),
    (f"find . -name '*.py' -exec {SED} {{}} +",),
    ("ls *.py", f"ls *.py | head -1 | xargs {SED}"),
    ("declare -A m=([x]=a.py [y]=b.py); for k in \"${!m[@]}\"; do echo 1 >> ${m[$k]}; done",),
    ("echo x > ${SURELY_UNSET:-q}.txt",),
    ("split -l 1 a.py part_",),
    ("""awk '{print > "o" NR}' a.py""",),
    ("tar cf x.tar a.py; rm a.py", "tar xf x.tar"),
    ("ls *.py", python("import glob", "for p in glob.glob('*.py'):", "    if p == 'a.py':", "        open(p, 'w')")),
    ("touch f{1..100}.txt",),
)  # fmt: skip

needs_a_shell = pytest.mark.skipif(
    not all(map(shutil.which, ("bash", "git", "python3"))), reason="there is no bash, git or python3 to compare with"
)


@needs_a_shell
@pytest.mark.parametrize("commands", EXACT, ids=lambda commands: commands[-1][:70])
def test_what_changed_is_what_was_said_to_be_written(commands: tuple[str, ...], tmp_path: Path) -> None:
    said, changed = both_ways(commands, tmp_path / "repo")
    assert said == changed


@needs_a_shell
@pytest.mark.parametrize("commands", UNKNOWN, ids=lambda commands: commands[-1][:70])
def test_where_names_cannot_be_known_none_is_made_up(commands: tuple[str, ...], tmp_path: Path) -> None:
    said, changed = both_ways(commands, tmp_path / "repo")
    assert changed
    assert said < changed


def both_ways(commands: tuple[str, ...], repo: Path) -> tuple[set[str], set[str]]:
    """Run commands and follow them; return the files that the last is said to write, and those that it changed."""
    set_up(repo)
    place = ShellState(roots=(str(repo),), folder=str(repo), keeps_folder=False)
    said: set[str] = set()
    changed: set[str] = set()
    for command in commands:
        before = contents(repo)
        output, code = run(command, repo)
        after = contents(repo)
        said = {write.path for write in shell_touches(command, output, code, place).writes}
        changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    return said, changed


def set_up(repo: Path) -> None:
    for name in FILES:
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_text("".join(f"{name} {line} foo\n" for line in range(1, 4)))
    output, code = run("git init -q . && git add -A && git commit -qm first", repo)
    assert code == 0, output


def run(command: str, folder: Path) -> tuple[str, int]:
    names = {f"GIT_{role}_{part}": "x@example.org" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
    alone = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_PAGER": "cat", "LC_ALL": "C"}
    done = completed(
        ["bash", "-c", command], cwd=folder, env={**os.environ, **names, **alone}, stderr=subprocess.STDOUT
    )
    return done.stdout, done.returncode


def contents(repo: Path) -> dict[str, bytes]:
    files = (path for path in repo.rglob("*") if path.is_file() and ".git" not in path.relative_to(repo).parts)
    return {path.relative_to(repo).as_posix(): path.read_bytes() for path in files}
