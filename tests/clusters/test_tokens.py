"""The OAuth client's secret goes to the token endpoint that was named, encrypted, and nobody waits for its answer for ever."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from airmirror.clusters.security import tokens as module
from airmirror.clusters.security.model import UnsupportedClientSetting
from airmirror.clusters.security.settings import security_of
from airmirror.clusters.security.tokens import TokenEndpointUnreachable, TokenRefused, Tokens

SECRET = "planted-secret"


def login(url: str):  # type: ignore[no-untyped-def]
    name = "sasl.oauthbearer"
    found = security_of(
        "east",
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            f"{name}.token.endpoint.url": url,
            f"{name}.client.credentials.client.id": "me",
            f"{name}.client.credentials.client.secret": SECRET,
        },
    ).login
    assert found is not None
    return found


@pytest.mark.parametrize(
    "url",
    ["http://idp.example.org/t", "http://10.0.0.1/t", "http://localhost.example.org/t", "http://[::2]/t", "ftp://x/t"],
)
def test_a_secret_is_not_sent_in_clear(url: str) -> None:
    with pytest.raises(UnsupportedClientSetting, match="https") as caught:
        login(url)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["https://idp.example.org/t", "http://localhost:1/t", "http://127.0.0.1/t", "http://[::1]/t"]
)
def test_by_tls_or_on_this_machine_it_is(url: str) -> None:
    assert login(url).token_url == url


@contextmanager
def endpoint(answer) -> Iterator[tuple[str, list[str]]]:  # type: ignore[no-untyped-def]
    """A server on loopback; what it was shown as authorization."""
    shown: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            shown.append(self.headers.get("Authorization", ""))
            answer(self)

        do_GET = do_POST

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))  # it looks so often whether it is to end
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/token", shown
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(status: int) -> None:
    with endpoint(lambda handler: handler.send_error(404)) as (elsewhere, shown_elsewhere):

        def redirect(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(status)
            handler.send_header("Location", elsewhere)
            handler.end_headers()

        with endpoint(redirect) as (url, shown), pytest.raises(TokenRefused, match=f"HTTP status {status}"):
            Tokens("east", login(url)).token()
    assert len(shown) == 1 and not shown_elsewhere


def test_no_proxy_is_shown_what_stays_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    def token(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(b'{"access_token": "t", "expires_in": 60}')

    with endpoint(token) as (proxy, shown_to_proxy), endpoint(token) as (url, shown):
        monkeypatch.setenv("http_proxy", proxy.removesuffix("/token"))
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        assert Tokens("east", login(url)).token() == "t"
    assert len(shown) == 1 and not shown_to_proxy


def test_an_answer_that_comes_byte_by_byte_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte comes within the time that a read may take; the whole answer would never."""
    ended = threading.Event()

    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        while not ended.wait(0.2):
            try:
                handler.wfile.write(b" ")
            except OSError:
                return

    monkeypatch.setattr(module, "SECONDS", 2.0)
    with endpoint(drip) as (url, _):
        try:
            with pytest.raises(TokenEndpointUnreachable, match="no whole answer within 2 s") as caught:
                Tokens("east", login(url)).token()
            assert caught.value.transient
        finally:
            ended.set()
