"""`make bench-operator` with three applications: every figure is there, and counts what it says."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import certifi
import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

sys.path.insert(0, str(Path(__file__).parent))

from bench_operator_pods import connect
from bench_operator_requests import AuditLog, writes

pytestmark = [pytest.mark.cluster, pytest.mark.integration]


@pytest.mark.long
def test_a_run_with_three_applications_has_every_figure(tmp_path: Path, api_server: object):
    # The fixture says why where programs are missing, and has them built; the run has an API server of its own.
    command = [sys.executable, Path(__file__).with_name("bench_operator.py"), "--applications=3", "--idle=1"]
    files = [f"--json={tmp_path / 'figures.json'}", f"--chart={tmp_path / 'chart.svg'}"]
    done = subprocess.run(
        [*command, "--changes=1", "--shards=2", *files],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (figures,) = orjson.loads((tmp_path / "figures.json").read_bytes())
    assert (figures["applications"], figures["shards"], figures["changes"]) == (3, 2, 1)
    assert figures["requests_each_of"]["create pods"] == 2.0
    assert figures["status_writes_each"] >= 2.0
    assert (figures["idle_writes"], figures["restart_writes"]) == (0, 0)
    assert 0 < figures["one_more_s"] < figures["changed_s"]
    assert 20 < figures["restart_peak_mib"] < 1000
    assert "<svg" in (tmp_path / "chart.svg").read_text()
    assert "requests each" in done.stdout


def test_requests_are_counted_once_and_without_the_lease(tmp_path: Path):
    def line(verb: str, resource: str, subresource: str = "") -> bytes:
        return orjson.dumps({"verb": verb, "objectRef": {"resource": resource, "subresource": subresource}}) + b"\n"

    file = tmp_path / "audit.log"
    log = AuditLog(file)
    assert not log.new()
    half = line("patch", "configmaps")
    file.write_bytes(line("update", "leases") + line("update", "pods", "status") + line("list", "pods") + half[:9])
    first = log.new()
    assert (dict(first), writes(first)) == ({("update", "pods/status"): 1, ("list", "pods"): 1}, 1)
    with file.open("ab") as more:
        more.write(half[9:])
    assert dict(log.new()) == {("patch", "configmaps"): 1}
    assert not log.new()


def test_what_the_api_server_has_no_time_for_is_asked_for_again(tmp_path: Path):
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.Response(status=429, headers={"Retry-After": "0"}) if len(asked) < 3 else web.Response(text="there")

    async def ask() -> str:
        application = web.Application()
        application.router.add_get("/watched", answer)
        async with TestServer(application) as server:
            file = tmp_path / "kubeconfig"
            cluster = {"cluster": {"server": str(server.make_url("/")), "certificate-authority": certifi.where()}}
            file.write_bytes(orjson.dumps({"clusters": [cluster], "users": [{"user": {"token": "t"}}]}))
            async with connect(file) as session, session.get("/watched") as got:
                return await got.text()

    assert asyncio.run(ask()) == "there"
    assert len(asked) == 3
