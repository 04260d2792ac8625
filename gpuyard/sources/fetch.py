"""Files over https: one file, a chart of a Helm repository, a chart of an OCI registry."""

from __future__ import annotations

import json
import urllib.parse
from typing import Any

from gpuyard.errors import listed
from gpuyard.manifests.data import is_map
from gpuyard.sources.https import failed, get
from gpuyard.sources.lock import Chart, Url
from gpuyard.sources.oci_auth import Registry
from gpuyard.sources.store import sha256

_OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CHART_LAYER = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"


def fetch_file(entry: Chart | Url) -> tuple[str, bytes]:
    """Return the address and the content of an entry's file, whatever its digest.

    Raises InputError that names the address and the entry.
    """
    if isinstance(entry, Url):
        return entry.url, get(entry, entry.url)
    if entry.repository.startswith("oci://"):
        return _from_registry(entry)
    return _from_repository(entry)


def _from_repository(entry: Chart) -> tuple[str, bytes]:
    from gpuyard.manifests.yaml.read import read_documents

    index_url = f"{entry.repository}/index.yaml"
    # The index is not pinned, so that it is only asked for the address.
    documents = read_documents(get(entry, index_url), index_url)
    charts: Any = documents[0].get("entries") if documents else None
    releases: list[dict[str, Any]] = (charts.get(entry.chart) if is_map(charts) else None) or []
    for release in releases:
        if release.get("version") == entry.version and release.get("urls"):
            url = urllib.parse.urljoin(index_url, release["urls"][0])
            return url, get(entry, url)
    versions = [str(release.get("version")) for release in releases]
    what = f"versions: {listed(versions)}" if versions else f"no chart {entry.chart}"
    raise failed(entry, index_url, f"it has no {entry.chart} {entry.version}; {what}")


def _from_registry(entry: Chart) -> tuple[str, bytes]:
    """Fetch by the distribution API. Source: helm.sh/docs/topics/registries, the OCI media types."""
    host, _, path = entry.repository.removeprefix("oci://").partition("/")
    registry = Registry(entry, host, "/".join(part for part in (path, entry.chart) if part))
    # A tag cannot hold the + of a version; Helm writes _ for it.
    manifest_url = f"{registry.url}/manifests/{entry.version.replace('+', '_')}"
    try:
        manifest: Any = json.loads(registry.get(manifest_url, _OCI_MANIFEST))
        layers = [layer["digest"] for layer in manifest["layers"] if layer["mediaType"] == _CHART_LAYER]
    except (ValueError, KeyError, TypeError) as error:
        raise failed(entry, manifest_url, "the answer is no OCI manifest") from error
    if len(layers) != 1:
        raise failed(entry, manifest_url, f"it has {len(layers)} chart layers, 1 is needed")
    blob_url = f"{registry.url}/blobs/{layers[0]}"
    content = registry.get(blob_url)
    if sha256(content) != layers[0]:
        raise failed(entry, blob_url, f"the answer has the digest {sha256(content)}")
    return blob_url, content
