"""Files over https: one file, a chart of a Helm repository, a chart of an OCI registry."""

from __future__ import annotations

import http.client
import json
import re
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

from gpuyard.errors import InputError, Problem, listed
from gpuyard.manifests.data import is_map
from gpuyard.sources.lock import Chart, Entry, Url
from gpuyard.sources.store import sha256

TIMEOUT = 60
"""Seconds without an answer."""

_LOCAL = re.compile(r"http://(localhost|127\.0\.0\.1)[:/]")
_OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CHART_LAYER = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"


def fetch_file(entry: Chart | Url) -> tuple[str, bytes]:
    """Return the address and the content of an entry's file, whatever its digest.

    Raises InputError that names the address and the entry.
    """
    if isinstance(entry, Url):
        return entry.url, _get(entry, entry.url)
    if entry.repository.startswith("oci://"):
        return _from_registry(entry)
    return _from_repository(entry)


def _from_repository(entry: Chart) -> tuple[str, bytes]:
    from gpuyard.manifests.yaml.read import read_documents

    index_url = f"{entry.repository}/index.yaml"
    # The index is not pinned, so that it is only asked for the address.
    documents = read_documents(_get(entry, index_url), index_url)
    charts: Any = documents[0].get("entries") if documents else None
    releases: list[dict[str, Any]] = (charts.get(entry.chart) if is_map(charts) else None) or []
    for release in releases:
        if release.get("version") == entry.version and release.get("urls"):
            url = urllib.parse.urljoin(index_url, release["urls"][0])
            return url, _get(entry, url)
    versions = [str(release.get("version")) for release in releases]
    what = f"versions: {listed(versions)}" if versions else f"no chart {entry.chart}"
    raise _failed(entry, index_url, f"it has no {entry.chart} {entry.version}; {what}")


def _from_registry(entry: Chart) -> tuple[str, bytes]:
    """Fetch by the distribution API without signing in. Source: helm.sh/docs/topics/registries, the OCI media types."""
    host, _, path = entry.repository.removeprefix("oci://").partition("/")
    scheme = "http" if host.partition(":")[0] in ("localhost", "127.0.0.1") else "https"
    base = f"{scheme}://{host}/v2/" + "/".join(part for part in (path, entry.chart) if part)
    # A tag cannot hold the + of a version; Helm writes _ for it.
    manifest_url = f"{base}/manifests/{entry.version.replace('+', '_')}"
    try:
        manifest: Any = json.loads(_get(entry, manifest_url, accept=_OCI_MANIFEST))
        layers = [layer["digest"] for layer in manifest["layers"] if layer["mediaType"] == _CHART_LAYER]
    except (ValueError, KeyError, TypeError) as error:
        raise _failed(entry, manifest_url, "the answer is no OCI manifest") from error
    if len(layers) != 1:
        raise _failed(entry, manifest_url, f"it has {len(layers)} chart layers, 1 is needed")
    blob_url = f"{base}/blobs/{layers[0]}"
    content = _get(entry, blob_url)
    if sha256(content) != layers[0]:
        raise _failed(entry, blob_url, f"the answer has the digest {sha256(content)}")
    return blob_url, content


def _get(entry: Entry, url: str, accept: str = "*/*") -> bytes:
    _require_secure(entry, url)
    request = urllib.request.Request(url, headers={"Accept": accept, "User-Agent": "gpuyard"})
    try:
        with urllib.request.build_opener(_SecureRedirects(entry)).open(request, timeout=TIMEOUT) as answer:
            return answer.read()
    except urllib.error.HTTPError as error:
        with error:
            raise _failed(entry, url, f"the server answers {error.code} {error.reason}") from error
    except urllib.error.URLError as error:
        raise _failed(entry, url, str(error.reason)) from error
    except (OSError, http.client.HTTPException) as error:
        raise _failed(entry, url, str(error)) from error


class _SecureRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect from https to http."""

    def __init__(self, entry: Entry) -> None:
        self.entry = entry

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        _require_secure(self.entry, newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _require_secure(entry: Entry, url: str) -> None:
    if not url.startswith("https://") and not _LOCAL.match(url):
        raise _failed(entry, url, "only https:// is fetched")


def _failed(entry: Entry, url: str, reason: str) -> InputError:
    return InputError(Problem("cannot fetch", entry.origin, entry.name, f"{url}\n{reason}"))
