"""Asks a store over HTTP at a steady rate, in a process of its own (`asking.py --help`). Prints answer by answer."""

from __future__ import annotations

import asyncio
import random
import sys
import time
from typing import Annotated

import aiohttp
import orjson
import typer

CONNECTIONS = 32
TIMEOUT_S = 30.0
NO_ANSWER = 0
"""In the place of a status: the connection broke, or nothing came in time."""


def main(
    url: Annotated[str, typer.Option(help="Of an instance that has all partitions.")],
    store: Annotated[str, typer.Option()],
    keys: Annotated[int, typer.Option(help="Users, u0 and so on.")],
    queries: Annotated[int, typer.Option(help="Point queries a second.")],
    scans: Annotated[int, typer.Option(help="Range scans a second: all users whose number begins with some digits.")],
    seconds: Annotated[float, typer.Option()],
    seed: Annotated[int, typer.Option()],
    begin: Annotated[float, typer.Option(help="When the first is due, seconds since the epoch.")],
) -> None:
    """Ask at the due moments, whether or not earlier answers have come; times count from the due moment."""
    asyncio.run(_ask(f"{url}/stores/{store}", keys, queries, scans, seconds, random.Random(seed), begin))


async def _ask(
    url: str, keys: int, queries: int, scans: int, seconds: float, chance: random.Random, begin: float
) -> None:
    digits = 10 ** max(0, len(str(keys - 1)) - 3)
    points = [(begin + i / queries, f"{url}/keys/u{chance.randrange(keys)}", "") for i in range(int(seconds * queries))]
    prefixes = [f"u{chance.randrange(max(1, keys // digits // 10), max(2, keys // digits))}" for _ in range(1000)]
    ranges = [
        (begin + i / scans, f"{url}/range?from={prefixes[i % 1000]}&to={prefixes[i % 1000]}~", prefixes[i % 1000])
        for i in range(int(seconds * scans))
    ]
    timeout, connector = aiohttp.ClientTimeout(total=TIMEOUT_S), aiohttp.TCPConnector(limit=CONNECTIONS)
    async with aiohttp.ClientSession(timeout=timeout, connector=connector) as http:
        running = set()
        for due, address, prefix in sorted(points + ranges):
            await asyncio.sleep(max(0.0, due - time.time()))
            task = asyncio.create_task(_one(http, due, address, prefix))
            running.add(task)
            task.add_done_callback(running.discard)
        await asyncio.gather(*running)


async def _one(http: aiohttp.ClientSession, due: float, address: str, prefix: str) -> None:
    try:
        async with http.get(address) as answer:
            status, body = answer.status, (await answer.read()).decode()
    except (aiohttp.ClientError, TimeoutError) as error:
        status, body = NO_ANSWER, f"{type(error).__name__} {error}"
    said = {"prefix": prefix, "ms": 1000 * (time.time() - due), "status": status, "body": body}
    sys.stdout.write(orjson.dumps(said).decode() + "\n")


if __name__ == "__main__":
    typer.run(main)
