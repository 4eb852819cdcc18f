"""The token of the printed address: without it nothing is served, and no other program sees it."""

import asyncio
import json
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from dpviz.app.server.access import Door
from tests.app.browse import KNOWN_404, until
from tests.app.calls import ask, handshake

TOKEN = "right"  # noqa: S105
PATHS = ["/", "/points", "/_stcore/health", "/media/a.png", "/component/a", "/static/index.js", "/%2e%2e/app.py"]


async def behind(scope, receive, send):
    """What the door guards."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
    else:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"inside"})


def knock(door, path="/", query="", *, cookies=(), kind="http", method="GET", receive=None, **more):
    """Status (or the WebSocket's answer), headers and body."""
    sent = []

    async def send(message):
        sent.append(message)

    headers = [(b"cookie", each.encode()) for each in cookies] + [(name.encode(), value.encode()) for name, value in more.items()]
    scope = {"type": kind, "method": method, "path": path, "query_string": query.encode(), "headers": headers}
    with ThreadPoolExecutor(1) as other:  # a browser that another test keeps open has a running loop in this thread
        other.submit(asyncio.run, door(scope, receive, send)).result()
    first = sent[0]
    found = {name.decode(): value.decode() for name, value in first.get("headers", ())}
    return first.get("status", first["type"]), found, sent[-1].get("body", b"").decode()


class TestCodeOfAClass:
    """Every code is answered late after many wrong ones, by a clock and a sleep that the test holds in its hands."""

    @pytest.fixture(autouse=True)
    def waits(self, monkeypatch):
        found = {"late": 0, "now": 0.0}

        async def sleep(_seconds):
            found["late"] += 1

        monkeypatch.setattr("dpviz.app.server.access.asyncio", SimpleNamespace(sleep=sleep))
        monkeypatch.setattr("dpviz.app.server.access.time", SimpleNamespace(monotonic=lambda: found["now"]))
        return found

    def test_a_right_code_always_passes_and_is_as_late_as_a_wrong_one(self, waits):
        door = Door(behind, token=TOKEN, name="dpviz_1", is_code=True)
        assert [knock(door, "/", "token=wrong")[0] for _ in range(31)] == [403] * 31
        assert waits["late"] == 0
        assert (knock(door, "/", f"token={TOKEN.upper()}")[0], waits["late"]) == (200, 1)
        assert (knock(door, "/", "token=wrong")[0], waits["late"]) == (403, 2)
        assert (knock(door, "/", cookies=[cookie_of(door)])[2], waits["late"]) == ("inside", 3)
        waits["now"] = 60.0
        assert (knock(door, "/", "token=wrong")[0], waits["late"]) == (403, 3)

    def test_one_address_is_one_guess(self):
        door = Door(behind, token=TOKEN, name="dpviz_1", is_code=True)
        assert knock(door, "/", f"token=wrong&token={TOKEN}")[0] == 403


@pytest.fixture
def door():
    return Door(behind, token=TOKEN, name="dpviz_1")


def cookie_of(door):
    return knock(door, "/", f"token={TOKEN}")[1]["set-cookie"].split(";")[0]


@pytest.mark.parametrize("method", ["GET", "PUT", "OPTIONS", "HEAD"])
def test_nothing_is_served_without_the_cookie(door, method):
    status, headers, body = knock(door, "/a", "token=wrong", cookies=["dpviz_1=wrong", "dpviz_1=", "other=1"], method=method)
    assert (status, "set-cookie" in headers) == (403, False)
    assert "inside" not in body


def test_a_websocket_needs_the_cookie_and_no_token_will_do(door):
    assert knock(door, "/_stcore/stream", f"token={TOKEN}", kind="websocket")[0] == "websocket.close"
    assert knock(door, "/_stcore/stream", kind="websocket", cookies=[cookie_of(door)])[0] == "websocket.accept"


def test_the_token_is_exchanged_for_a_cookie_that_scripts_and_other_sites_do_not_get(door):
    status, headers, body = knock(door, "/trips", f"sample=us_flights&token={TOKEN}&unit=a%26b")
    assert status == 200
    name, value, *rest = (part.strip() for part in headers["set-cookie"].replace("=", ";", 1).split(";"))
    assert (name, set(rest)) == ("dpviz_1", {"Path=/", "HttpOnly", "SameSite=Strict"})
    assert TOKEN not in value
    assert 'url=/trips?sample=us_flights&amp;unit=a%26b"' in body
    assert TOKEN not in body
    assert (headers["cache-control"], headers["referrer-policy"]) == ("no-store", "no-referrer")


def test_with_the_cookie_all_is_served_and_a_token_still_leaves_the_address(door):
    cookie = cookie_of(door)
    assert knock(door, cookies=["dpviz_1=of another port", f"a=b; {cookie}"])[2] == "inside"
    assert knock(door, "/points", "token=old&a=1", cookies=[cookie])[2].count('url=/points?a=1"') == 1
    assert knock(door, "/a", f"token={TOKEN}", cookies=[cookie], method="PUT")[2] == "inside"


@pytest.mark.parametrize("path", ["//evil.example/", "/\\evil.example", '/"><script>', "///", "/a\ud800"])
def test_it_leads_nowhere_else(door, path):
    for query, cookies in ((f"token={TOKEN}", ()), ("", ())):
        body = knock(door, path, query, cookies=cookies)[2]
        assert not any(sign in body for sign in ('"//', "url=//", "\\", "<script"))


def test_two_apps_do_not_share_their_secrets():
    one, other = (Door(behind, token=TOKEN, name="dpviz_1") for _ in range(2))
    assert knock(other, cookies=[cookie_of(one)])[0] == 403


@pytest.fixture(scope="module")
def running(dpviz_app):
    return dpviz_app()


@pytest.fixture(scope="module")
def origin(running):
    return running[1].partition("/?")[0]


@pytest.mark.slow
def test_the_server_serves_nothing_without_it(origin):
    for path in PATHS:
        status, _, body = ask(origin, path)
        assert (status, b"token" in body) == (403, True), path


def test_uploads_and_the_websocket_need_it_and_the_locks_behind_it_hold(running, origin):
    path, token = "/_stcore/upload_file/session/file", running[1].partition("token=")[2]
    assert len(token) >= 43
    assert ask(origin, path, "PUT", b"zq")[0] == ask(origin, path, "DELETE")[0] == 403
    assert handshake(origin) == handshake(origin, Origin=origin) == 403
    _, headers, _ = ask(origin, f"/?token={token}")
    cookie = headers["Set-Cookie"].split(";")[0]
    assert handshake(origin, Cookie=cookie, Origin=origin) == 101
    elsewhere = ("http://evil.example", "http://127.0.0.1:1", f"{origin}.evil.example", "null")
    assert [handshake(origin, Cookie=cookie, Origin=other) for other in elsewhere] == [403] * 4
    assert handshake(origin, Cookie=cookie, Host="evil.example") == 403
    assert ask(origin, "/_stcore/health", Cookie=cookie)[2] == b"ok"
    status, _, said = ask(origin, path, "PUT", b"zq", Cookie=cookie)
    assert (status, b"XSRF" in said or b"xsrf" in said.lower()) == (403, True)


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="reads Linux' list of processes")
def test_other_users_cannot_read_it_from_the_list_of_processes(running):
    process, address, text = running
    token = address.partition("token=")[2].encode()
    for name in ("cmdline", "environ"):
        assert token not in Path(f"/proc/{process.pid}/{name}").read_bytes()
    assert text.count("token=") == 1


@pytest.mark.slow
def test_without_a_token_a_warning_is_printed(dpviz_app):
    process, address, text = dpviz_app("--no-token")
    assert "token=" not in address
    assert "every user of this computer" in text
    assert ask(address.rstrip("/"), "/_stcore/health")[2] == b"ok"
    process.send_signal(signal.SIGINT)
    assert process.wait(20) in (0, 130)


def test_the_browser_is_handed_a_private_file_and_not_the_token(monkeypatch):
    from dpviz.app.server import process  # noqa: PLC0415

    opened = []
    monkeypatch.setattr(process.webbrowser, "open", opened.append)
    with process._open_browser("http://127.0.0.1:1/?token=a-secret-token&a=1"):
        file = Path(opened[0].removeprefix("file://"))
        assert 'url=http://127.0.0.1:1/?token=a-secret-token&amp;a=1"' in file.read_text()
        assert sys.platform == "win32" or file.parent.stat().st_mode & 0o077 == 0
    assert not file.exists()
    assert "a-secret-token" not in json.dumps(opened)


@pytest.mark.browser
@pytest.mark.slow
def test_in_a_browser_the_address_has_no_token_and_a_file_is_uploaded(chromium, running, tmp_path):
    """From a file that leads to the address, as the app opens it."""
    page = chromium.new_page()
    failed, errors = [], []
    page.on("response", lambda answer: failed.append(answer.url) if answer.status >= 400 and not KNOWN_404.search(answer.url) else None)
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" and "404" not in message.text else None)
    start, points = tmp_path / "open.html", tmp_path / "a.csv"
    start.write_text(f'<meta http-equiv="refresh" content="0; url={running[1]}">')
    points.write_text("lon,lat\n-118.2,34.1\n-118.3,34.0\n")
    page.goto(start.as_uri())
    page.get_by_role("button", name="Open the map").click()
    page.get_by_role("radio", name="Upload").locator("xpath=..").click()
    page.get_by_test_id("stFileUploader").filter(has_text="Points file").locator("input[type=file]").set_input_files(points)
    page.get_by_text("These data are already public").wait_for()
    until(lambda: "token" not in page.evaluate("location.href + document.referrer"), "an address without a token")
    assert page.evaluate("document.cookie.includes('dpviz')") is False
    assert (failed, errors) == ([], [])
    page.go_back()
    assert "token" not in page.url
    page.close()
