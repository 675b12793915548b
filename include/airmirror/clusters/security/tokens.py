"""Tokens for SASL OAUTHBEARER, from a token endpoint with a client's credentials (RFC 6749, 4.4)."""

from __future__ import annotations

import base64
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from http.client import HTTPException
from typing import Any

from airmirror.clusters.security.model import Login
from airmirror.clusters.security.settings import TOKEN_ENDPOINT
from airmirror.errors import AirmirrorError
from airmirror.threads import begin

SECONDS = 10.0  # for the whole answer, however slowly it comes
SHARE_OF_LIFE = 0.8  # a token is used for so much of its time: Kafka's sasl.login.refresh.window.factor


class TokenRefused(AirmirrorError):
    """A token endpoint that does not give this client a token."""

    cluster: str
    url: str
    reason: str

    def __str__(self) -> str:
        return (
            f"cluster {self.cluster!r}: no OAUTHBEARER token from {self.url}: {self.reason}; "
            f"see {self.cluster}.{TOKEN_ENDPOINT}, {self.cluster}.sasl.oauthbearer.client.credentials.… and …scope"
        )


class TokenEndpointUnreachable(TokenRefused, transient=True):
    """A token endpoint that does not answer just now."""


class Tokens:
    """The tokens of one client; one is kept for most of its lifetime."""

    def __init__(self, alias: str, login: Login) -> None:
        self._alias, self._login = alias, login
        self._kept, self._until = "", 0.0
        parts = urllib.parse.urlsplit(login.token_url)
        # Without what may stand before the host or after the path: it is named in messages.
        self._shown = urllib.parse.urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))

    def token(self) -> str:
        """A token that is still good for a while. Raises TokenRefused, TokenEndpointUnreachable."""
        if time.monotonic() >= self._until:
            answer = self._ask()
            lifetime = answer.get("expires_in")
            self._kept = str(answer["access_token"])
            self._until = time.monotonic() + (
                lifetime * SHARE_OF_LIFE if isinstance(lifetime, int | float) and lifetime > 0 else 0.0
            )
        return self._kept

    def _ask(self) -> dict[str, Any]:
        login = self._login
        credentials = base64.b64encode(f"{login.client_id}:{login.client_secret}".encode()).decode()
        form = {"grant_type": "client_credentials"} | ({"scope": login.scope} if login.scope else {})
        request = urllib.request.Request(
            login.token_url,
            urllib.parse.urlencode(form).encode(),
            {"Authorization": f"Basic {credentials}", "Accept": "application/json"},
        )
        try:
            answer = json.loads(begin(lambda: _send(request)).result(SECONDS))
        except urllib.error.HTTPError as error:
            error.close()
            kind = TokenRefused if error.code < 500 and error.code != 429 else TokenEndpointUnreachable
            raise kind(self._alias, self._shown, f"HTTP status {error.code}") from error
        except OSError as error:  # TimeoutError, too
            reason = str(error) or f"no whole answer within {SECONDS:g} s"
            raise TokenEndpointUnreachable(self._alias, self._shown, reason) from error
        except HTTPException as error:
            raise TokenEndpointUnreachable(self._alias, self._shown, type(error).__name__) from error
        except ValueError as error:
            raise TokenRefused(self._alias, self._shown, "its answer is no JSON") from error
        if not isinstance(answer, dict) or not answer.get("access_token"):
            raise TokenRefused(self._alias, self._shown, "its answer holds no access_token")
        return answer


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the secret is for the endpoint that was named."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _send(request: urllib.request.Request) -> bytes:
    """The answer's body. What stays on this machine goes through no proxy."""
    proxies = urllib.request.ProxyHandler({} if request.type == "http" else None)
    with urllib.request.build_opener(_Stay, proxies).open(request, timeout=SECONDS) as response:
        return bytes(response.read(1 << 20))
