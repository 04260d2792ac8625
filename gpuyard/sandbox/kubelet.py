"""The sandbox's own process: what the nodes of a real cluster do. It relays, runs controllers, and lets pods end.

python -m gpuyard.sandbox.kubelet --sandbox NAME --run-for SECONDS --binary vc-scheduler=FILE ...
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from gpuyard.sandbox.api import Api, ApiError
from gpuyard.sandbox.controllers import Controllers
from gpuyard.sandbox.pods import bind, meet
from gpuyard.sandbox.relay import serve, socket_path
from gpuyard.sandbox.state import Home

_PERIOD = 0.4


def main() -> None:
    """Work until stopped."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sandbox", required=True)
    parser.add_argument("--run-for", required=True)
    parser.add_argument("--binary", action="append", default=[])
    options = parser.parse_args()
    os.umask(0o077)
    threading.excepthook = _die
    home = Home(options.sandbox)
    api = Api(home.kubeconfig)
    binaries = {name: Path(path) for name, _, path in (one.partition("=") for one in options.binary)}
    controllers = Controllers(api, home, binaries, home.read_controllers())

    def look() -> None:
        began = time.time()
        controllers.round()
        home.beat(began)

    for work in (
        lambda: serve(socket_path(home.path), controllers.port_behind),
        lambda: _repeat(lambda: meet(api, options.run_for)),
        lambda: _repeat(lambda: bind(api)),
    ):
        threading.Thread(target=work, daemon=True).start()
    _repeat(look)


def _repeat(step: Callable[[], None]) -> None:
    """Do a step for ever. What the API server answers while it changes under us is printed and tried again."""
    while True:
        try:
            step()
        except ApiError as error:
            print(error, file=sys.stderr, flush=True)
        time.sleep(_PERIOD)


def _die(failed: threading.ExceptHookArgs) -> None:
    """Take the whole process down with a thread that fails: half a kubelet would look alive."""
    traceback.print_exception(failed.exc_value)
    sys.stderr.flush()
    os._exit(1)


if __name__ == "__main__":
    main()
