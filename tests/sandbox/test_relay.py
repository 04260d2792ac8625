"""The way to local processes: what the API server asks, what it gets, and what it is told."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from gpuyard.sandbox.relay import RefusedError, egress_configuration, listen, socket_path

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[bytes]]


async def upper(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Be a process that answers in upper case."""
    while data := await reader.read(1024):
        writer.write(data.upper())
    writer.close()
    await writer.wait_closed()


@pytest.fixture
def relay(tmp_path: Path) -> Callable[[Talk], bytes]:
    """Return what a talk with a relay that knows two Services ends with; nothing listens behind the second."""

    async def run(talk: Talk) -> bytes:
        path = socket_path(tmp_path)
        async with await asyncio.start_server(upper, "127.0.0.1", 0) as process:
            port = process.sockets[0].getsockname()[1]

            def find(address: str, number: int) -> int:
                if number == 443 and address in ("10.0.0.7", "10.0.0.8"):
                    return port if address == "10.0.0.7" else 1
                raise RefusedError(f"{address} is the address\nof no Service")

            async with await listen(path, find):
                reader, writer = await asyncio.open_unix_connection(path)
                said = await talk(reader, writer)
                writer.close()
                await writer.wait_closed()
                # When the client is gone, both sides of every connection end by themselves.
                this = asyncio.current_task()
                await asyncio.gather(*(task for task in asyncio.all_tasks() if task is not this))
                return said

    return lambda talk: asyncio.run(run(talk))


def asking(request: bytes) -> Talk:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(request)
        writer.write_eof()
        return await reader.read()

    return talk


def test_bytes_go_both_ways_to_the_process_behind_the_service(relay: Any) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(b"CONNECT 10.0.0.7:443 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        said = await reader.readuntil(b"\r\n\r\n")
        for word in (b"hello", b"again"):
            writer.write(word)
            said += await reader.readexactly(5)
        return said

    assert relay(talk) == b"HTTP/1.1 200 OK\r\n\r\nHELLOAGAIN"


def test_an_address_of_no_service_is_refused_with_the_reason_in_one_line(relay: Any) -> None:
    said = relay(asking(b"CONNECT 10.0.0.9:443 HTTP/1.1\r\n\r\n"))
    assert said == b"HTTP/1.1 502 10.0.0.9 is the address of no Service\r\n\r\n"


def test_a_process_that_does_not_listen_is_told(relay: Any) -> None:
    assert relay(asking(b"CONNECT 10.0.0.8:443 HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 502 ")


def test_who_says_nothing_gets_nothing(relay: Any) -> None:
    assert relay(asking(b"CONNECT 10")) == b""


def test_the_path_of_the_socket_always_fits(tmp_path: Path) -> None:
    assert socket_path(Path("/home/a/.cache/gpuyard/sandbox/x")) == Path("/home/a/.cache/gpuyard/sandbox/x/relay.sock")
    long = socket_path(Path("/home", "a" * 200))
    assert len(str(long)) < 100
    assert long != socket_path(Path("/home", "b" * 200))


def test_the_api_server_asks_the_relay_for_what_is_in_the_cluster() -> None:
    assert egress_configuration(Path("/s/relay.sock"))["egressSelections"] == [
        {
            "name": "cluster",
            "connection": {"proxyProtocol": "HTTPConnect", "transport": {"uds": {"udsName": "/s/relay.sock"}}},
        }
    ]
