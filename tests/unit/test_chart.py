"""The chart agrees with the code it brings to a cluster, as far as that shows without Helm."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from chart_values import PAGE, page, values

from streams_operator.names import FINALIZER, GROUP, PLURAL
from streams_operator.operator_settings import PREFIX, read_settings
from streams_runtime.api import VERSION

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "streams-operator"


def test_the_chart_has_the_definition_that_the_models_give():
    remedy = "copy crds/streamsapplications.yaml to charts/streams-operator/files/"
    definition = (ROOT / "crds" / "streamsapplications.yaml").read_text(encoding="utf-8")
    assert (CHART / "files" / "streamsapplications.yaml").read_text(encoding="utf-8") == definition, remedy


def test_the_chart_and_the_project_have_one_version():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    project = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert project is not None
    assert chart["version"] == chart["appVersion"] == project[1]


def test_every_value_is_in_the_schema_and_the_other_way_round():
    def names(values: object, schema: dict[str, object], path: str = "") -> list[str]:
        if "$ref" in schema:
            schema = definitions[str(schema["$ref"]).rsplit("/", 1)[-1]]
        properties = schema.get("properties")
        if not isinstance(properties, dict) or not isinstance(values, dict):
            return []
        odd = [f"{path}.{name}" for name in set(values) ^ set(properties)]
        both = set(values) & set(properties)
        return odd + [each for name in both for each in names(values[name], properties[name], f"{path}.{name}")]

    schema = json.loads((CHART / "values.schema.json").read_text())
    definitions = schema["definitions"]
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    # Optional parts: `global` is Helm's own, claims are rare, limits of pods and an issuer are the user's.
    issuer = {f".webhook.certificate.issuerRef.{name}" for name in ("name", "kind", "group")}
    left_out = {".global", ".resources.claims", ".runtime.resources.limits", *issuer}
    assert set(names(values, schema)) == left_out


def test_the_operator_reads_every_variable_that_the_chart_sets():
    """A variable with a wrong name would be without effect, and nobody would hear of it."""
    given = set(re.findall(rf"name: {PREFIX}(\w+)", (CHART / "templates" / "deployment.yaml").read_text()))
    asked: set[str] = set()

    class Environment(dict[str, str]):
        def get(self, key: str, default: str = "") -> str:  # type: ignore[override]
            asked.add(key.removeprefix(PREFIX))
            return {f"{PREFIX}RUNTIME_IMAGE": "image"}.get(key, default)

    read_settings(Environment())
    assert given == asked


def test_the_uninstall_job_knows_the_resource_and_its_finalizer():
    script = (CHART / "files" / "release_finalizers.py").read_text()
    assert f'GROUP, VERSION, PLURAL = "{GROUP}", "{VERSION}", "{PLURAL}"' in script
    assert f'FINALIZER = "{FINALIZER}"' in script


def test_the_script_of_helm_test_knows_the_resource():
    script = (CHART / "files" / "check_release.py").read_text()
    assert f'GROUP, VERSION, PLURAL = "{GROUP}", "{VERSION}", "{PLURAL}"' in script


def test_the_page_of_values_is_what_values_and_schema_say():
    remedy = "python tests/support/chart_values.py > charts/streams-operator/VALUES.md"
    assert PAGE.read_text(encoding="utf-8") == page(), remedy


def test_every_value_is_on_the_page_of_values_with_its_default():
    def check(found: dict[str, object], path: str) -> None:
        for name, value in found.items():
            here = f"{path}{name}"
            if here in shown:
                assert yaml.safe_load(shown[here]) == value, here
            else:
                assert isinstance(value, dict), f"{here} is not on the page"
                check(value, f"{here}.")

    rows = re.findall(r"^\| `(\S+)` \| .*? \| (?:`(.*?)`)? \| \S", PAGE.read_text(), re.MULTILINE)
    shown = {name: default for name, default in rows if default}
    check(yaml.safe_load((CHART / "values.yaml").read_text()), "")


def test_a_value_without_a_description_is_refused_by_its_name():
    schema = {"properties": {"log": {"type": "object", "properties": {"level": {"enum": ["INFO", "DEBUG"]}}}}}
    with pytest.raises(ValueError, match=r"without a comment .* log\.level"):
        values("# What it writes.\nlog:\n  level: INFO\n", schema)
    (_, level) = values("log:\n  # Of what | is written.\n  # Two lines.\n  level: INFO\n", schema)
    assert level.row == "| `log.level` | `INFO`, `DEBUG` | `INFO` | Of what \\| is written. Two lines. |"
