"""Every command of the tutorial prints what its pages say, in their order, from an empty folder on."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from document_shell import DocumentShell
from document_steps import TypeCommand, replaced, steps_of
from waiting import eventually

from streams_runtime.errors import EnvironmentException
from streams_runtime.kafka.broker.ports import free_ports, require_free

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800)]

EXAMPLES = Path(__file__).parents[2] / "examples"
PAGES = ("TUTORIAL.md", "TUTORIAL-2.md")


def two_ports_side_by_side() -> int:
    """The first one."""
    while True:
        (port,) = free_ports(1)
        try:
            require_free(port + 1)
        except EnvironmentException:
            continue
        return port


def environment(query_port: int) -> dict[str, str]:
    """A reader's: the commands of this environment on PATH, and nothing of this run of the tests."""
    mine = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "STREAMSAPP_TEST"))}
    commands = f"{Path(sys.executable).parent}{os.pathsep}{mine['PATH']}"
    return {**mine, "PATH": commands, "STREAMSAPP_URL": f"http://127.0.0.1:{query_port}"}


def test_everything_that_the_tutorial_says_is_so(tmp_path: Path) -> None:
    queries, (broker,) = two_ports_side_by_side(), free_ports(1)
    # The page's ports are the commands' own, at which others may listen on this machine.
    elsewhere = {
        "8081": str(queries + 1),
        "8080": str(queries),
        "9092": str(broker),
        **{
            f"streamsapp {verb} ": f"streamsapp {verb} --bootstrap-servers 127.0.0.1:{broker} "
            for verb in ("produce", "consume")
        },
    }
    steps = [step for page in PAGES for step in steps_of((EXAMPLES / page).read_text(encoding="utf-8"), page)]
    assert sum(isinstance(step, TypeCommand) for step in steps) > 15
    with DocumentShell(tmp_path, environment(queries)) as shell:
        for step in steps:
            shell.do(replaced(step, elsewhere))
        eventually(lambda: not shell.started(), lambda: f"all has ended; still there: {shell.started()}")
