"""An HTTP proxy that forwards an agent's model requests unchanged and reports what their context no longer shows.

It listens on loopback in front of an OpenAI- or Anthropic-compatible server; replies, streams included, pass unchanged.
API keys are forwarded and never stored.
"""

from __future__ import annotations

import json
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from hashlib import sha256
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import SplitResult, urlsplit

from eirkit.errors import UsageError
from eirkit.live.guard import LIKELY, Loss, Monitor
from eirkit.logs.formats.messages import text_of

LARGEST_BODY = 1 << 26  # bytes; a context of a million tokens takes about four million
MOST_CONVERSATIONS = 64
PATIENCE_SECONDS = 600  # reasoning models can take minutes before the first byte
PIECE = 1 << 14
LOCAL = ("127.0.0.1", "localhost")
LOST_HEADER = "X-Eirkit-Lost"
_OWN_CONNECTION = frozenset({"connection", "host", "keep-alive", "proxy-authorization", "te", "trailer", "upgrade"})
_BODY_FORM = frozenset({"content-length", "transfer-encoding"})

Telling = Callable[[Sequence[Loss]], None]


class Conversations:
    """The conversations seen at one address, the latest last; the least recently used one is dropped first."""

    def __init__(self, likely: float = LIKELY) -> None:
        self._likely = likely
        self._monitors: OrderedDict[int, tuple[str, Monitor]] = OrderedDict()
        self._begun = 0
        self._lock = threading.Lock()

    def see(self, body: Mapping[str, Any]) -> tuple[Loss, ...]:
        """Return what one request no longer shows; nothing for a request without messages."""
        messages = body.get("messages")
        if not isinstance(messages, list) or not messages:
            return ()
        system = body.get("system") or ""
        with self._lock:
            return self._of(_opening(messages, system), messages).see(messages, system)

    def _of(self, opening: str, messages: Sequence[object]) -> Monitor:
        for number, (known, monitor) in reversed(self._monitors.items()):
            if known == opening and monitor.continues_with(messages):
                self._monitors.move_to_end(number)
                return monitor
        self._begun += 1
        self._monitors[self._begun] = (opening, Monitor(self._likely))
        if len(self._monitors) > MOST_CONVERSATIONS:
            self._monitors.popitem(last=False)
        return self._monitors[self._begun][1]


def _opening(messages: Sequence[object], system: object) -> str:
    """Return the text that tells one agent from another: the first message of its scaffold."""
    told = [m for m in messages if isinstance(m, dict) and m.get("role") in ("system", "developer")]
    text = "\n".join([text_of(system), *(text_of(message.get("content")) for message in told)])
    return sha256(text.encode("utf-8", "replace")).hexdigest()


class GuardProxy:
    """Listens on 127.0.0.1; `address` is the base URL to give to the agent instead of the server's."""

    def __init__(self, upstream: str, tell: Telling, port: int = 0, likely: float = LIKELY) -> None:
        self.upstream = _server_at(upstream)
        self.conversations, self._tell = Conversations(likely), tell
        try:
            self._server = _Server(self, port)
        except OSError:
            raise UsageError(f"port {port} is in use; choose another with --port, or leave --port out") from None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def serve(self) -> None:
        """Serve until `stop` is called from another thread."""
        self._server.serve_forever(0.1)

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def watch(self, body: bytes) -> tuple[Loss, ...]:
        """Report and return what a request lost; a body that cannot be analysed is forwarded all the same."""
        try:
            document = json.loads(body)
            losses = self.conversations.see(document) if isinstance(document, dict) else ()
        except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
            # A request that cannot be analysed must still reach the server.
            logging.getLogger("eirkit").debug("could not analyse a request: %s", type(error).__name__)
            return ()
        if losses:
            self._tell(losses)
        return losses

    def _path(self, path: str) -> str:
        """Return the path of a request; the API version may be in the agent's path or in the upstream address."""
        base = self.upstream.path.rstrip("/")
        return path if path.startswith(f"{base}/") else base + path

    @contextmanager
    def forwarded(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Iterator[HTTPResponse]:
        """Forward a request; inside the context the server's response can be read."""
        kind = HTTPSConnection if self.upstream.scheme == "https" else HTTPConnection
        connection = kind(self.upstream.hostname or "", self.upstream.port, timeout=PATIENCE_SECONDS)
        kept = {name: value for name, value in headers.items() if name.lower() not in _OWN_CONNECTION | _BODY_FORM}
        with closing(connection):
            connection.request(method, self._path(path), body or None, kept)
            yield connection.getresponse()


def _server_at(upstream: str) -> SplitResult:
    try:
        found = urlsplit(upstream)
        valid = found.scheme in ("http", "https") and found.hostname and found.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise UsageError(f"{upstream!r} is not the address of a server; give one such as https://host/v1")
    return found


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, proxy: GuardProxy, port: int) -> None:
        self.proxy = proxy
        super().__init__(("127.0.0.1", port), _Passing)

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # the client closed the connection


class _Passing(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._pass("GET")

    def do_POST(self) -> None:
        self._pass("POST")

    def _pass(self, method: str) -> None:
        body = self._body(method)
        if body is None:
            return
        losses = self.server.proxy.watch(body) if method == "POST" else ()
        lost, begun = [loss.path for loss in losses if loss.likely], False
        try:
            with self.server.proxy.forwarded(method, self.path, dict(self.headers.items()), body) as response:
                begun = True
                self._hand_on(response, lost)
        except (OSError, HTTPException) as error:
            self.close_connection = True
            if not begun:
                self._refuse(502, f"the upstream server did not answer ({type(error).__name__}); check --upstream")

    def _body(self, method: str) -> bytes | None:
        """Return the body of a request; None after refusing one that is foreign, too large or incomplete."""
        length = self.headers.get("Content-Length", "0" if method == "GET" else "")
        if not self._is_ours():
            self._refuse(403, "only programs on this machine may use this address")
        elif self.headers.get("Transfer-Encoding") or not (length.isascii() and length.isdigit()):
            self._refuse(411, "send the body with a Content-Length header, not chunked")
        elif len(length) > 20 or int(length) > LARGEST_BODY:
            self._refuse(413, f"send a body of at most {LARGEST_BODY} bytes")
        elif len(body := self.rfile.read(int(length))) == int(length):
            return body
        else:
            self.close_connection = True  # the client went away while sending it
        return None

    def _is_ours(self) -> bool:
        """Return whether a request is for this machine and, if a web page sent it, is from a page of this machine."""
        names = [self.headers.get("Host", "")]
        if (origin := self.headers.get("Origin")) is not None:
            names.append(origin.partition("://")[2])
        return all(name.rpartition(":")[0] in LOCAL or name in LOCAL for name in names)

    def _hand_on(self, response: HTTPResponse, lost: Sequence[str]) -> None:
        self.send_response(response.status)
        for name, value in response.getheaders():
            if name.lower() not in _OWN_CONNECTION | _BODY_FORM:
                self.send_header(name, value)
        if lost:
            self.send_header(LOST_HEADER, json.dumps(lost[:20]))
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in _pieces(response):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def _refuse(self, status: int, message: str) -> None:
        self.close_connection = True
        payload = json.dumps({"error": {"message": message, "type": "eirkit_guard"}}).encode()
        with suppress(ConnectionError):
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


def _pieces(response: HTTPResponse) -> Iterator[bytes]:
    """Yield a body as it arrives, so that a streamed reply stays a stream."""
    while piece := response.read1(PIECE):
        yield piece
