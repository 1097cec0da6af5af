"""Who the viewer talks to: loopback, its own name, whoever has the token, and nothing but reading."""

from __future__ import annotations

import html
import http.client
import json
import os
import re
import socket
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from eirkit.errors import EirkitError, UsageError
from eirkit.records.database import APPLICATION
from eirkit.report.viewer.documents import ShownMessage
from eirkit.report.viewer.excerpts import LONGEST, Excerpt, TextPiece, more_of, shorten
from eirkit.report.viewer.folders import open_root
from eirkit.report.viewer.logs import LogFolders
from eirkit.report.viewer.routes import Viewer
from eirkit.report.viewer.server import HOST, LONGEST_ADDRESS, ViewerServer, encode
from tests.processes import PATIENCE_SECONDS
from tests.report.folders import make_sweep

NOW = 1_000_000_000.0  # seconds; any moment will do


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("view")
    (root / "secret.txt").write_text("not for showing")
    make_sweep(root / "sweep", seeds="0:1")
    return root


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[ViewerServer]:
    made = ViewerServer(Viewer(open_root(folder), LogFolders(), lambda: NOW))
    thread = threading.Thread(target=made.serve_forever, args=(0.02,))
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def ask(
    server: ViewerServer, path: str, *, method: str = "GET", host: str | None = None, cookie: bool = True
) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection(HOST, server.port, timeout=PATIENCE_SECONDS)
    headers = {"Host": host or f"{HOST}:{server.port}"}
    if cookie:
        headers["Cookie"] = f"other=1; {server.cookie}={server.token}"
    try:
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        return response, response.read()
    finally:
        connection.close()


def test_it_listens_on_loopback_alone(server):
    assert server.server_address[0] == "127.0.0.1"
    assert server.address.startswith(f"http://127.0.0.1:{server.port}/?token=")
    with pytest.raises(ConnectionRefusedError):  # another address of this very machine
        socket.create_connection(("127.0.0.2", server.port), timeout=2)


@pytest.mark.parametrize("path", ["/", "/index.js", "/index.css", "/api/folders"])
def test_nothing_is_said_without_the_token(server, path):
    response, body = ask(server, path, cookie=False)
    assert response.status == 403
    assert b"token" in body
    assert response.getheader("Set-Cookie") is None


def test_a_wrong_token_opens_nothing(server):
    for token in ("x", server.token[:-1], server.token + "x", "", "%00", "é"):
        assert ask(server, f"/?token={token.encode().hex()}", cookie=False)[0].status == 403


def test_the_token_comes_once_and_then_as_a_cookie_that_scripts_and_other_sites_do_not_have(server):
    response, body = ask(server, f"/?token={server.token}", cookie=False)
    assert response.status == 200
    assert b'id="page"' in body
    kept = response.getheader("Set-Cookie")
    assert kept is not None
    assert {part.strip() for part in kept.split(";")} == {
        f"{server.cookie}={server.token}", "HttpOnly", "SameSite=Strict", "Path=/",
    }  # fmt: skip
    assert server.token.encode() not in body
    assert ask(server, "/")[0].getheader("Set-Cookie") is None


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost:", "[::1]:{port}"]
)
def test_other_hosts_names_are_refused_even_with_the_token(server, host):
    response, body = ask(server, "/api/folders", host=host.format(port=server.port))
    assert response.status == 421
    assert b"sweep" not in body


def test_localhost_is_our_name_too(server):
    assert ask(server, "/api/folders", host=f"localhost:{server.port}")[0].status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE", "BREW"])
def test_it_is_for_reading(server, method):
    response, _ = ask(server, "/api/folders", method=method)
    assert response.status == 405
    assert response.getheader("Allow") == "GET"


@pytest.mark.parametrize(
    "path",
    [
        "/secret.txt",
        "/../secret.txt",
        "/..%2fsecret.txt",
        "/sweep/sweep.db",
        "//etc/passwd",
        "/index.html",
        "/assets/viewer/index.html",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/index.js/../../charts.js",
    ],
)
def test_no_path_leads_to_a_file(server, path):
    response, body = ask(server, path)
    assert response.status == 404
    assert b"not for showing" not in body
    assert json.loads(body)["error"].endswith("reload the page")


@pytest.mark.parametrize("key", ["..", "../view", "sweep/..", "/etc", "sweep/../..", "secret.txt", "sweep\x00", ""])
def test_no_key_leads_out_of_the_folder(server, key):
    response, body = ask(server, f"/api/overview?at={quote(key)}")
    assert response.status == 404
    assert "nothing that can be shown is at" in json.loads(body)["error"]


def test_a_link_out_of_the_folder_is_not_followed(folder, tmp_path):
    make_sweep(tmp_path / "elsewhere", seeds="0:1")
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="holds no sweep"):
        open_root(root)


@pytest.mark.parametrize("name", ["sweep.db", "manifest.json"])
def test_a_file_that_leads_out_of_the_folder_is_not_followed_either(tmp_path, name):
    make_sweep(tmp_path / "elsewhere", seeds="0:1")
    sweep = make_sweep(tmp_path / "root" / "sweep", seeds="0:1")
    (sweep / name).unlink()
    (sweep / name).symlink_to(tmp_path / "elsewhere" / name)
    with pytest.raises(UsageError, match="holds no sweep"):
        open_root(tmp_path / "root")


def test_a_log_of_the_database_that_leads_out_is_not_followed(tmp_path):
    sweep = make_sweep(tmp_path / "root" / "sweep", seeds="0:1")
    (tmp_path / "secret").write_bytes(b"secret")
    (sweep / "sweep.db-wal").symlink_to(tmp_path / "secret")
    with pytest.raises(UsageError, match="holds no sweep"):
        open_root(tmp_path / "root")


def foreign_database(path: Path) -> None:
    """Write a database whose tables have our names and whose application_id is ours, with a view in place of one."""
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute("CREATE TABLE cells (id INTEGER PRIMARY KEY, cell TEXT, setting BLOB, planned INTEGER)")
    connection.execute("CREATE VIEW runs AS SELECT randomblob(1000000000) AS id, 0 AS control, 1 AS cell, 1 AS seed")
    connection.commit()
    connection.close()


def pipe(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "missing": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "overwritten": lambda path: path.write_bytes(path.read_bytes()[:4096] + b"\xff" * (path.stat().st_size - 4096)),
    "text": lambda path: path.write_text("not a database\n" * 1000),
    "foreign": lambda path: (path.unlink(), foreign_database(path)),
    "folder": lambda path: (path.unlink(), path.mkdir()),
    "pipe": pipe,
    "pipe beside it": lambda path: pipe(path.with_name("sweep.db-wal")),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_database_that_is_not_ours_is_one_line_and_hurts_no_other_folder(tmp_path, damage):
    for name in ("spoilt", "whole"):
        make_sweep(tmp_path / name, seeds="0:1")
    DAMAGES[damage](tmp_path / "spoilt" / "sweep.db")
    viewer = Viewer(open_root(tmp_path), LogFolders(), lambda: NOW)
    assert [folder.key for folder in viewer.folders({}).folders] == ["spoilt", "whole"]
    for path in ("/api/overview", "/api/runs", "/api/grid"):
        with pytest.raises(EirkitError) as refused:
            viewer.answer(path, {"at": ["spoilt"]})
        assert "\n" not in str(refused.value)
        assert "; " in str(refused.value)  # what to do
    assert viewer.runs({"at": ["whole"]}).total == 12


def test_half_of_a_pair_of_surrogates_is_escaped():
    assert json.loads(encode(ShownMessage("user", "a\ud800b"))) == {"role": "user", "text": "a\ud800b"}


@pytest.mark.parametrize("mark", ["a", "\U0001f600", "\ud800"])
def test_a_long_text_comes_whole_by_the_places_that_the_server_gives(mark):
    whole = ShownMessage("user", mark * (2 * LONGEST + 7))
    first = shorten(whole).text
    assert isinstance(first, Excerpt)
    pieces: list[Excerpt | TextPiece] = [first]
    while pieces[-1].next < pieces[-1].length:
        pieces.append(more_of(whole, first.part, pieces[-1].next))
    assert len(pieces) == 3
    assert "".join(piece.text for piece in pieces) == whole.text


@pytest.mark.parametrize("path", ["/", "/api/folders", "/nothing", "/api/overview?at=no"])
def test_every_answer_forbids_what_a_page_could_be_made_to_do(server, path):
    response, _ = ask(server, path)
    policy = response.getheader("Content-Security-Policy") or ""
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert response.getheader("X-Content-Type-Options") == "nosniff"
    assert response.getheader("Cache-Control") == "no-store"
    assert response.getheader("Referrer-Policy") == "no-referrer"


@pytest.mark.parametrize(
    "query",
    ["at=sweep&offset=-1", "at=sweep&offset=1e9", "at=sweep&limit=x", "at=sweep&sort=nope", "at=sweep&min.h=a", ""],
)
def test_a_query_that_makes_no_sense_gets_a_sentence(server, query):
    response, body = ask(server, f"/api/runs?{query}")
    assert response.status == 404
    assert ";" in json.loads(body)["error"]


def test_a_page_of_rows_is_bounded_whatever_is_asked(server):
    assert len(json.loads(ask(server, "/api/runs?at=sweep&limit=999999999")[1])["rows"]) <= 500


def test_an_endless_address_is_refused(server):
    assert ask(server, "/api/folders?q=" + "x" * LONGEST_ADDRESS)[0].status == 414
    assert ask(server, "/api/folders?" + "&".join(f"a{i}=1" for i in range(300)))[0].status == 400


def test_what_is_no_request_gets_an_answer_and_the_server_lives_on(server):
    with socket.create_connection((HOST, server.port), timeout=PATIENCE_SECONDS) as stream:
        stream.sendall(b"\x16\x03\x01 this is not http\r\n\r\n")
        assert b"400" in stream.recv(4096)
    assert ask(server, "/api/folders")[0].status == 200


def test_a_damaged_record_spoils_its_own_page_alone(server, folder):
    broken = folder / "broken"
    make_sweep(broken, seeds="0:1")
    connection = sqlite3.connect(broken / "sweep.db")
    with connection:
        connection.execute("UPDATE events SET block = x'00'")
    connection.close()
    rows = json.loads(ask(server, "/api/runs?at=broken&limit=1")[1])["rows"]
    response, body = ask(server, f"/api/run?at=broken&run={rows[0]['run']}")
    assert response.status == 404
    assert "restore the file" in json.loads(body)["error"]
    assert ask(server, "/api/overview?at=sweep")[0].status == 200


def test_a_port_that_is_taken_is_one_line(server, folder):
    with pytest.raises(UsageError, match="choose another --port"):
        ViewerServer(Viewer(open_root(folder), LogFolders(), lambda: NOW), server.port)


def test_two_servers_have_different_tokens(server, folder):
    other = ViewerServer(Viewer(open_root(folder), LogFolders(), lambda: NOW))
    other.server_close()
    assert other.token != server.token
    assert len(server.token) >= 32


def test_the_report_links_every_cell_to_its_runs_and_a_run_to_its_row(server):
    response, body = ask(server, "/report?at=sweep")
    page = body.decode()
    assert response.status == 200
    assert "script-src 'sha256-" in response.headers["Content-Security-Policy"]
    links = [html.unescape(link) for link in re.findall(r'href="(\./\?at=sweep&amp;f\.[^"]+)"', page)]
    rows = json.loads(ask(server, "/api/runs?at=sweep")[1])
    assert len(set(links)) == 12  # two workloads, two models, three h
    found = [json.loads(ask(server, f"/api/runs{link[2:]}")[1])["matched"] for link in set(links)]
    assert found == [1] * 12
    run = json.loads(ask(server, f"/api/run?at=sweep&run={rows['rows'][0]['run']}")[1])
    assert f'<tr id="cell-{run["cell"]}">' in page
    assert ask(server, "/report?at=sweep", cookie=False)[0].status == 403
    assert ask(server, "/report?at=other")[0].status == 404
