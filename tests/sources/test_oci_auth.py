"""Signing in to a registry: every challenge, every place of credentials, and that nothing secret ever gets out."""

from __future__ import annotations

import base64
import json
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from gpuyard.errors import InputError
from gpuyard.sources import Lock
from gpuyard.sources.docker_config import find_login
from gpuyard.sources.pull import pull, record
from tests.sources.conftest import Answer, Request, Server, sha256
from tests.sources.test_pull import chart_entry, files, serve_registry

Write = Callable[[str], Lock]

TOKEN, PASSWORD, IDENTITY = "t0ken.of-the_realm", "pa55word", "1dentity"
BASIC = base64.b64encode(f"rob:{PASSWORD}".encode()).decode()
SECRETS = (TOKEN, PASSWORD, IDENTITY, BASIC)

MANIFEST = "/v2/acme/greeter/manifests/1.2.3"
SCOPE = "scope=repository%3Aacme%2Fgreeter%3Apull"
BEARER = 'Bearer realm="http://HOST/token",service="registry.example.com",scope="repository:acme/greeter:pull,push"'


@dataclass
class Registry:
    """A registry with our chart that lets nobody in without a token.

    challenges: its WWW-Authenticate headers; HOST in them is its address.
    accepted:   the Authorization header that opens it; None when it is open.
    status:     how it answers everybody else.
    token:      what the realm answers.
    needs:      the Authorization header that the realm wants.
    """

    server: Server
    archive: bytes
    challenges: list[str] = field(default_factory=lambda: [BEARER])
    accepted: str | None = f"Bearer {TOKEN}"
    status: int = 401
    token: bytes = json.dumps({"token": TOKEN, "expires_in": 60}).encode()
    needs: str | None = None

    def __post_init__(self) -> None:
        self.address = serve_registry(self.server, self.archive)
        self.blob = f"/v2/acme/greeter/blobs/{sha256(self.archive)}"
        self.server.guard = self.guard

    def guard(self, request: Request) -> Answer | None:
        if request.path.startswith("/token"):
            return Answer(401) if self.needs and request.authorization != self.needs else Answer(200, [], self.token)
        if request.authorization == self.accepted or not request.path.startswith("/v2/"):
            return None
        challenges = [("WWW-Authenticate", text.replace("HOST", self.server.host)) for text in self.challenges]
        return Answer(self.status, challenges)


@pytest.fixture
def registry(server: Server, archive: bytes) -> Registry:
    return Registry(server, archive)


@pytest.fixture(autouse=True)
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of Docker's settings, and one on PATH for its helpers."""
    folder = tmp_path / "docker"
    (folder / "bin").mkdir(parents=True)
    monkeypatch.setenv("DOCKER_CONFIG", str(folder))
    monkeypatch.setenv("PATH", f"{folder / 'bin'}:/usr/bin:/bin")
    return folder


def configure(docker: Path, config: str, host: str) -> None:
    """Write Docker's settings; HOST in them is the address of the registry."""
    (docker / "config.json").write_text(config.replace("HOST", host).replace("BASIC", BASIC))


def write_helper(docker: Path, name: str, script: str) -> None:
    """Write a helper that remembers what it was asked for."""
    file = docker / "bin" / f"docker-credential-{name}"
    file.write_text(f'#!/bin/sh\necho "$1 $(cat)" > {docker}/asked\n{script}\n')
    file.chmod(0o755)


def answer(user: str, secret: str) -> str:
    return f"echo '{json.dumps({'ServerURL': 'ignored', 'Username': user, 'Secret': secret})}'"


@pytest.mark.parametrize(
    ("challenges", "query"),
    [
        ([BEARER], f"{SCOPE}&service=registry.example.com"),
        (['Bearer realm="http://HOST/token"'], SCOPE),
        (["bearer REALM=http://HOST/token , Service=r"], f"{SCOPE}&service=r"),
        (['Bearer service="",realm="http://HOST/token"'], f"{SCOPE}&service="),
        (['Bearer realm="http://HOST/token?account=1",service="a \\"b\\""'], f"account=1&{SCOPE}&service=a+%22b%22"),
        (['Basic realm="r, s", Bearer realm="http://HOST/token"'], SCOPE),
        (["Negotiate YWJj==", 'Bearer realm="http://HOST/token"', 'Basic realm="r"'], SCOPE),
    ],
)
@pytest.mark.parametrize("key", ["token", "access_token"])
def test_one_token_for_the_manifest_and_the_blob(
    lock: Write, registry: Registry, challenges: list[str], query: str, key: str
) -> None:
    registry.challenges = challenges
    registry.token = json.dumps({key: TOKEN}).encode()

    assert record(lock(chart_entry(registry.address)), "greeter") == sha256(registry.archive)

    assert registry.server.requests == [
        Request(MANIFEST),
        Request(f"/token?{query}"),
        Request(MANIFEST, f"Bearer {TOKEN}"),
        Request(registry.blob, f"Bearer {TOKEN}"),
    ]


@pytest.mark.parametrize(
    ("challenge", "accepted"), [(BEARER, f"Bearer {TOKEN}"), ('Basic realm="r"', f"Basic {BASIC}")]
)
def test_no_other_server_sees_the_authorization(
    lock: Write, registry: Registry, storage: Server, docker: Path, challenge: str, accepted: str
) -> None:
    configure(docker, '{"auths": {"HOST": {"auth": "BASIC"}}}', registry.server.host)
    registry.challenges, registry.accepted = [challenge], accepted
    registry.server.redirects = {
        MANIFEST: f"{MANIFEST}-moved",
        registry.blob: f"http://{storage.host}/blob?signature=1",
    }
    registry.server.files[f"{MANIFEST}-moved"] = registry.server.files[MANIFEST]
    storage.files["/blob?signature=1"] = registry.archive

    record(lock(chart_entry(registry.address)), "greeter")

    assert registry.server.requests[-3:] == [
        Request(path, accepted) for path in (MANIFEST, f"{MANIFEST}-moved", registry.blob)
    ]
    assert storage.requests == [Request("/blob?signature=1")]


def test_a_realm_that_redirects_takes_no_password_along(
    lock: Write, registry: Registry, storage: Server, docker: Path
) -> None:
    configure(docker, '{"auths": {"HOST": {"auth": "BASIC"}}}', registry.server.host)
    registry.challenges = ['Bearer realm="http://HOST/realm"']
    registry.server.redirects[f"/realm?{SCOPE}"] = f"http://{storage.host}/token"
    storage.files["/token"] = registry.token

    record(lock(chart_entry(registry.address)), "greeter")

    assert registry.server.requests[1] == Request(f"/realm?{SCOPE}", f"Basic {BASIC}")
    assert storage.requests == [Request("/token")]


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("reason", ["401 Unauthorized", "403 Forbidden"])
def test_a_storage_host_is_not_signed_in_to(
    lock: Write, registry: Registry, storage: Server, reason: str, is_open: bool
) -> None:
    registry.accepted = None if is_open else registry.accepted
    registry.server.redirects[registry.blob] = f"http://{storage.host}/blob?signature=1"
    challenge = ("WWW-Authenticate", BEARER.replace("HOST", storage.host))
    storage.guard = lambda request: Answer(int(reason[:3]), [challenge])

    with pytest.raises(InputError) as caught:
        record(lock(chart_entry(registry.address)), "greeter")

    assert str(caught.value) == (
        "error  cannot fetch\n"
        "  gpuyard.lock.yaml:1   greeter\n"
        f"  http://{registry.server.host}{registry.blob}\n"
        f"  the server answers {reason}"
    )
    assert storage.requests == [Request("/blob?signature=1")]


@pytest.mark.parametrize(
    ("config", "helper", "asked", "basic"),
    [
        ('{"auths": {"other.example.com": {"auth": "eA=="}, "HOST": {"auth": "BASIC"}}}', "", "", BASIC),
        ('{"auths": {"https://HOST/v1/": {"auth": "BASIC"}}}', "", "", BASIC),
        ('{"auths": {"HOST/mirror": {"auth": "eA=="}, "HOST": {"auth": "BASIC"}}}', "", "", BASIC),
        ('{"auths": {"HOST": {}}}', "", "", ""),
        ('{"auths": {"other.example.com": {"auth": "BASIC"}}}', "", "", ""),
        ('{"credHelpers": {"HOST": "safe"}, "credsStore": "none"}', answer("rob", PASSWORD), "get HOST\n", BASIC),
        ('{"auths": {"HOST": {}}, "credsStore": "safe"}', answer("rob", PASSWORD), "get HOST\n", BASIC),
        ('{"credsStore": "safe", "credHelpers": {"HOST": ""}, "auths": {"HOST": {"auth": "BASIC"}}}', "", "", BASIC),
        ('{"credsStore": "safe"}', "echo credentials not found in native keychain; exit 1", "get HOST\n", ""),
    ],
)
def test_where_the_realm_gets_its_password_from(
    lock: Write, registry: Registry, docker: Path, config: str, helper: str, asked: str, basic: str
) -> None:
    host = registry.server.host
    configure(docker, config, host)
    write_helper(docker, "safe", helper)

    record(lock(chart_entry(registry.address)), "greeter")

    (realm,) = [request for request in registry.server.requests if request.path.startswith("/token")]
    assert realm.authorization == (f"Basic {basic}" if basic else None)
    assert (docker / "asked").exists() == bool(asked)
    assert not asked or (docker / "asked").read_text() == asked.replace("HOST", host)


@pytest.mark.parametrize(
    ("config", "helper"),
    [
        (f'{{"auths": {{"HOST": {{"auth": "cm9iOg==", "identitytoken": "{IDENTITY}"}}}}}}', ""),
        ('{"credsStore": "safe"}', answer("<token>", IDENTITY)),
    ],
)
def test_an_identity_token_is_posted_to_the_realm(
    lock: Write, registry: Registry, docker: Path, config: str, helper: str
) -> None:
    configure(docker, config, registry.server.host)
    write_helper(docker, "safe", helper)

    record(lock(chart_entry(registry.address)), "greeter")

    realm = registry.server.requests[1]
    assert (realm.path, realm.authorization) == ("/token", None)
    assert parse_qs(realm.form) == {
        "grant_type": ["refresh_token"],
        "client_id": ["gpuyard"],
        "refresh_token": [IDENTITY],
        "service": ["registry.example.com"],
        "scope": ["repository:acme/greeter:pull"],
    }


def test_without_a_docker_config_variable_it_is_in_the_home_folder(
    docker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DOCKER_CONFIG")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".docker").mkdir()
    configure(tmp_path / ".docker", '{"auths": {"HOST": {"auth": "BASIC"}}}', "r.example.com")

    assert find_login("r.example.com").basic == BASIC


@pytest.mark.parametrize("key", ["https://index.docker.io/v1/", "index.docker.io", "docker.io", "registry-1.docker.io"])
@pytest.mark.parametrize("host", ["docker.io", "registry-1.docker.io"])
def test_docker_hub_has_many_names(docker: Path, key: str, host: str) -> None:
    configure(docker, '{"auths": {"HOST": {"auth": "BASIC"}}}', key)
    assert find_login(host).basic == BASIC

    configure(docker, '{"credHelpers": {"HOST": "safe"}}', key)
    write_helper(docker, "safe", answer("rob", PASSWORD))
    assert find_login(host).basic == BASIC
    assert (docker / "asked").read_text() == "get https://index.docker.io/v1/\n"


def test_docker_hub_answers_at_another_address(lock: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:1")

    with pytest.raises(InputError, match=r"\n  https://registry-1\.docker\.io/v2/acme/greeter/manifests/1\.2\.3\n"):
        record(lock(chart_entry("oci://docker.io/acme")), "greeter")


def test_a_realm_that_nobody_answers_at(lock: Write, registry: Registry) -> None:
    registry.challenges = ['Bearer realm="http://127.0.0.1:1/token"']

    with pytest.raises(InputError, match=r"\n  http://127\.0\.0\.1:1/token\?scope=.*\n.*Connection refused$"):
        record(lock(chart_entry(registry.address)), "greeter")


@dataclass
class Refused:
    """What goes wrong, and what a person reads: HOST is the registry, DOCKER the folder of Docker's settings."""

    message: str
    config: str = ""
    helper: str = ""
    challenges: list[str] = field(default_factory=lambda: [BEARER])
    token: str = json.dumps({"token": TOKEN})
    needs: str | None = None
    accepted: str = f"Bearer {TOKEN}"
    status: int = 401


def unreachable(url: str, reason: str, fix: str = "") -> str:
    where = "error  cannot fetch\n  gpuyard.lock.yaml:1   greeter\n"
    return f"{where}  {url}\n  {reason}" + (f"\n  fix: {fix}" if fix else "")


def unusable(detail: str, fix: str = "", field: str = "") -> str:
    where = f"error  cannot use the Docker config file\n  DOCKER/config.json{field and '   '}{field}\n"
    return f"{where}  {detail}" + (f"\n  fix: {fix}" if fix else "")


MANIFEST_URL = f"http://HOST{MANIFEST}"
TOKEN_URL = f"http://HOST/token?{SCOPE}&service=registry.example.com"
NONE = "there are no credentials for HOST in DOCKER/config.json"
WRONG = "it refuses the credentials for HOST in"
LOGIN = "check the address, or docker login HOST"
AUTHS = '{"auths": {"HOST": {"auth": "BASIC"}}}'
STORE = '{"credsStore": "safe"}'
UNREADABLE = "the server answers 401 and a challenge that cannot be read:"


REFUSED = {
    "no credentials": Refused(
        unreachable(TOKEN_URL, f"the server answers 401 Unauthorized; {NONE}", LOGIN), needs="Basic of somebody else"
    ),
    "the realm refuses the credentials": Refused(
        unreachable(TOKEN_URL, f"the server answers 401 Unauthorized; {WRONG} DOCKER/config.json", LOGIN),
        config=AUTHS,
        needs="Basic of somebody else",
    ),
    "the realm refuses the helper's credentials": Refused(
        unreachable(TOKEN_URL, f"the server answers 401 Unauthorized; {WRONG} docker-credential-safe", LOGIN),
        config=STORE,
        helper=answer("rob", PASSWORD),
        needs="Basic of somebody else",
    ),
    "the registry refuses an anonymous token": Refused(
        unreachable(MANIFEST_URL, f"the server answers 401 Unauthorized; {NONE}", LOGIN), accepted="another token"
    ),
    "the registry refuses the user's token": Refused(
        unreachable(MANIFEST_URL, f"the server answers 401 Unauthorized; {WRONG} DOCKER/config.json", LOGIN),
        config=AUTHS,
        accepted="another token",
    ),
    "the registry refuses the password": Refused(
        unreachable(MANIFEST_URL, f"the server answers 401 Unauthorized; {WRONG} DOCKER/config.json", LOGIN),
        config=AUTHS,
        challenges=["Basic"],
    ),
    "a password is needed and there is none": Refused(
        unreachable(MANIFEST_URL, f"the server answers 401 Unauthorized; {NONE}", LOGIN), challenges=["Basic"]
    ),
    "a registry that does not ask": Refused(unreachable(MANIFEST_URL, "the server answers 403 Forbidden"), status=403),
    "no challenge": Refused(unreachable(MANIFEST_URL, f"{UNREADABLE} none"), challenges=[]),
    "another challenge": Refused(unreachable(MANIFEST_URL, f"{UNREADABLE} Negotiate"), challenges=["Negotiate"]),
    "no realm": Refused(
        unreachable(MANIFEST_URL, f'{UNREADABLE} Bearer service="r"'), challenges=['Bearer service="r"']
    ),
    "an open quote": Refused(
        unreachable(MANIFEST_URL, f'{UNREADABLE} Bearer realm="https://r.example.com'),
        challenges=['Bearer realm="https://r.example.com'],
    ),
    "a realm on plain http": Refused(
        unreachable(
            "http://HOST/v2/acme/greeter", "it sends to http://r.example.com/ to sign in; only https:// is accepted"
        ),
        config=AUTHS,
        challenges=['Bearer realm="http://r.example.com/"'],
    ),
    "a realm that has nothing to do with http": Refused(
        unreachable("http://HOST/v2/acme/greeter", "it sends to file:///etc to sign in; only https:// is accepted"),
        challenges=['Bearer realm="file:///etc"'],
    ),
    "a realm that is no address": Refused(
        unreachable(f"https://[x?{SCOPE}", "Invalid IPv6 URL"), challenges=['Bearer realm="https://[x"']
    ),
    "a realm in other letters": Refused(
        unreachable(
            f"http://HOST/t\u00f6ken?{SCOPE}",
            "'ascii' codec can't encode character '\\xf6' in position 6: ordinal not in range(128)",
        ),
        challenges=['Bearer realm="http://HOST/t\u00f6ken"'],
    ),
    "a realm that does not know the address": Refused(
        unreachable(f"http://HOST/none?{SCOPE}", "the server answers 404 Not Found"),
        challenges=['Bearer realm="http://HOST/none"'],
    ),
    "a realm that answers no JSON": Refused(unreachable(TOKEN_URL, "the answer has no token"), token=f"<p>{TOKEN}"),
    "a realm that answers no map": Refused(unreachable(TOKEN_URL, "the answer has no token"), token=f'["{TOKEN}"]'),
    "a realm that answers no text": Refused(unreachable(TOKEN_URL, "the answer has no token"), token='{"token": 1}'),
    "a token that no header can hold": Refused(
        unreachable(TOKEN_URL, "the answer has no token"), token=json.dumps({"token": f"{TOKEN}\r\nX: 1"})
    ),
    "settings that are no JSON": Refused(unusable("it is no map in JSON"), config='{"auths": {"HOST": "BASIC"}'),
    "settings that are no map": Refused(unusable("it is no map in JSON"), config='["BASIC"]'),
    "a password that is no base64": Refused(
        unusable("it is no base64 of a user name, a colon and a password", "docker login HOST", "auths.HOST.auth"),
        config=f'{{"auths": {{"HOST": {{"auth": "{PASSWORD}!"}}}}}}',
    ),
    "a missing helper": Refused(
        unusable(
            "it leaves HOST to docker-credential-gone, which is not on PATH",
            "install it, or take it out of the file and docker login HOST",
        ),
        config='{"credsStore": "gone"}',
    ),
    "a helper that fails": Refused(
        unusable(
            "docker-credential-safe gives no credentials for HOST (exit code 3)",
            "try it: echo HOST | docker-credential-safe get",
        ),
        config=STORE,
        helper=f"echo {PASSWORD}; echo {PASSWORD} >&2; exit 3",
    ),
    "a helper that answers something else": Refused(
        unusable(
            "docker-credential-safe gives no credentials for HOST (exit code 0)",
            "try it: echo HOST | docker-credential-safe get",
        ),
        config=STORE,
        helper=f"echo {PASSWORD}",
    ),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_what_is_refused(
    lock: Write, registry: Registry, docker: Path, cache: Path, case: Refused, capfd: pytest.CaptureFixture[str]
) -> None:
    host = registry.server.host
    registry.challenges, registry.token = case.challenges, case.token.encode()
    registry.needs, registry.accepted, registry.status = case.needs, case.accepted, case.status
    if case.config:
        configure(docker, case.config, host)
    write_helper(docker, "safe", case.helper)

    with pytest.raises(InputError) as caught:
        pull(lock(chart_entry(registry.address, sha256(registry.archive))))

    assert str(caught.value) == case.message.replace("HOST", host).replace("DOCKER", str(docker))
    trace = "".join(traceback.format_exception(caught.value))
    assert not [secret for secret in SECRETS if secret in trace + "".join(capfd.readouterr())]
    assert files(cache) == []


@pytest.mark.parametrize("challenge", [BEARER, 'Basic realm="r"'])
def test_nothing_secret_is_written_down(
    lock: Write,
    registry: Registry,
    docker: Path,
    cache: Path,
    challenge: str,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(0)
    configure(docker, AUTHS, registry.server.host)
    registry.challenges, registry.needs = [challenge], f"Basic {BASIC}"
    registry.accepted = f"Bearer {TOKEN}" if challenge == BEARER else f"Basic {BASIC}"
    pinned = lock(chart_entry(registry.address))

    record(pinned, "greeter")

    (stored,) = files(cache)
    assert (cache / stored).read_bytes() == registry.archive
    written = registry.archive + pinned.path.read_bytes() + "".join(capfd.readouterr()).encode()
    assert not [secret for secret in SECRETS if secret.encode() in written or secret in caplog.text]
    assert not [secret for secret in SECRETS if secret in repr(find_login(registry.server.host))]
