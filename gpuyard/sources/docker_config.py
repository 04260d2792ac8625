"""The credentials that `docker login` left for a registry.

Errors name places and never what stands there. Source: docs.docker.com/reference/cli/docker/login,
github.com/docker/docker-credential-helpers.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpuyard.errors import InputError, Origin, Problem
from gpuyard.manifests.data import at, is_map

HUB = ("https://index.docker.io/v1/", "docker.io", "index.docker.io", "registry-1.docker.io")
"""Names of one registry: first the one that `docker login` writes down, last the one that answers."""

_NOT_FOUND = b"credentials not found in native keychain"


@dataclass(frozen=True)
class Login:
    """What there is for a registry, and where; both are empty when there is nothing.

    basic:    base64 of a user name, a colon and a password.
    identity: a token that tokens are given for, instead of a password.
    """

    place: str
    basic: str = field(default="", repr=False)
    identity: str = field(default="", repr=False)


def find_login(host: str) -> Login:
    """Return what Docker would sign in with. Raises InputError when it cannot be read."""
    file = Path(os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker", "config.json")
    config: Any = None
    try:
        config = json.loads(file.read_bytes())
    except FileNotFoundError:
        return Login(str(file))
    except OSError as error:
        raise _unusable(file, detail=str(error.strerror)) from error
    except ValueError:
        pass  # Python's own error holds the whole file.
    if not is_map(config):
        raise _unusable(file, detail="it is no map in JSON")
    names = HUB if host in HUB else (host,)
    helper = _of(config, "credHelpers", names)
    # An empty helper of one registry sends it back to the file.
    if name := at(config, "credsStore") if helper is None else helper:
        return _ask(file, f"docker-credential-{name}", names[0], host)
    auth = _of(config, "auths", names)
    basic = str(at(auth, "auth") or "")
    try:
        readable = not basic or b":" in base64.b64decode(basic, validate=True)
    except ValueError:
        readable = False
    if not readable:
        detail = "it is no base64 of a user name, a colon and a password"
        raise _unusable(file, f"auths.{host}.auth", detail, f"docker login {host}")
    identity = str(at(auth, "identitytoken") or "")
    return Login(str(file), "" if identity else basic, identity)


def _of(config: Any, section: str, names: Sequence[str]) -> Any:
    """Return what a section has for a registry, whose key may be an address; None when it has nothing."""
    entries: Any = at(config, section)
    hosts = {_host(name) for name in names}
    keys = [key for key in entries if _host(key) in hosts] if is_map(entries) else []
    return entries[min(keys, key=lambda key: key not in names)] if keys else None


def _host(key: str) -> str:
    return re.sub(r"^https?://|/.*", "", key)


def _ask(file: Path, helper: str, server: str, host: str) -> Login:
    program = shutil.which(helper)
    if not program:
        fix = f"install it, or take it out of the file and docker login {host}"
        raise _unusable(file, detail=f"it leaves {host} to {helper}, which is not on PATH", fix=fix)
    try:
        result = subprocess.run([program, "get"], input=server.encode(), capture_output=True, check=False)
    except OSError as error:
        raise _unusable(file, detail=f"{program} does not start: {error.strerror}") from error
    if result.returncode and result.stdout.strip() == _NOT_FOUND:
        return Login(helper)
    # What it prints can hold a password even when it fails, so nothing of it is shown.
    try:
        answer: Any = json.loads(result.stdout) if result.returncode == 0 else None
    except ValueError:
        answer = None
    user, secret = at(answer, "Username"), at(answer, "Secret")
    if not isinstance(user, str) or not isinstance(secret, str):
        detail = f"{helper} gives no credentials for {host} (exit code {result.returncode})"
        raise _unusable(file, detail=detail, fix=f"try it: echo {server} | {helper} get")
    if user == "<token>":
        return Login(helper, identity=secret)
    return Login(helper, basic=base64.b64encode(f"{user}:{secret}".encode()).decode())


def _unusable(file: Path, field: str = "", detail: str = "", fix: str = "") -> InputError:
    return InputError(Problem("cannot use the Docker config file", Origin(str(file)), field, detail, fix))
