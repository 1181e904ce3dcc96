"""`python -m streams_operator`: the operator's process. Everything it has to know comes by its environment."""

from __future__ import annotations

import asyncio
import logging
import os
import sys

from kubernetes.aio.config import ConfigException

from streams_operator.operator_logging import configure_logging
from streams_operator.operator_process import operate
from streams_operator.operator_settings import SettingError, read_settings

_USAGE = 64


def main() -> int:
    """Exit code: 0 after SIGTERM, 64 for a setting that can't be used, 1 for anything else."""
    try:
        settings = read_settings(os.environ)
    except SettingError as error:
        print(f"streams_operator: {error}", file=sys.stderr)
        return _USAGE
    configure_logging(settings.log_format, settings.log_level)
    try:
        asyncio.run(operate(settings))
    except ConfigException as error:
        logging.getLogger("streams_operator").error(
            "there is no API server to be found: %s. Run in a cluster, or let KUBECONFIG name a file", error
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
