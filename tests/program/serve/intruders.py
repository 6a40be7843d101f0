# SPDX-License-Identifier: MIT
"""What the server of opc serve answers to those who should not get in, and to clients that want too much of it.

    intruders.py ADDRESS      as opc serve printed it, with its token
"""
import http.client
import json
import re
import socket
import sys
import time

host, port, token = re.match(r"http://([\d.]+):(\d+)/\?token=(\w+)", sys.argv[1]).groups()
port = int(port)
ours = f"{host}:{port}"
cookie = {"Cookie": f"opc_{port}={token}"}


def ask(path, headers=None, method="GET", body=None):
    connection = http.client.HTTPConnection(host, port)
    connection.putrequest(method, path, skip_host="Host" in (headers or {}))
    for key, value in (headers or {}).items():
        connection.putheader(key, value)
    connection.endheaders(body)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, dict(answer.getheaders()), text


def raw(request):
    """The first line of the answer to these bytes; '': the connection was closed without one."""
    with socket.create_connection((host, port)) as s:
        s.sendall(request)
        try:
            return s.makefile("rb").readline().decode()
        except ConnectionError:
            return ""


def expect(status, path, headers=None, method="GET", body=None):
    got = ask(path, headers, method, body)
    assert got[0] == status, f"{method} {path} {headers}: {got[0]} instead of {status}"
    return got


# ---- the token ---------------------------------------------------------------------------------------
for path in ("/", "/api/runs", "/api/log?run=0", "/file?run=0&name=metrics.csv", "/main.js", "/nothing"):
    expect(401, path)
    expect(401, path, {"Cookie": f"opc_{port}={'0' * len(token)}"})
    expect(401, path, {"Cookie": f"opc_{port}={token[:-1]}"})
    expect(401, path, {"Cookie": f"opc_{port + 1}={token}"})
expect(401, "/?token=")
expect(401, f"/?token={token}0")
status, headers, page = expect(200, f"/?token={token}")
assert re.search(r"HttpOnly; SameSite=Strict", headers["Set-Cookie"]), headers
assert token.encode() not in page
for name, part in {"Content-Security-Policy": "script-src 'self'", "X-Content-Type-Options": "nosniff",
                   "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY", "Cache-Control": "no-store",
                   "Cross-Origin-Resource-Policy": "same-origin"}.items():
    assert part in headers[name], (name, headers)
assert "unsafe" not in headers["Content-Security-Policy"]
assert "Access-Control-Allow-Origin" not in headers
runs = json.loads(expect(200, "/api/runs", cookie)[2])
assert runs["runs"], runs

# ---- other hosts and methods -------------------------------------------------------------------------
for wrong in ("evil.example", f"evil.example:{port}", host, f"{host}:{port + 1}", f"localhost.evil.example:{port}"):
    expect(421, "/api/runs", {**cookie, "Host": wrong})
expect(200, "/api/runs", {**cookie, "Host": f"localhost:{port}"})
for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT"):
    status = ask("/api/runs", cookie, method)[0]
    assert status in (404, 405, 400), (method, status)
assert " 200 " not in raw(f"POST /api/runs HTTP/1.1\r\nHost: {ours}\r\nCookie: {cookie['Cookie']}\r\n"
                          f"Content-Length: 1000000000\r\n\r\n".encode() + b"x" * 100000)

# ---- paths -------------------------------------------------------------------------------------------
for path in ("/../../etc/passwd", "/..%2f..%2fetc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/etc/passwd",
             "/%61pi/runs", "/api/runs/", "/api/", "/api/log?run=-1", "/api/log?run=999999",
             "/api/log?run=../../etc", "/api/log", "/api/settings?run=x", "/api/files?root=7", "/api/files?root=-1"):
    expect(404, path, cookie)
absolute = f"GET http://evil.example/ HTTP/1.1\r\nHost: {ours}\r\nCookie: {cookie['Cookie']}\r\n\r\n"
assert " 200 " not in raw(absolute.encode())
for name in ("../config.yaml", "config.yaml", "policy.opc", "/etc/passwd", "..%2fmetrics.csv", "probe/../metrics.csv",
             "./metrics.csv", "link.csv", "", ".lock", "metrics.csv%00.png", "checkpoints"):
    expect(404, f"/file?run=0&name={name}", cookie)
status, headers, text = expect(200, "/file?run=0&name=metrics.csv", cookie)
assert text.startswith(b"epoch,") and "sandbox" in headers["Content-Security-Policy"], headers
status, headers, part = expect(206, "/file?run=0&name=metrics.csv", {**cookie, "Range": "bytes=2-4"})
assert part == text[2:5] and headers["Content-Range"] == f"bytes 2-4/{len(text)}", (part, headers)
expect(400, "/api/runs?since=x", cookie)
expect(400, "/api/curves?runs=0&smooth=2", cookie)
expect(404, "/api/curves?runs=0&of=no_column", cookie)

# ---- too much ----------------------------------------------------------------------------------------
line = raw(b"GET / HTTP/1.1\r\nHost: " + ours.encode() + b"\r\nX: " + b"a" * 1000000 + b"\r\n\r\n")
assert " 200 " not in line, line
line = raw(b"GET /" + b"a" * 1000000 + b" HTTP/1.1\r\nHost: " + ours.encode() + b"\r\n\r\n")
assert " 200 " not in line, line
assert " 200 " not in raw(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03nonsense\r\n\r\n")
expect(200, "/api/runs", cookie)

# Clients that send a byte at a time are dropped, although none is ever silent for long.
slow = [socket.create_connection((host, port)) for _ in range(20)]
began = time.monotonic()
alive = set(slow)
while alive:
    for s in list(alive):
        try:
            s.send(b"G")
            s.setblocking(False)
            if s.recv(100) == b"":
                alive.discard(s)
        except BlockingIOError:
            pass
        except OSError:
            alive.discard(s)
    expect(200, "/api/runs?since=1", cookie)  # others are served meanwhile
    time.sleep(0.2)
for s in slow:
    s.close()
print(f"slow clients are gone after {time.monotonic() - began:.0f} s")

# A thousand connections that say nothing: they are closed, and the server answers again.
many = []
for _ in range(1000):
    s = socket.socket()
    s.setblocking(False)
    s.connect_ex((host, port))
    many.append(s)
time.sleep(1)
began = time.monotonic()
status = None
while status != 200:
    try:
        status = ask("/api/runs?since=1", cookie)[0]
    except OSError:
        time.sleep(0.2)
print(f"with 1,000 connections open the next answer came after {time.monotonic() - began:.0f} s")
for s in many:
    s.close()
expect(200, "/api/runs", cookie)
