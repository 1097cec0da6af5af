"""HTTP server of the viewer: loopback only, protected by a token, GET requests only.

The printed URL contains the token; later requests of the page send it in a cookie that other sites cannot send and
scripts cannot read. Requests with another Host header are refused, which prevents DNS rebinding.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from hmac import compare_digest
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from threading import Event, Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
from msgspec import Struct

from eirkit.errors import EirkitError, UsageError
from eirkit.report.html import policy
from eirkit.report.viewer.documents import Refusal
from eirkit.report.viewer.routes import Viewer

HOST = "127.0.0.1"
LONGEST_ADDRESS = 8_192  # characters
SECONDS = 30.0  # without a byte before a connection is closed
TYPES = {"html": "text/html; charset=utf-8", "js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8"}
PAGES = {"/": "index.html", "/index.js": "index.js", "/index.css": "index.css"}
REPORT = "/report"
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True, slots=True)
class HttpReply:
    """An HTTP response."""

    status: int
    type: str
    body: bytes
    cookie: str | None = None
    policy: str = ""  # instead of the viewer's own content security policy


class ViewerServer(ThreadingHTTPServer):
    """Serves one viewer on loopback; `address` is the URL to open.

    Args:
        port: 0 for any free port.
        token: the secret that browsers must send; random by default.
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, viewer: Viewer, port: int = 0, token: str | None = None) -> None:
        self.viewer, self.token = viewer, token or secrets.token_urlsafe(24)
        self.is_entered = Event()  # set once a browser has sent the token
        try:
            super().__init__((HOST, port), _Requests)
        except (OSError, OverflowError) as error:
            raise UsageError(f"port {port} cannot be used ({error}); choose another --port, or none") from error

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.port}/?token={self.token}"

    @property
    def cookie(self) -> str:
        """The name of the cookie; it contains the port, since cookies are shared between ports."""
        return f"eirkit_{self.port}"

    def reply(self, address: str, host: str, cookies: str) -> HttpReply:
        """Return the response to one GET request."""
        if host not in (f"{HOST}:{self.port}", f"localhost:{self.port}"):
            return _refusal(421, "this server answers to its own address alone")
        if len(address) > LONGEST_ADDRESS:
            return _refusal(414, "the address is too long")
        parts = urlsplit(address)
        asked = parse_qs(parts.query, keep_blank_values=True, max_num_fields=200)
        given = asked.pop("token", [""])[0]
        fresh = self._is_token(given)
        if not fresh and not self._is_token(_cookie(cookies, self.cookie)):
            return _refusal(403, "open the address that `eirkit view` printed; it carries a token")
        if fresh:
            self.is_entered.set()
        kept = f"{self.cookie}={self.token}; HttpOnly; SameSite=Strict; Path=/" if fresh else None
        if parts.path in PAGES:
            name = PAGES[parts.path]
            body = files("eirkit.report").joinpath("assets", "viewer", name).read_bytes()
            return HttpReply(200, TYPES[name.rpartition(".")[2]], body, kept)
        return self._document(parts.path, asked)

    def _document(self, path: str, asked: dict[str, list[str]]) -> HttpReply:
        try:
            if path == REPORT:
                return HttpReply(
                    200, TYPES["html"], self.viewer.report(asked).encode("utf-8", "replace"), None, policy()
                )
            return _json(200, self.viewer.answer(path, asked))
        except EirkitError as error:
            return _json(404, Refusal(str(error)))
        except (OSError, LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError) as error:
            # Records may have been edited or damaged; an invalid one must only break its own page.
            words = f"this cannot be read ({type(error).__name__}: {error}); restore the folder"
            return _json(500, Refusal(words))

    def _is_token(self, given: str) -> bool:
        return compare_digest(given.encode(), self.token.encode())


class _Requests(BaseHTTPRequestHandler):
    """Handles the requests of one connection."""

    server: ViewerServer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "eirkit", ""
    timeout = SECONDS

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the page was closed or reloaded

    def do_GET(self) -> None:
        headers = self.headers
        try:
            reply = self.server.reply(self.path, headers.get("Host", ""), headers.get("Cookie", ""))
        except ValueError:
            reply = _refusal(400, "the address cannot be read")
        self._send(reply)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse requests that are malformed or use a method other than GET."""
        self.close_connection = True  # a body may follow that is not read
        self.request_version = self.protocol_version  # otherwise HTTP/0.9 is assumed, which has no headers
        is_method = code == 501
        self._send(_refusal(405, "this server is for reading") if is_method else _refusal(code, "not a request"))

    def _send(self, reply: HttpReply) -> None:
        self.send_response(reply.status)
        own = {"Content-Security-Policy": reply.policy} if reply.policy else {}
        for name, value in {**HEADERS, **own}.items():
            self.send_header(name, value)
        self.send_header("Content-Type", reply.type)
        self.send_header("Content-Length", str(len(reply.body)))
        if reply.cookie:
            self.send_header("Set-Cookie", reply.cookie)
        if reply.status == 405:
            self.send_header("Allow", "GET")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(reply.body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing, to keep the user's terminal clean."""


def _cookie(header: str, name: str) -> str:
    try:
        found = SimpleCookie(header).get(name)
    except CookieError:
        return ""
    return "" if found is None else found.value


def encode(document: Struct) -> bytes:
    """Return a document as JSON."""
    try:
        return msgspec.json.encode(document, enc_hook=float)  # of numbers of NumPy
    except UnicodeEncodeError:
        # Half of a surrogate pair cannot be encoded as UTF-8, but is valid JSON when escaped.
        plain = msgspec.to_builtins(document, enc_hook=float)
        return json.dumps(plain, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode()


def _json(status: int, document: Struct) -> HttpReply:
    return HttpReply(status, "application/json; charset=utf-8", encode(document))


def _refusal(status: int, words: str) -> HttpReply:
    return _json(status, Refusal(words))


def serve(server: ViewerServer, started: Callable[[ViewerServer], None]) -> None:
    """Serve until interrupted, and close the port."""
    try:
        Thread(target=server.viewer.warm, daemon=True).start()
        started(server)
        server.serve_forever(poll_interval=0.2)
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
