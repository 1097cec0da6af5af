"""An HTTP proxy that forwards an agent's model requests unchanged and reports what their context no longer shows.

It listens on loopback in front of an OpenAI- or Anthropic-compatible server; replies, streams included, pass unchanged,
and a reply that breaks off arrives as one that broke off. A request is forwarded first and analyzed beside that, each
conversation by itself: an analysis that takes long delays nobody. API keys are forwarded and never stored.
"""

from __future__ import annotations

import json
import logging
import re
import threading
from base64 import b64encode
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from hashlib import sha256
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, IncompleteRead
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count, takewhile
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from msgspec import Struct, ValidationError, convert

from eirkit.errors import EirkitError, UsageError
from eirkit.limits import time_limit
from eirkit.vestige.formats.messages import text_of
from eirkit.vestige.formats.run_builder import items_of, mapping_of, string_of
from eirkit_coding.guard.guard import LIKELY, Loss, Monitor

LARGEST_BODY = 1 << 26  # bytes; a context of a million tokens takes about four million
MOST_CONVERSATIONS = 128
PATIENCE_SECONDS = 600  # reasoning models can take minutes before the first byte
PIECE = 1 << 14
WATCH_SECONDS = 20.0  # for the analysis of one request, after which it is given up
GRACE_SECONDS = 0.5  # that a reply waits for the analysis of its request, whose result is one of its headers
MOST_WATCHED = 128  # requests that are analyzed or wait for it at once; further ones are only forwarded
LOCAL = ("127.0.0.1", "localhost")
LOST_HEADER = "X-Eirkit-Lost"
_OWN_CONNECTION = frozenset({"connection", "host", "keep-alive", "proxy-authorization", "te", "trailer", "upgrade"})
_BODY_FORM = frozenset({"content-length", "transfer-encoding"})
_WITHOUT_BODY = (204, 304)
# A line that Claude Code puts before its system prompt. Its values change within a conversation, but for one.
_HEADER = re.compile(r"(?m)^x-anthropic-billing-header:([^\n]*)(?:\n|\Z)")
_SUB_AGENT = "cc_is_subagent=true"

Telling = Callable[[Sequence[Loss]], None]


class ModelRequest(Struct, frozen=True):
    """What is used of a request to a model; messages are in the shape of either kind of server."""

    messages: list[Any] = []
    system: Any = ""
    tools: Any = ()

    @property
    def tool_names(self) -> frozenset[str]:
        """The names of the tools that the model is offered."""
        own = (mapping_of(tool.get("function")) or tool for tool in items_of(self.tools))
        return frozenset(string_of(tool.get("name")) for tool in own)


class _Conversation:
    """One conversation, and what protects it from two requests at once."""

    def __init__(self, opening: str, likely: float) -> None:
        self.opening, self.monitor = opening, Monitor(likely)
        self.lock = threading.Lock()
        self.seen = -1  # number of the latest request that was analyzed
        self.tools: frozenset[str] = frozenset()

    def goes_on_in(self, request: ModelRequest) -> bool:
        """Return whether a request is one of this conversation, perhaps after a compaction.

        A sub-agent, which has no message of it and lacks some of its tools, may well be asked about its files.
        """
        if self.monitor.overlaps(request.messages):
            return True
        return not request.tool_names < self.tools and self.monitor.is_named_in(request.messages)

    def see(self, request: ModelRequest, number: int) -> tuple[Loss, ...]:
        if number < self.seen:
            return ()
        self.seen, self.tools = number, request.tool_names
        return self.monitor.see(request.messages, request.system or "")


class Conversations:
    """The conversations seen at one address, the latest last; the least recently used one is dropped first."""

    def __init__(self, likely: float = LIKELY) -> None:
        self._likely = likely
        self._known: OrderedDict[int, _Conversation] = OrderedDict()
        self._numbers = count()
        self._lock = threading.Lock()  # never held while a text is analyzed

    def __len__(self) -> int:
        return len(self._known)

    def see(self, request: ModelRequest, number: int | None = None) -> tuple[Loss, ...]:
        """Return what one request no longer shows; nothing for a request without messages.

        Args:
            number: its place among all requests; one that comes after its successor is left out.
        """
        if not request.messages:
            return ()
        opening = _opening(request)
        with self._lock:
            number = next(self._numbers) if number is None else number
            alike = [(key, known) for key, known in reversed(self._known.items()) if known.opening == opening]
        for key, known in alike:
            with known.lock:
                if known.goes_on_in(request):
                    with self._lock:
                        if key in self._known:
                            self._known.move_to_end(key)
                    return known.see(request, number)
        begun = _Conversation(opening, self._likely)
        with begun.lock:
            with self._lock:
                self._known[next(self._numbers)] = begun
                if len(self._known) > MOST_CONVERSATIONS:
                    self._known.popitem(last=False)
            return begun.see(request, number)


def _opening(request: ModelRequest) -> str:
    """Return the text that tells one agent from another: the system prompt, less changing headers.

    What a scaffold says as the system in the midst of a conversation is new after a compaction.
    """
    messages = (message for message in request.messages if isinstance(message, dict))
    first = takewhile(lambda message: message.get("role") in ("system", "developer"), messages)
    text = "\n".join([text_of(request.system), *(text_of(message.get("content")) for message in first)])
    text = _HEADER.sub(lambda found: _SUB_AGENT if _SUB_AGENT in found[1] else "", text)
    return sha256(text.encode("utf-8", "replace")).hexdigest()


class GuardProxy:
    """Listens on 127.0.0.1; `address` is the base URL to give to the agent instead of the server's."""

    def __init__(
        self, upstream: str, tell: Telling, port: int = 0, likely: float = LIKELY, grace_seconds: float = GRACE_SECONDS
    ) -> None:
        self.upstream = _server_at(upstream)
        self.conversations, self._tell = Conversations(likely), tell
        self.numbers, self.free = count(), threading.Semaphore(MOST_WATCHED)
        self.grace_seconds = grace_seconds
        self.is_prompt = True  # the last analysis was done when the reply came
        try:
            self._server = _Server(self, port)
        except OSError:
            raise UsageError(f"port {port} is in use; choose another with --port, or leave --port out") from None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def shown_upstream(self) -> str:
        """The server's address without a user, a password or a query, any of which may be secret."""
        return _public(self.upstream)

    def serve(self) -> None:
        """Serve until `stop` is called from another thread."""
        self._server.serve_forever(0.1)

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def watch(self, body: bytes, number: int | None = None) -> tuple[Loss, ...]:
        """Report and return what a request lost; a body that cannot be analyzed is forwarded all the same."""
        try:
            request = convert(json.loads(body), ModelRequest)
            with time_limit(WATCH_SECONDS, "a request"):
                losses = self.conversations.see(request, number)
        except (
            *(ValueError, TypeError, AttributeError, LookupError, RecursionError),
            *(EirkitError, ValidationError),
        ) as error:
            # A request that cannot be analyzed must still reach the server.
            logging.getLogger("eirkit").debug("could not analyze a request: %s", type(error).__name__)
            return ()
        if losses:
            self._tell(losses)
        return losses

    def _path(self, path: str) -> str:
        """Return the path of a request; the API version may be in the agent's path or in the upstream address."""
        base = self.upstream.path.rstrip("/")
        return path if path.startswith(f"{base}/") else base + path

    @contextmanager
    def forwarded(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes, sent: Callable[[], None]
    ) -> Iterator[HTTPResponse]:
        """Forward a request and call `sent`; inside the context the server's response can be read."""
        kind = HTTPSConnection if self.upstream.scheme == "https" else HTTPConnection
        connection = kind(self.upstream.hostname or "", self.upstream.port, timeout=PATIENCE_SECONDS)
        kept = {name: value for name, value in headers.items() if name.lower() not in _OWN_CONNECTION | _BODY_FORM}
        if self.upstream.username is not None and not any(name.lower() == "authorization" for name in kept):
            credentials = f"{unquote(self.upstream.username)}:{unquote(self.upstream.password or '')}"
            kept["Authorization"] = f"Basic {b64encode(credentials.encode()).decode()}"
        with closing(connection):
            connection.request(method, self._path(path), body or None, kept)
            sent()
            yield connection.getresponse()


def _public(server: SplitResult) -> str:
    host = f"[{server.hostname}]" if ":" in (server.hostname or "") else server.hostname
    return f"{server.scheme}://{host}{f':{server.port}' if server.port else ''}{server.path}"


class Watched:
    """The analysis of one request, in a thread of its own that nobody has to wait for."""

    def __init__(self, proxy: GuardProxy, body: bytes | None) -> None:
        self._proxy, self._body = proxy, body
        self._losses: tuple[Loss, ...] = ()
        self._done = threading.Event()

    def begin(self) -> None:
        """Start it, unless too many are under way."""
        if self._body is None or not self._proxy.free.acquire(blocking=False):
            self._done.set()
        else:
            threading.Thread(target=self._run, args=(self._body, next(self._proxy.numbers)), daemon=True).start()

    def _run(self, body: bytes, number: int) -> None:
        try:
            self._losses = self._proxy.watch(body, number)
        finally:
            self._proxy.free.release()
            self._done.set()

    def lost(self) -> list[str]:
        """Return the files that are likely to be missed, if that is known in time for the reply."""
        in_time = self._done.wait(self._proxy.grace_seconds if self._proxy.is_prompt else 0)
        self._proxy.is_prompt = in_time  # after one that was late the next reply does not wait
        return [loss.path for loss in self._losses if loss.likely] if in_time else []


def _server_at(upstream: str) -> SplitResult:
    try:
        found = urlsplit(upstream)
        valid = found.scheme in ("http", "https") and found.hostname and found.port != 0
    except ValueError:
        valid = False
    if not valid:
        # It may hold a password, so that only what cannot be part of one is repeated.
        shown = f"{upstream.partition('://')[0]}://…" if "@" in upstream or "?" in upstream else repr(upstream)
        raise UsageError(f"{shown} is not the address of a server; give one such as https://host/v1")
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
        watched, begun = Watched(self.server.proxy, body if method == "POST" else None), False
        headers = dict(self.headers.items())
        try:
            with self.server.proxy.forwarded(method, self.path, headers, body, watched.begin) as response:
                begun = True
                self._hand_on(response, watched.lost())
        except (OSError, HTTPException) as error:
            self.close_connection = True
            if not begun:
                self._refuse(502, f"the upstream server did not answer ({type(error).__name__}); check --base-url")

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
        """Pass a reply on; one that breaks off raises before the end is sent, so that it breaks off here too."""
        self.send_response(response.status)
        for name, value in response.getheaders():
            if name.lower() not in _OWN_CONNECTION | _BODY_FORM:
                self.send_header(name, value)
        if lost:
            self.send_header(LOST_HEADER, json.dumps(lost[:20]))
        if response.status in _WITHOUT_BODY:
            self.end_headers()
            return
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
    if response.length:  # of the announced length; the connection closed before it was reached
        raise IncompleteRead(b"", response.length)
