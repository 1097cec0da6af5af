"""`eirkit view` and `eirkit watch` as people type them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from eirkit.cli import run
from eirkit.records.database import FinishedRun, SweepDatabase, SweepWriter
from tests.processes import PATIENCE_SECONDS, running, wait_until
from tests.report.folders import make_rescue, make_sweep


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_sweep(tmp_path_factory.mktemp("cli") / "sweep", seeds="0:1")


def test_view_prints_its_address_serves_it_and_ends_with_an_interrupt(sweep):
    words = [sys.executable, "-m", "eirkit", "view", str(sweep), "--no-browser", "--json"]
    with running(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        told = json.loads(process.stdout.readline())
        address = urlsplit(told["address"])
        connection = HTTPConnection(address.hostname or "", address.port, timeout=PATIENCE_SECONDS)
        connection.request("GET", f"/?{address.query}")
        assert connection.getresponse().status == 200
        connection.close()
        assert told["port"] == address.port
        process.send_signal(signal.SIGINT)
        _, complaint = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0
    assert complaint == ""


BROWSER = """#!{python}
import json, os, stat, sys, time, urllib.request
from pathlib import Path
noted = {{"command": Path("/proc/self/cmdline").read_text() if os.path.exists("/proc/self/cmdline") else str(sys.argv)}}
page = Path(sys.argv[1].removeprefix("file://"))
if page.is_absolute():
    noted["modes"] = [stat.S_IMODE(path.stat().st_mode) for path in (page, page.parent)]
    address = page.read_text().partition("url=")[2].partition(chr(34))[0]
    noted["status"] = urllib.request.build_opener(urllib.request.ProxyHandler({{}})).open(address).status
    noted["page"] = str(page)
Path({noted!r}).write_text(json.dumps(noted) + "\\n")
time.sleep({seconds})
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs an executable script")
@pytest.mark.parametrize("seconds", [0, 3_600], ids=["returns", "stays open"])
def test_view_keeps_its_token_out_of_the_arguments_of_the_browser(sweep, tmp_path, seconds):
    """A program in place of the browser notes what other users see of it, and follows the file that it is given."""
    script, noted = tmp_path / "browser", tmp_path / "noted.json"
    script.write_text(BROWSER.format(python=sys.executable, noted=str(noted), seconds=seconds))
    script.chmod(0o700)
    words = [sys.executable, "-m", "eirkit", "view", str(sweep), "--json"]
    environment = {**os.environ, "BROWSER": str(script), "DISPLAY": ":0"}
    with (
        (tmp_path / "complaint").open("w") as complaint,
        running(words, stdout=subprocess.PIPE, stderr=complaint, text=True, env=environment) as process,
    ):
        token = urlsplit(json.loads(process.stdout.readline())["address"]).query.removeprefix("token=")
        wait_until(lambda: noted.exists() and noted.read_text().endswith("\n"), "the browser", process)
        seen = json.loads(noted.read_text())
        assert len(token) > 20
        assert token not in seen["command"]
        assert (seen["modes"], seen["status"]) == ([0o600, 0o700], 200)
        wait_until(lambda: not Path(seen["page"]).parent.exists(), "the file to be removed", process)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_SECONDS) == 0
    assert (tmp_path / "complaint").read_text() == ""


@pytest.mark.skipif(sys.platform == "win32", reason="needs an executable script")
def test_view_leaves_no_file_behind_when_its_browser_never_comes(sweep, tmp_path):
    own = tmp_path / "temporary"
    own.mkdir()
    environment = {**os.environ, "BROWSER": "true", "DISPLAY": ":0", "TMPDIR": str(own)}
    words = [sys.executable, "-m", "eirkit", "view", str(sweep), "--json"]
    with running(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as process:
        process.stdout.readline()
        wait_until(lambda: list(own.glob("*/open.html")), "the file", process)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_SECONDS)
    assert (process.returncode, list(own.iterdir())) == (0, [])


def test_a_folder_without_runs_is_one_line(tmp_path, capsys):
    assert run(["view", str(tmp_path), "--no-browser"]) == 2
    assert "holds no sweep, evidence, analysis or compaction benchmark; write one with" in capsys.readouterr().err
    assert run(["view", str(tmp_path / "missing"), "--no-browser"]) == 2
    assert run(["watch", str(tmp_path), "--once"]) == 2


def test_watch_once_says_how_far_a_sweep_is(sweep, capsys):
    assert run(["watch", str(sweep), "--once", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["state"], told["runs"], told["planned_runs"], told["lost"]) == ("complete", 12, 12, 0)
    assert len(told["cells"]) == 12
    summary = json.loads((sweep / "summary.json").read_text("utf-8"))
    assert {c["cell"]: c["accuracy"] for c in told["cells"]} == {r["cell"]: r["accuracy"] for r in summary["rows"]}


def test_watch_is_a_table_for_reading(sweep, capsys):
    assert run(["watch", str(sweep), "--once"]) == 0
    shown = capsys.readouterr().out
    assert "complete: 12 of 12 runs" in shown
    assert "reference/sloppy" in shown


def test_watch_follows_until_the_sweep_is_complete(sweep, tmp_path):
    """The last runs are written while it watches."""
    half = tmp_path / "half"
    half.mkdir()
    (half / "manifest.json").write_bytes((sweep / "manifest.json").read_bytes())
    words = [sys.executable, "-m", "eirkit", "watch", str(half)]
    with SweepDatabase(sweep) as database:
        runs = [FinishedRun(record, database.event_lines(record.run)) for record in database.records()]
    with SweepWriter(half) as writer:
        writer.add(runs[:5], durable=False)
        with running(words, stdout=subprocess.PIPE, text=True, env={**os.environ, "COLUMNS": "100"}) as process:
            for ended in runs[5:]:
                writer.add([ended], durable=False)
            shown, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0
    assert "complete: 12 of 12 runs" in shown


def test_watch_takes_any_experiment_and_one_at_a_time(tmp_path, capsys):
    make_rescue(tmp_path / "rescue")
    capsys.readouterr()
    assert run(["watch", str(tmp_path), "--once"]) == 0
    assert "oracle" in capsys.readouterr().out
    make_rescue(tmp_path / "second")
    capsys.readouterr()
    assert run(["watch", str(tmp_path), "--once"]) == 2
    assert "holds no single experiment; give one of those in it: rescue, second" in capsys.readouterr().err
