"""Requests to a running server, word by word: what a browser, or somebody else's program, would send."""

import base64
import http.client
import os
import socket


def ask(address, path, method="GET", body=None, **headers):
    """The status, the headers and the body of an answer; `Host` may be another one than the address."""
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=60)
    try:
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def handshake(address, **headers):
    """The status with which the server answers an app that wants to connect."""
    key = base64.b64encode(os.urandom(16)).decode()
    words = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": key, **headers}
    host, port = address.removeprefix("http://").split(":")
    lines = [f"{name}: {value}" for name, value in ({"Host": f"{host}:{port}"} | words).items()]
    with socket.create_connection((host, int(port)), timeout=60) as line:
        line.sendall("\r\n".join(["GET /_stcore/stream HTTP/1.1", *lines, "", ""]).encode())
        return int(line.recv(4096).split()[1])
