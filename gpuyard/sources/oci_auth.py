"""An OCI registry that wants to be signed in to: its challenge, and a token for one repository.

Source: distribution.github.io/distribution/spec/auth/token and /oauth, RFC 9110 section 11.6.1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlencode

from gpuyard.errors import InputError
from gpuyard.manifests.data import at
from gpuyard.sources.docker_config import HUB, Login, find_login
from gpuyard.sources.https import StatusError, failed, get, is_local, same_server
from gpuyard.sources.lock import Entry

_PART = re.compile(r"""([\w-]+) (\s*=\s* (?: "((?:[^"\\]|\\.)*)" | ([^\s,"]+) ) )?""", re.VERBOSE)


class Registry:
    """One repository of a registry during one pull. Signs in when the registry asks for it, and once.

    No credential and no token leaves it, except to the registry and to the realm that the registry names.
    """

    def __init__(self, entry: Entry, host: str, repository: str) -> None:
        scheme = "http" if host.partition(":")[0] in ("localhost", "127.0.0.1") else "https"
        self.url = f"{scheme}://{HUB[-1] if host in HUB else host}/v2/{repository}"
        self._entry, self._host, self._repository = entry, host, repository
        self._login = Login("")
        self._authorization = ""

    def get(self, url: str, accept: str = "*/*") -> bytes:
        """Return what the registry answers. Raises InputError."""
        try:
            return get(self._entry, url, accept, self._authorization)
        except StatusError as error:
            # Nobody signs in to the storage host that a blob is redirected to.
            if error.status not in (401, 403) or not same_server(error.url, self.url):
                raise
            if self._authorization:
                raise self._denied(error) from error
            if error.status == 403:
                raise
            self._authorization = self._sign_in(url, error)
        return self.get(url, accept)

    def _sign_in(self, url: str, error: StatusError) -> str:
        """Return the Authorization header that answers a challenge."""
        asked = _parse(error.challenges)
        bearer = asked.get("bearer", {})
        if "realm" not in bearer and "basic" not in asked:
            found = ", ".join(error.challenges) or "none"
            reason = f"the server answers 401 and a challenge that cannot be read: {found}"
            raise failed(self._entry, url, reason) from error
        self._login = find_login(self._host)
        if "realm" in bearer:
            return f"Bearer {self._token(bearer)}"
        if not self._login.basic:
            raise self._denied(error) from error
        return f"Basic {self._login.basic}"

    def _token(self, challenge: Mapping[str, str]) -> str:
        realm, login = challenge["realm"], self._login
        if not realm.startswith("https://") and not (is_local(realm) and is_local(self.url)):
            raise failed(self._entry, self.url, f"it sends to {realm} to sign in; only https:// is accepted")
        query = {"scope": f"repository:{self._repository}:pull"}
        if "service" in challenge:
            query["service"] = challenge["service"]
        url, form = f"{realm}{'&' if '?' in realm else '?'}{urlencode(query)}", None
        if login.identity:
            query |= {"grant_type": "refresh_token", "client_id": "gpuyard", "refresh_token": login.identity}
            url, form = realm, urlencode(query).encode()
        basic = f"Basic {login.basic}" if login.basic else ""
        try:
            content = get(self._entry, url, authorization=basic, form=form)
        except StatusError as error:
            if error.status in (401, 403):
                raise self._denied(error) from error
            raise
        try:
            answer: Any = json.loads(content)
        except ValueError:
            answer = None
        token = at(answer, "token") or at(answer, "access_token")
        # Python would show a token that no header can hold.
        if not isinstance(token, str) or not re.fullmatch("[!-~]+", token):
            raise failed(self._entry, url, "the answer has no token")
        return token

    def _denied(self, error: StatusError) -> InputError:
        problem, login = error.problems[0], self._login
        found = "it refuses the" if login.basic or login.identity else "there are no"
        detail = f"{problem.detail}; {found} credentials for {self._host} in {login.place}"
        return InputError(problem._replace(detail=detail, fix=f"check the address, or docker login {self._host}"))


def _parse(headers: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return scheme -> its parameters, all names in lower case. What cannot be read is left out."""
    schemes: dict[str, dict[str, str]] = {}
    for header in headers:
        parameters: dict[str, str] = {}
        for name, value, quoted, plain in _PART.findall(header):
            if value:
                parameters[name.lower()] = plain or re.sub(r"\\(.)", r"\1", quoted)
            else:
                parameters = schemes.setdefault(name.lower(), {})
    return schemes
