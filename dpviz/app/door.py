"""Access to the running app: nothing is served to a browser that has not shown the token of the printed address."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from html import escape
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

TOKEN = "token"  # noqa: S105  (the name of a parameter)
Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_POLICY_VIOLATION = 1008  # the close code of a WebSocket
_COMMON_HEADERS = [(b"referrer-policy", b"no-referrer"), (b"content-security-policy", b"frame-ancestors 'none'")]
_PAGE_HEADERS = [
    (b"content-type", b"text/html; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'"),
    (b"x-content-type-options", b"nosniff"),
]
_PAGE = '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>dpviz</title>{head}</head><body><p>{body}</p></body></html>'
_REDIRECT = '<meta http-equiv="refresh" content="0; url={address}">'
_REFUSAL = (
    "This dpviz belongs to somebody on this computer. To open it, use the address with a token that <code>dpviz app</code> printed in"
    ' its terminal. Is it open in this browser already? Then <a href="{address}">go on</a>.'
)


class Door:
    """ASGI middleware: an address with the right token is exchanged for a cookie, and without that cookie nothing is served.

    The token is as good as a password and lives as long as the app. The cookie holds another secret, which scripts cannot read and
    which is not sent when another site leads here. A browser sends the cookie to every port of this host (see `.github/SECURITY.md`),
    so a request from a page of another port is refused by its Origin.

    The answer to the exchange is a page that opens the app at once, not a redirect: if the address was a link in a file or on
    another site, a browser would follow a redirect without the cookie.

    Args:
        app: the application that is protected.
        token: the token in the printed address.
        name: name of the cookie; one per port, so that two apps do not overwrite each other's cookie.
    """

    def __init__(self, app: App, *, token: str, name: str) -> None:
        self._app, self._token, self._name = app, token, name
        self._secret = secrets.token_urlsafe(32)

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
        tokens, address = _without_token(scope)
        is_right = any(same(given, self._token) for given in tokens)
        if scope["method"] == "GET" and tokens and (is_right or self._has_cookie(scope)):
            cookie = f"{self._name}={self._secret}; Path=/; HttpOnly; SameSite=Strict" if is_right else None
            await _send_page(send, 200, _PAGE.format(head=_REDIRECT.format(address=escape(address)), body="Opening dpviz ..."), cookie)
        elif self._has_cookie(scope) and _has_own_origin(scope):
            await self._app(scope, receive, _with_common_headers(send))
        else:
            await _send_page(send, 403, _PAGE.format(head="", body=_REFUSAL.format(address=escape(address))))

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


def _without_token(scope: Scope) -> tuple[list[str], str]:
    """Return the tokens in an address, and the address on this server without them."""
    pairs = parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True, errors="replace")
    query = urlencode([(name, value) for name, value in pairs if name != TOKEN])
    path = "/" + quote(scope["path"].lstrip("/"), safe="/", errors="replace")
    return [value for name, value in pairs if name == TOKEN], f"{path}?{query}" if query else path


def _header(scope: Scope, name: bytes) -> str:
    return "; ".join(value.decode("latin-1") for key, value in _headers(scope) if key.lower() == name)


def _headers(scope: Scope) -> Iterable[tuple[bytes, bytes]]:
    return scope["headers"]  # type: ignore[no-any-return]


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
