"""quixstreams in a folder of the cache: a dependency of the benchmark only, installed when it is first measured."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bench_declared import HERE
from bench_peer_build import digest, whole

from streams_runtime.errors import EnvironmentException

REQUIREMENTS = HERE / "peers" / "quixstreams" / "requirements.txt"
_TIMEOUT_S = 600.0


def quixstreams_folder(cache: Path) -> Path:
    """The folder with the packages of requirements.txt, filled by pip when it is not there.

    Raises EnvironmentException when pip fails.
    """
    folder = cache / "quixstreams-peer" / f"{digest(REQUIREMENTS)}-py{sys.version_info[0]}{sys.version_info[1]}"
    whole(folder, _install)
    return folder


def _install(target: Path) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--requirement", str(REQUIREMENTS), "--target", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    if done.returncode != 0:
        tail = "\n".join(done.stderr.splitlines()[-5:])
        raise EnvironmentException(
            f"quixstreams could not be installed into {target}: {tail}\nRepair that (the first time needs the"
            " network), or leave it out with CONTESTANTS"
        )
