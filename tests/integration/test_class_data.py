"""Archives of classes that set-up has made: JVMs take their classes from them. (In pods: e2e/test_node.py.)"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

SCRIPT = Path(__file__).parents[1] / "support" / "archived_classes.py"


def test_spark_and_the_broker_start_with_archived_classes():
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, timeout=200, check=True)
    found = json.loads(done.stdout)
    assert min(found["spark"], found["broker"]) > 1000, found
