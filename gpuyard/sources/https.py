"""One request over https: what is sent, what is followed, and what a person reads when it fails."""

from __future__ import annotations

import http.client
import re
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

from gpuyard.errors import InputError, Problem
from gpuyard.sources.lock import Entry

TIMEOUT = 60
"""Seconds without an answer."""

_LOCAL = re.compile(r"http://(localhost|127\.0\.0\.1)[:/]")


class StatusError(InputError):
    """A server answered with an error.

    url:        who answered, after redirects. It may be signed, so it is never shown.
    challenges: the WWW-Authenticate headers of the answer.
    """

    def __init__(self, problem: Problem, error: urllib.error.HTTPError) -> None:
        super().__init__(problem)
        self.status, self.url = error.code, error.url
        self.challenges: list[str] = error.headers.get_all("WWW-Authenticate") or []


def get(entry: Entry, url: str, accept: str = "*/*", authorization: str = "", form: bytes | None = None) -> bytes:
    """Return what a server answers; with a form, to a POST.

    authorization: goes to the server of the address only, never along with a redirect to another one.
    Raises StatusError when the server answers with an error, InputError when there is no answer.
    """
    _require_secure(entry, url)
    redirects = _SecureRedirects(entry, url, authorization)
    try:
        request = urllib.request.Request(url, form, headers={"Accept": accept, "User-Agent": "gpuyard"})
        if authorization:
            request.add_unredirected_header("Authorization", authorization)
        with urllib.request.build_opener(redirects).open(request, timeout=TIMEOUT) as answer:
            return answer.read()
    except urllib.error.HTTPError as error:
        with error:
            problem = _problem(entry, url, f"the server answers {error.code} {error.reason}")
            raise StatusError(problem, error) from error
    except urllib.error.URLError as error:
        raise failed(entry, url, str(error.reason)) from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        # ValueError: an address that a server named is none.
        raise failed(entry, url, str(error)) from error


class _SecureRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect from https to http, and takes the authorization to no other server."""

    def __init__(self, entry: Entry, url: str, authorization: str) -> None:
        self.entry, self.url, self.authorization = entry, url, authorization

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        _require_secure(self.entry, newurl)
        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        if request and self.authorization and same_server(newurl, self.url):
            request.add_unredirected_header("Authorization", self.authorization)
        return request


def same_server(one: str, other: str) -> bool:
    """Return whether two addresses have the same scheme, host and port."""
    return urllib.parse.urlsplit(one)[:2] == urllib.parse.urlsplit(other)[:2]


def is_local(url: str) -> bool:
    """Return whether an address is plain http inside this machine, which nobody else can listen to."""
    return bool(_LOCAL.match(url))


def _require_secure(entry: Entry, url: str) -> None:
    if not url.startswith("https://") and not is_local(url):
        # The query of a redirect can be a signature that lets anybody in.
        raise failed(entry, url.partition("?")[0], "only https:// is fetched")


def failed(entry: Entry, url: str, reason: str) -> InputError:
    """Return the error for an entry that cannot be fetched."""
    return InputError(_problem(entry, url, reason))


def _problem(entry: Entry, url: str, reason: str) -> Problem:
    return Problem("cannot fetch", entry.origin, entry.name, f"{url}\n{reason}")
