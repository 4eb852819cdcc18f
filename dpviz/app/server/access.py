"""Access to the running app: nothing is served to a browser that has not shown the token of the printed address.

For a class the token is a code that can be typed, and `ClassDoor` stands in front: it looks at names, paths and numbers only.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from html import escape
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from streamlit.proto.BackMsg_pb2 import BackMsg

from dpviz.app.server.class_mode import LEFT_OUT

TOKEN = "token"  # noqa: S105  (the name of a parameter)
Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_POLICY_VIOLATION, _TRY_AGAIN_LATER = 1008, 1013  # close codes of a WebSocket
_COMMON_HEADERS = [(b"referrer-policy", b"no-referrer"), (b"content-security-policy", b"frame-ancestors 'none'")]
_PAGE_HEADERS = [
    (b"content-type", b"text/html; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'"),
    (b"x-content-type-options", b"nosniff"),
]
_PAGE = (
    '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    "<title>dpviz</title>{head}</head><body><p>{body}</p></body></html>"
)
_REDIRECT = '<meta http-equiv="refresh" content="0; url={address}">'
_REFUSAL = (
    "This dpviz belongs to somebody on this computer. To open it, use the address with a token that <code>dpviz app</code> printed in"
    ' its terminal. Is it open in this browser already? Then <a href="{address}">go on</a>.'
)


_CODE_FORM = (
    "This is the dpviz of a class. Its code stands in the address that was handed out.{wrong}</p>"
    '<form action="{path}"><label>Code of the class <input name="token" autocomplete="off" autofocus></label>'
    " <button>Open</button>{rest}</form><p>"
)
_WRONG_CODE = " What was typed is not this code."
_WRONG_CODES, _SECONDS_LATE = 30, 2.0
_REST = '<input type="hidden" name="{name}" value="{value}">'
_OTHER_NAME = "This server of a class answers to the name that its address was given out with, and to no other."
_NO_PAGE = "There is no such page."
_CLASS_IS_FULL = (
    "The class is full, or the memory of its server is: as many pages are open as may be. This page looks again every 15 seconds;"
    " a place is free once somebody closes a page."
)
_LOOK_AGAIN = '<meta http-equiv="refresh" content="15">'
_PAGE_PATH = re.compile("/[a-z]*")
_STREAM = "/_stcore/stream"
_MESSAGES_OF_PAGE = frozenset({"rerun_script", "stop_script", "app_heartbeat"})
_PARTS_OF_PAGE = frozenset({"deferred_file", "dataframe_chunk"})
_PARTS = (
    "/static/",
    "/media/",
    "/component/dpviz.",
    "/_stcore/bidi-components/",
    "/_stcore/health",
    "/_stcore/host-config",
    "/favicon.png",
)


class ClassDoor:
    """ASGI middleware of a class, whose server other computers reach: what is not named here is not served.

    Only these names of the server are answered, so that no page of elsewhere can reach it under another one, and requests of pages of
    other origins are refused. Only pages and their parts are served, and only read: no upload, no statistics, no page that a class has not.
    As many WebSockets as there are places are open at once; while all are, a new page says so. Of Streamlit's messages, only those pass
    that pages send: others would clear the caches of all sessions, or write files on the server.

    Args:
        app: the application that is protected.
        hosts: names and addresses of this server, in lower case and without ports.
        sessions: the number of places.
        is_full: whether there is no room for another session, whatever the number.
    """

    def __init__(self, app: App, *, hosts: Collection[str], sessions: int, is_full: Callable[[], bool]) -> None:
        self._app, self._hosts, self._sessions, self._is_full = app, frozenset(hosts), sessions, is_full
        self._open = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._connect(scope, receive, send)
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)

    async def _connect(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] != _STREAM or not self._is_for_us(scope) or not _has_own_origin(scope):
            await send({"type": "websocket.close", "code": _POLICY_VIOLATION})
        elif self._has_no_place():
            await send({"type": "websocket.close", "code": _TRY_AGAIN_LATER})
        else:
            self._open += 1
            try:
                await self._app(scope, _only_of_pages(receive), send)
            finally:
                self._open -= 1

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, is_page = scope["path"], _PAGE_PATH.fullmatch(scope["path"]) is not None
        if not self._is_for_us(scope) or not _has_own_origin(scope):
            await _send_page(send, 403, _PAGE.format(head="", body=_OTHER_NAME))
        elif scope["method"] not in ("GET", "HEAD") or path.strip("/") in LEFT_OUT or not (is_page or path.startswith(_PARTS)):
            await _send_page(send, 404, _PAGE.format(head="", body=_NO_PAGE))
        elif is_page and self._has_no_place():
            await _send_page(send, 503, _PAGE.format(head=_LOOK_AGAIN, body=_CLASS_IS_FULL))
        else:
            await self._app(scope, receive, _with_common_headers(send))

    def _is_for_us(self, scope: Scope) -> bool:
        """Return whether the Host header is a name of this server; the port may be that of a proxy."""
        try:
            sent = urlsplit(f"//{_header(scope, b'host')}")
            host, _ = sent.hostname, sent.port
        except ValueError:
            return False
        is_bare = "@" not in sent.netloc and not (sent.path or sent.query or sent.fragment)
        return host is not None and is_bare and host.rstrip(".") in self._hosts

    def _has_no_place(self) -> bool:
        return self._open >= self._sessions or self._is_full()


def _only_of_pages(receive: Receive) -> Receive:
    """Return a `receive` that leaves out messages that pages of a class never send, such as one that clears the caches of all sessions."""

    async def receive_from_page() -> Message:
        message = await receive()
        while message["type"] == "websocket.receive" and not _is_of_page(message.get("bytes")):
            message = await receive()
        return message

    return receive_from_page


def _is_of_page(content: bytes | None) -> bool:
    """Return whether a message runs the page, stops that, or asks for a part of what is shown."""
    try:
        sent = BackMsg.FromString(content or b"")
    except DecodeError:
        return False
    kind = sent.WhichOneof("type")
    asks = kind == "backend_operation_request" and sent.backend_operation_request.WhichOneof("payload") in _PARTS_OF_PAGE
    return asks or kind in _MESSAGES_OF_PAGE


class Guesses:
    """Wrong codes of a class: 30 at once and 30 more in each minute are usual. While there are more, every code is answered 2 seconds late.

    All clients are counted together, since behind a proxy all have one address. A right code always passes. It waits as long as a wrong
    one, or an answer that is late would say that the code is wrong before it is there.
    """

    def __init__(self) -> None:
        self._wrong, self._counted_at = 0.0, time.monotonic()

    async def wait(self) -> None:
        """Wait if there are more wrong codes than usual."""
        now = time.monotonic()
        self._wrong, self._counted_at = max(0.0, self._wrong - (now - self._counted_at) * _WRONG_CODES / 60), now
        if self._wrong > _WRONG_CODES:
            await asyncio.sleep(_SECONDS_LATE)

    def count(self, *, is_right: bool) -> None:
        """Count a code if it is wrong. Answers are late for a minute after the last one, however many there were."""
        self._wrong = min(self._wrong + (not is_right), 2.0 * _WRONG_CODES)


class Door:
    """ASGI middleware: an address with the right token is exchanged for a cookie, and without that cookie nothing is served.

    The token is as good as a password and lives as long as the app. The cookie holds another secret, which scripts cannot read and
    which is not sent when another site leads here. A browser sends the cookie to every port of this host (see `.github/SECURITY.md`),
    so a request from a page of another port is refused by its Origin.

    The answer to the exchange is a page that opens the app at once, not a redirect: if the address was a link in a file or on
    another site, a browser would follow a redirect without the cookie.

    An address has one token: of several, the first counts. Wrong codes of a class are slowed down, see `Guesses`.

    Args:
        app: the application that is protected.
        token: the token in the printed address.
        name: name of the cookie; one per port, so that two apps do not overwrite each other's cookie.
        is_code: whether the token is the code of a class, in lower case: a browser without the cookie is asked for it.
    """

    def __init__(self, app: App, *, token: str, name: str, is_code: bool = False) -> None:
        self._app, self._token, self._name, self._is_code = app, token, name, is_code
        self._secret, self._guesses = secrets.token_urlsafe(32), Guesses()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, exchange its token for the cookie, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            if self._has_cookie(scope) and _has_own_origin(scope):
                await self._app(scope, receive, send)
            else:
                await send({"type": "websocket.close", "code": _POLICY_VIOLATION})
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        tokens, path, others = _split_address(scope)
        address = f"{path}?{urlencode(others)}" if others else path
        is_right = await self._is_right(tokens[0], self._has_cookie(scope)) if tokens else False
        if scope["method"] == "GET" and tokens and (is_right or self._has_cookie(scope)):
            secure = "; Secure" if scope.get("scheme") == "https" else ""
            cookie = f"{self._name}={self._secret}; Path=/; HttpOnly; SameSite=Strict{secure}" if is_right else None
            await _send_page(send, 200, _PAGE.format(head=_REDIRECT.format(address=escape(address)), body="Opening dpviz ..."), cookie)
        elif self._has_cookie(scope) and _has_own_origin(scope):
            await self._app(scope, receive, _with_common_headers(send))
        elif self._is_code:
            rest = "".join(_REST.format(name=escape(name), value=escape(value)) for name, value in others)
            wrong = _WRONG_CODE if tokens else ""
            await _send_page(send, 403, _PAGE.format(head="", body=_CODE_FORM.format(path=escape(path), rest=rest, wrong=wrong)))
        else:
            await _send_page(send, 403, _PAGE.format(head="", body=_REFUSAL.format(address=escape(address))))

    async def _is_right(self, given: str, is_inside: bool) -> bool:
        """Return whether a token is right; a code is compared without its upper case, and late after many wrong ones."""
        if not self._is_code:
            return same(given, self._token)
        is_right = same(given.strip().lower(), self._token)
        if not is_inside:
            await self._guesses.wait()
            self._guesses.count(is_right=is_right)
        return is_right

    def _has_cookie(self, scope: Scope) -> bool:
        """Return whether the request has the app's cookie; all are checked, since another port may have set one with the same name."""
        sent = (part.strip().partition("=") for part in _header(scope, b"cookie").split(";"))
        return any(same(value, self._secret) for name, _, value in sent if name == self._name)


def _has_own_origin(scope: Scope) -> bool:
    """Return whether a request comes from a page of the same host and port, or from no page.

    Browsers name the page that sends a request in its Origin header.
    """
    origin, host = _header(scope, b"origin"), _header(scope, b"host")
    return not origin or origin.lower() in (f"http://{host}".lower(), f"https://{host}".lower())


def same(first: str, second: str) -> bool:
    """Return whether two secrets are the same, in a time that does not depend on where they differ."""
    return secrets.compare_digest(first.encode("utf-8", "replace"), second.encode("utf-8", "replace"))


def _split_address(scope: Scope) -> tuple[list[str], str, list[tuple[str, str]]]:
    """Return the tokens in an address, its path on this server, and its other parameters."""
    pairs = parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True, errors="replace")
    path = "/" + quote(scope["path"].lstrip("/"), safe="/", errors="replace")
    return [value for name, value in pairs if name == TOKEN], path, [(name, value) for name, value in pairs if name != TOKEN]


def _header(scope: Scope, name: bytes) -> str:
    return "; ".join(value.decode("latin-1") for key, value in scope["headers"] if key.lower() == name)


async def _send_page(send: Send, status: int, page: str, cookie: str | None = None) -> None:
    body = page.encode()
    headers = [*_PAGE_HEADERS, (b"content-length", str(len(body)).encode()), *([(b"set-cookie", cookie.encode())] if cookie else [])]
    await send({"type": "http.response.start", "status": status, "headers": [*_COMMON_HEADERS, *headers]})
    await send({"type": "http.response.body", "body": body})


def _with_common_headers(send: Send) -> Send:
    """Return a `send` that adds `_COMMON_HEADERS` to the app's own headers."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *_COMMON_HEADERS]}
        await send(message)

    return send_with_headers
