"""A coordinator process for the benchmarks: prints its address, and serves until it is ended."""

from __future__ import annotations

import argparse
import asyncio
import signal

from skytide.runtime.network.config import Config
from skytide.runtime.network.coordinator import LARGE_LOG, Coordinator


async def main() -> None:
    """Serve what the options say."""
    parser = argparse.ArgumentParser()
    for name in ("--data", "--listen", "--protocol", "--method", "--patience", "--heartbeat", "--secret_file"):
        parser.add_argument(name)
    parser.add_argument("--large", type=int, default=LARGE_LOG, help="bytes of the log before a snapshot")
    parser.add_argument("--min", action="append", default=[])
    parser.add_argument("--max", action="append", default=[])
    flags = vars(parser.parse_args())
    large = flags.pop("large")
    config = Config.of({**flags, "min": tuple(flags["min"]), "max": tuple(flags["max"]), "new_connections": 2000})
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await Coordinator(config, large=large).run(stop=stop, started=lambda host, port: print(host, port, flush=True))


if __name__ == "__main__":
    asyncio.run(main())
