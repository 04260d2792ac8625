"""The way from the API server to local processes: it asks for a Service's address, and gets the process behind it.

The API server's egress selector sends every connection to a Service as `CONNECT <cluster IP>:<port>` to a unix socket,
as it does to a konnectivity server in clusters whose nodes it cannot reach. TLS goes through unseen, so that the
certificate is still checked against `<service>.<namespace>.svc`, and no object has to be another one here.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from gpuyard.manifests import Manifest

_LONGEST = 100
"""Of a unix socket's path, in bytes: 107 on Linux, 103 on macOS."""


def socket_path(home: Path) -> Path:
    """Return where the relay of a sandbox listens: in its folder, or where a long path does not fit, in /tmp."""
    path = home / "relay.sock"
    if len(os.fsencode(path)) <= _LONGEST:
        return path
    return Path("/tmp", f"gpuyard-{hashlib.sha256(os.fsencode(path)).hexdigest()[:16]}.sock")


def egress_configuration(path: Path) -> Manifest:
    """Return what makes the API server ask the relay at a socket."""
    connection = {"proxyProtocol": "HTTPConnect", "transport": {"uds": {"udsName": str(path)}}}
    return {
        "apiVersion": "apiserver.k8s.io/v1beta1",
        "kind": "EgressSelectorConfiguration",
        "egressSelections": [{"name": "cluster", "connection": connection}],
    }


class RefusedError(Exception):
    """An address that leads to no process, and why."""


def serve(path: Path, find: Callable[[str, int], int]) -> None:
    """Relay until stopped, see `listen`."""

    async def forever() -> None:
        await (await listen(path, find)).serve_forever()

    asyncio.run(forever())


async def listen(path: Path, find: Callable[[str, int], int]) -> asyncio.Server:
    """Start to relay. find: the local port behind an address; raises RefusedError. Called in threads."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            target = (await reader.readuntil(b"\r\n\r\n")).split(maxsplit=2)[1].decode()
            host, _, port = target.rpartition(":")
            process_reader, process_writer = await asyncio.open_connection(
                "127.0.0.1", await asyncio.to_thread(find, host.strip("[]"), int(port))
            )
        except (RefusedError, OSError) as error:
            # The API server tells its client this line.
            writer.write(f"HTTP/1.1 502 {' '.join(str(error).split())}\r\n\r\n".encode())
            await _close(writer)
        except asyncio.IncompleteReadError:
            await _close(writer)
        else:
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            await asyncio.gather(_copy(reader, process_writer), _copy(process_reader, writer))

    return await asyncio.start_unix_server(answer, path)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass on what comes until one side ends, and end the other one's side too."""
    with contextlib.suppress(OSError):  # either side may go at any time: a process is restarted, a server stopped
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    await _close(writer)


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):  # gone already
        await writer.wait_closed()
