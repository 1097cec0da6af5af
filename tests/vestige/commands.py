"""Commands as agents type them, each with its output and the files that it read and wrote, written for this project."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Case:
    """One command in a repository at /repo, after others that ran before it."""

    command: str
    reads: str = ""  # paths, apart by blanks
    writes: str = ""
    output: str = "some text\n"
    exit_code: int = 0
    before: tuple[str, ...] = ()


FIX = "cat > fix.py <<'EOF'\np = 'src/a.py'\ns = open(p).read()\nopen(p, 'w').write(s.replace('x', 'y'))\nEOF"
CHECKED_FIX = (
    "cat > fix.py <<'EOF'\ns = open('a.py').read()\nif 'x' in s:\n    open('a.py', 'w').write(s.replace('x', 'y'))\n"
    "    print('Done.')\nelse:\n    print('No x in it:')\n    print(s)\nEOF"
)
SHELL_FIX = "cat > fix.sh <<'EOF'\n#!/bin/bash\nsed -i 's/x/y/' src/a.py\nrm -f old.txt\nEOF"
PATCH = "--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-x\n+y\n"
FOUND = "src/a.py:3:def f():\nsrc/b.py:7:    f()\n"
DIFF = (
    f"diff --git a/src/a.py b/src/a.py\n{PATCH}"
    "diff --git a/src/c.py b/src/c.py\n--- a/src/c.py\n+++ b/src/c.py\n@@ -2 +2 @@\n-1\n+2\n"
)
TRACEBACK = 'Traceback (most recent call last):\n  File "fix.py", line 2, in <module>\nFileNotFoundError: src/a.py\n'

VIEWING = (
    Case("cat src/a.py", "src/a.py"),
    Case("cat /repo/src/a.py", "src/a.py"),
    Case("cat ./src/../src/a.py", "src/a.py"),
    Case('cat "src/a.py"', "src/a.py"),
    Case("cat /etc/hosts", "/etc/hosts"),
    Case("cat ~/notes.txt", "~/notes.txt"),
    Case("cat -n src/a.py", "src/a.py", output="     1\tx\n"),
    Case("cat src/a.py src/b.py", "src/a.py src/b.py"),
    Case("cat src/a.py; cat src/b.py", "src/a.py src/b.py"),
    Case("cat missing.py", output="cat: missing.py: No such file or directory\n", exit_code=1),
    Case("cat empty.py", output=""),
    Case("head -n 20 src/a.py", "src/a.py"),
    Case("head -20 src/a.py", "src/a.py"),
    Case("tail -n +10 src/a.py | head -5", "src/a.py"),
    Case("head -n 40 src/a.py | tail -n 10", "src/a.py"),
    Case("tail -f log.txt", "log.txt"),
    Case("nl -ba src/a.py | sed -n '10,20p'", "src/a.py", output="    10\tx\n"),
    Case("sed -n '10,20p' src/a.py", "src/a.py"),
    Case("sed -n 10,20p src/a.py src/b.py", "src/a.py src/b.py"),
    Case("sed -n '/def f/,/return/p' src/a.py", "src/a.py"),
    Case("sed 's/x/y/' src/a.py", "src/a.py"),
    Case("awk 'NR>=5 && NR<=9' src/a.py", "src/a.py"),
    Case("awk '{print $1}' data.txt", "data.txt"),
    Case("less src/a.py", "src/a.py"),
    Case("bat -r 3:9 src/a.py", "src/a.py"),
    Case("sort names.txt | uniq -c", "names.txt"),
    Case("cut -d, -f1 table.csv", "table.csv"),
    Case("xxd logo.png | head", "logo.png"),
    Case("strings bin/tool", "bin/tool"),
    Case("jq '.name' package.json", "package.json"),
    Case("python -m json.tool data.json", "data.json"),
    Case("diff src/a.py src/b.py", "src/a.py src/b.py", output="1c1\n< x\n---\n> y\n", exit_code=1),
    Case("cat < src/a.py", "src/a.py"),
    Case("cat src/a.py | grep -n def", "src/a.py", output="3:def f():\n"),
    Case("cat src/a.py 2>/dev/null | head -3", "src/a.py"),
    Case("cat src/a.py || cat src/b.py", "src/a.py"),
    Case("cat src/a.py >/dev/null && echo done", output="done\n"),
    Case("wc -l src/a.py", output="12 src/a.py\n"),
    Case("cat src/a.py | wc -l", output="12\n"),
    Case("ls -la src", output="a.py\n"),
    Case("find . -name '*.py'", output="./src/a.py\n"),
    Case("tree -L 2", output="src\n"),
    Case("file src/a.py", output="src/a.py: Python script\n"),
    Case("stat src/a.py"),
    Case("echo $(cat VERSION)", "VERSION", output="1.2\n"),
    Case("x=src/a.py; cat $x", "src/a.py"),
    Case('d=src && cat "$d/a.py"', "src/a.py"),
    Case("for f in src/a.py src/b.py; do cat $f; done", "src/a.py src/b.py"),
    Case("for f in a b; do echo \"== $f\"; cat src/$f.py; done", "src/a.py src/b.py", output="== a\n1\n== b\n2\n"),
    Case("cat src/{a,b}.py", "src/a.py src/b.py"),
    Case("cat src/*.py", "src/a.py src/b.py", before=("touch src/a.py src/b.py docs/c.py",)),
    Case("cat lib/*.js"),
    Case("cd src && cat a.py", "src/a.py"),
    Case("(cd src && cat a.py); cat b.py", "src/a.py b.py"),
    Case("pushd src; cat a.py; popd", "src/a.py"),
    Case("sudo cat /etc/passwd", "/etc/passwd"),
    Case("timeout 10 cat src/a.py", "src/a.py"),
    Case("env LANG=C cat src/a.py", "src/a.py"),
    Case("time cat src/a.py", "src/a.py"),
    Case("bash -c 'cat src/a.py'", "src/a.py"),
    Case("bash -lc 'cd src && head -5 a.py'", "src/a.py"),
    Case("echo src/a.py src/b.py | xargs cat", "src/a.py src/b.py"),
    Case("if [ -f src/a.py ]; then cat src/a.py; else echo none; fi", "src/a.py"),
    Case("test -f x && cat x", "x"),
    Case("# look first\ncat src/a.py", "src/a.py"),
    Case("cat \\\n  src/a.py", "src/a.py"),
    Case("show() { cat src/$1; }\nshow a.py", "src/a.py"),
)  # fmt: skip

SEARCHING = (
    Case("grep -n 'def f' src/a.py", "src/a.py", output="3:def f():\n"),
    Case("grep -n nothing src/a.py", output="", exit_code=1),
    Case("grep -rn 'f()' src", "src/a.py src/b.py", output=FOUND),
    Case("grep -rn 'f()' .", "src/a.py src/b.py", output=FOUND.replace("src", "./src")),
    Case("grep -rn 'f()' /repo/src | head", "src/a.py src/b.py", output=FOUND.replace("src", "/repo/src")),
    Case("grep -r --include='*.py' -n 'f()' src", "src/a.py src/b.py", output=FOUND),
    Case("grep -n 'f()' src/a.py src/b.py", "src/b.py", output="src/b.py:7:    f()\n"),
    Case("grep -rl 'f()' src", output="src/a.py\nsrc/b.py\n"),
    Case("grep -c x src/a.py", output="4\n"),
    Case("grep -q x src/a.py && echo yes", output="yes\n"),
    Case("grep -rn 'f()' src | cut -d: -f1 | sort -u", output="src/a.py\nsrc/b.py\n"),
    Case("grep -rn 'f()' src | wc -l", output="2\n"),
    Case("rg -n 'f\\(\\)' src", "src/a.py src/b.py", output=FOUND),
    Case("rg -n foo", "src/a.py src/b.py", output=FOUND),
    Case("git grep -n 'f()'", "src/a.py src/b.py", output=FOUND),
    Case("find . -name '*.py' | xargs grep -n 'f()'", "src/a.py src/b.py", output=FOUND),
    Case("find . -name '*.py' -exec grep -Hn 'f()' {} \\;", "src/a.py src/b.py", output=FOUND),
    Case("find . -name '*.py' | xargs grep -l 'f()'", output="./src/a.py\n"),
    Case("grep -n x src/a.py || echo none", output="none\n"),
    Case("egrep -n 'a|b' src/a.py", "src/a.py", output="1:a\n"),
)

WRITING = (
    Case("cat > src/new.py <<'EOF'\nx = 1\nEOF", "", "src/new.py", output=""),
    Case("cat <<EOF > src/new.py\nx = $HOME\nEOF", "", "src/new.py", output=""),
    Case("cat <<-EOF >> notes.md\n\ttext\n\tEOF", "", "notes.md", output=""),
    Case("cat > a.txt <<'E1' && cat > b.txt <<'E2'\none\nE1\ntwo\nE2", "", "a.txt b.txt", output=""),
    Case("cat > t.txt <<'EOF'\nnot the end: EOF\nEOF\ncat t.txt", "t.txt", "t.txt", output="not the end: EOF\n"),
    Case("echo 'x = 1' > x.py", "", "x.py", output=""),
    Case("echo more >> x.py 2>&1", "", "x.py", output=""),
    Case("printf 'a\\n' > x.txt", "", "x.txt", output=""),
    Case("python t.py > out.log 2> err.log", "", "out.log err.log", output=""),
    Case("make &> build.log", "", "build.log", output=""),
    Case("make 2>&1 | tee build.log", "", "build.log"),
    Case("echo x | tee -a a.txt b.txt", "", "a.txt b.txt", output="x\n"),
    Case("sed -i 's/x/y/' src/a.py", "", "src/a.py", output=""),
    Case("sed -i.bak -e 's/x/y/' -e '3d' src/a.py src/b.py", "", "src/a.py src/b.py", output=""),
    Case("sed -i '5i\\    x = 1' src/a.py && sed -n '1,9p' src/a.py", "src/a.py", "src/a.py"),
    Case("sed -i 's/x/y/' gone.py", output="sed: can't read gone.py: No such file or directory\n", exit_code=2),
    Case("sed -i 's/x' src/a.py", output="sed: -e expression #1, char 3: unterminated `s' command\n", exit_code=1),
    Case("sed -i 's/x/y/' src/a.py && pytest", "", "src/a.py", output="1 failed\n", exit_code=1),
    Case("sed -i 's/(/[/' src/a.py)", output="bash: -c: line 1: syntax error near `)'\n", exit_code=2),
    Case("perl -pi -e 's/x/y/' src/a.py", "", "src/a.py", output=""),
    Case("perl -0777 -i -pe 's/x/y/' src/a.py", "", "src/a.py", output=""),
    Case("cp src/a.py src/b.py", "", "src/b.py", output=""),
    Case("cp src/a.py backup/", "", "backup/a.py", output=""),
    Case("mv src/a.py src/b.py", "", "src/a.py src/b.py", output=""),
    Case("rm -f src/a.py src/b.py", "", "src/a.py src/b.py", output=""),
    Case("rm a.py b.py", "", "a.py", output="rm: cannot remove 'b.py': No such file or directory\n", exit_code=1),
    Case("rm a.py && rm b.py", output="rm: cannot remove 'a.py': No such file or directory\n", exit_code=1),
    Case("rm -rf tmp", "", "tmp/a tmp/b", output="", before=("echo 1 > tmp/a; echo 2 > tmp/b",)),
    Case("rm -rf build", output=""),
    Case("rm -rf old.py build", "", "old.py", output=""),
    Case("rm -rf tmp", "", "tmp/b", output="", before=("echo 1 > tmp/a; echo 2 > tmp/b", "rm tmp/a")),
    Case("touch pkg/__init__.py", "", "pkg/__init__.py", output=""),
    Case("mkdir -p pkg/sub && chmod +x run.sh", output=""),
    Case("ln -s ../a.py link.py", "", "link.py", output=""),
    Case("truncate -s 0 log.txt", "", "log.txt", output=""),
    Case("dd if=/dev/zero of=disk.img count=1", "", "disk.img"),
    Case("curl -s -o page.html https://example.org", "", "page.html", output=""),
    Case("awk '{print}' a.txt > b.tmp && mv b.tmp a.txt", "", "b.tmp a.txt", output=""),
    Case("black src/a.py", "", "src/a.py"),
    Case("black --check src/a.py", exit_code=1),
    Case("ruff check --fix src/a.py", "", "src/a.py"),
    Case("cat a.txt > nowhere/b.txt", output="bash: line 1: nowhere/b.txt: No such file or directory\n", exit_code=1),
    Case("while read f; do echo $f; done < list.txt"),
    Case("pip install -e .", output="ok\n"),
    Case("export A=1; unset B", output=""),
)

RUNNING = (
    Case("python fix.py", "", "src/a.py", before=(FIX,)),
    Case("python3 ./fix.py && git diff --stat", "", "src/a.py", before=(FIX,)),
    Case(f"{FIX}\npython fix.py", "", "fix.py src/a.py"),
    Case("python fix.py", output=TRACEBACK, exit_code=1, before=(FIX,)),
    Case("python fix.py", "", "a.py", output="Done.\n", before=(CHECKED_FIX,)),
    Case("python fix.py", "a.py", "a.py", output="No x in it:\nz = 1\n", before=(CHECKED_FIX,)),
    Case("cd tools && python ../fix.py", "", "tools/src/a.py", before=(FIX,)),
    Case("bash fix.sh", "", "src/a.py old.txt", before=(SHELL_FIX,)),
    Case("chmod +x fix.sh && ./fix.sh", "", "src/a.py old.txt", before=(SHELL_FIX,)),
    Case("python unknown.py", output="ok\n"),
    Case("python -c \"open('x.txt', 'w').write('1')\"", "", "x.txt", output=""),
    Case("python -c \"print(open('src/a.py').read())\"", "src/a.py"),
    Case("python -c \"print(len(open('src/a.py').read()))\"", output="12\n"),
    Case(
        "python - <<'EOF'\nfrom pathlib import Path\nPath('src/a.py').write_text('x')\nEOF", "", "src/a.py", output=""
    ),
    Case("python3 <<EOF\nimport os\nos.rename('a.py', 'b.py')\nEOF", "", "a.py b.py", output=""),
    Case("python - <<'EOF'\nthis is no Python: open('x', 'w')\nEOF", exit_code=1),
    Case("python -m pytest src/test_a.py -q", output="1 passed\n"),
    Case('python -c \'import subprocess; subprocess.run(["sed", "-i", "s/x/y/", "src/a.py"])\'', "", "src/a.py"),
    Case("node build.js", output="ok\n"),
)

GIT = (
    Case("git status", output="M src/a.py\n"),
    Case("git diff", "src/a.py src/c.py", output=DIFF),
    Case("git diff --stat", output=" src/a.py | 2 +-\n"),
    Case("git diff --name-only", output="src/a.py\n"),
    Case("git add -A && git diff --cached", "src/a.py src/c.py", output=DIFF),
    Case("git show HEAD:src/a.py", "src/a.py"),
    Case("git show HEAD", output=DIFF),
    Case("git log -p -1", output=DIFF),
    Case("git blame src/a.py", "src/a.py"),
    Case("git checkout -- src/a.py", "", "src/a.py", output=""),
    Case("git checkout HEAD~1 src/a.py", "", "src/a.py", output=""),
    Case("git checkout -b topic", output="Switched to a new branch 'topic'\n"),
    Case("git restore src/a.py", "", "src/a.py", output=""),
    Case("git checkout .", "", "src/a.py", output="", before=("sed -i 's/x/y/' src/a.py",)),
    Case("git stash", "", "src/a.py", before=("sed -i 's/x/y/' src/a.py",)),
    Case("git stash pop", "", "src/a.py", before=("sed -i 's/x/y/' src/a.py", "git stash")),
    Case("git reset --hard", "", "src/a.py", before=("sed -i 's/x/y/' src/a.py",)),
    Case("git reset HEAD src/a.py", before=("sed -i 's/x/y/' src/a.py",)),
    Case("git clean -fd", "", "new.py", before=("echo 1 > new.py",)),
    Case(f"git apply <<'EOF'\n{PATCH}EOF", "", "src/a.py", output=""),
    Case("git apply fix.patch", "", "src/a.py", output="", before=(f"cat > fix.patch <<'EOF'\n{PATCH}EOF",)),
    Case("git apply fix.patch", output="error: patch failed: src/a.py:1\n", exit_code=1,
         before=(f"cat > fix.patch <<'EOF'\n{PATCH}EOF",)),
    Case("git apply --check fix.patch", before=(f"cat > fix.patch <<'EOF'\n{PATCH}EOF",)),
    Case("git mv a.py b.py", "", "a.py b.py", output=""),
    Case("git rm a.py", "", "a.py"),
    Case("git -C sub checkout -- x.py", "", "sub/x.py", output=""),
    Case("git commit -m \"$(cat <<'EOF'\nmessage\nEOF\n)\"", output="1 file changed\n"),
    Case(f"patch -p1 <<'EOF'\n{PATCH}EOF", "", "src/a.py", output="patching file src/a.py\n"),
    Case(f"patch -p1 <<'EOF'\n{PATCH}EOF", "", "src/a.py.orig src/a.py.rej", exit_code=1,
         output="patching file src/a.py\n1 out of 1 hunk FAILED -- saving rejects to file src/a.py.rej\n"),
    Case(f"patch -p1 <<'EOF'\n{PATCH}EOF", "", "src/a.py.rej", exit_code=1,
         output="patching file src/a.py\nSkipping patch.\n"
         "1 out of 1 hunk ignored -- saving rejects to file src/a.py.rej\n"),
    Case("patch -p1 < fix.patch", "", "src/a.py", output="", before=(f"cat > fix.patch <<'EOF'\n{PATCH}EOF",)),
    Case("git diff > all.patch && git checkout . && git apply all.patch", "", "all.patch src/a.py",
         output="", before=("sed -i 's/x/y/' src/a.py",)),
)  # fmt: skip


CASES = (*VIEWING, *SEARCHING, *WRITING, *RUNNING, *GIT)
