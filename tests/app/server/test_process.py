"""The server's settings, and the running server: who may connect, what it answers to others, what it keeps to itself."""

import tomllib

from tests.app.calls import ask, handshake
from tests.app.walk import ROOT

SETTINGS = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text("utf-8"))
SAFE = {
    "server": {"address": "127.0.0.1", "enableXsrfProtection": True, "enableCORS": True, "enableStaticServing": False},
    "client": {"showErrorDetails": "none"},
    "browser": {"gatherUsageStats": False},
    "runner": {"fastReruns": False},
}


def test_settings_keep_the_app_on_this_computer_and_its_errors_to_itself():
    for section, values in SAFE.items():
        assert {name: SETTINGS[section][name] for name in values} == values
    assert set(SETTINGS["server"]["allowedHosts"]) <= {"localhost", "127.0.0.1", "[::1]", "::1"}
    assert SETTINGS["server"]["maxUploadSize"] <= 512
    assert {"light", "dark"} <= set(SETTINGS["theme"])
    assert "://" not in str(SETTINGS), "no remote font"


def test_the_app_itself_may_connect(address):
    assert handshake(address) == 101
    assert handshake(address, Origin=address) == 101
    port = address.rpartition(":")[2]
    assert handshake(address, Host=f"localhost:{port}") == 101


def test_another_name_in_the_host_header_or_another_origin_is_refused(address):
    """A page of elsewhere whose name was made to lead here sends its own name."""
    for host in ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "user@127.0.0.1", "0.0.0.0", "[::1]"):  # noqa: S104
        assert handshake(address, Host=host) == 403, host
    for origin in ("http://evil.example", "https://127.0.0.1.evil.example", "null"):
        assert handshake(address, Origin=origin) == 403, origin


def test_other_origins_get_no_access(address):
    own = address.replace("127.0.0.1", "localhost")
    for path in ("/_stcore/health", "/_stcore/host-config", "/_stcore/upload_file/a/b"):
        for method in ("GET", "OPTIONS"):
            _, headers, _ = ask(address, path, method, Origin="http://evil.example")
            assert headers.get("Access-Control-Allow-Origin") in (None, address, own), path


def test_uploads_need_the_token_of_the_page(address):
    _, headers, _ = ask(address, "/_stcore/health")
    cookie = headers["Set-Cookie"]
    assert cookie.startswith("_streamlit_xsrf=")
    assert "SameSite=Lax" in cookie or "samesite=lax" in cookie.lower()
    path, body = "/_stcore/upload_file/session/file", b"zq"
    assert ask(address, path, "PUT", body)[0] == 403
    token = cookie.split(";")[0].partition("=")[2]
    assert ask(address, path, "PUT", body, Cookie=f"_streamlit_xsrf={token}")[0] == 403
    assert ask(address, path, "PUT", body, Cookie=f"_streamlit_xsrf={token}", X_Xsrftoken="another")[0] == 403
    status, _, said = ask(address, path, "PUT", body, Cookie=f"_streamlit_xsrf={token}", X_Xsrftoken=token)
    assert (status, b"session_id" in said) == (400, True)
    assert ask(address, path, "DELETE")[0] == 403


def test_no_files_are_served_but_the_frontend_s(address):
    page = ask(address, "/")[2]
    static = ("/app/static/config.toml", "/app/static/../app.py")
    for path in (*static, "/.streamlit/config.toml", "/app.py", "/%2e%2e/etc/passwd", "/media/a"):
        status, _, body = ask(address, path)
        assert status >= 400 or body == page, path
        assert b"dpviz.app" not in body
    for path in ("/_stcore/metrics", "/_stcore/script-health-check"):
        assert b"zq" not in ask(address, path)[2]
