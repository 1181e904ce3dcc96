"""A real Prometheus over the operator and instances, with the chart's rules; the queries of its dashboards."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import yaml
from helm import CHART, helm
from kube_binaries import program
from kube_cluster import Cluster
from kube_process import LOOPBACK, free_port, running
from prometheus_targets import followed

INTERVAL = 5
"""Seconds between two scrapes, and between two looks at the rules."""
_SECONDS = 10.0
_VARIABLES = {
    "$namespace": ".*",
    "$application_id": ".*",
    "$client_id": ".*",
    "$__rate_interval": "1m",
}


class Prometheus:
    """One that runs."""

    def __init__(self, url: str) -> None:
        self._http = httpx.Client(base_url=f"{url}/api/v1", timeout=_SECONDS, trust_env=False)

    def query(self, expression: str) -> list[Any]:
        """The series that it gives at this moment. Raises AssertionError when Prometheus refuses the expression."""
        found: list[Any] = self._get("/query", query=expression)["result"]
        return found

    def firing(self) -> set[str]:
        """The names of the alerts that fire."""
        return {row["metric"]["alertname"] for row in self.query('ALERTS{alertstate="firing"}')}

    def ever_fired(self, seconds: int) -> set[str]:
        """The names of the alerts that have fired within that time."""
        return set(self.longest("firing", seconds))

    def longest(self, state: str, seconds: int) -> dict[str, float]:
        """Alerts that were `pending` or `firing` within that time, and for how many seconds in all the longest was."""
        found: dict[str, float] = {}
        for row in self.query(f'count_over_time(ALERTS{{alertstate="{state}"}}[{seconds}s])'):
            name = row["metric"]["alertname"]
            found[name] = max(found.get(name, 0.0), float(row["value"][1]) * INTERVAL)
        return found

    def unhealthy_rules(self) -> dict[str, str]:
        """The rules that could not be evaluated, with the error; a rule that was not evaluated yet is one of them."""
        groups = self._get("/rules")["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        assert rules
        return {rule["name"]: rule.get("lastError", "") for rule in rules if rule["health"] != "ok"}

    def close(self) -> None:
        """Free its connections."""
        self._http.close()

    def _get(self, path: str, **parameters: str) -> Any:
        answer = self._http.get(path, params=parameters)
        assert answer.status_code == httpx.codes.OK, (path, parameters, answer.text)
        return answer.json()["data"]


@contextmanager
def prometheus(cluster: Cluster, namespace: str, folder: Path) -> Iterator[Prometheus]:
    """Prometheus with the chart's rules while the block runs, over the operator and the applications of a namespace.

    It reaches pods through the API server.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "alerts.yml").write_text(yaml.safe_dump({"groups": chart_rules()}))
    port = free_port()
    command = (
        program("prometheus"),
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={LOOPBACK}:{port}",
    )
    url = f"http://{LOOPBACK}:{port}"
    with followed(cluster, namespace, folder) as jobs:
        (folder / "prometheus.yml").write_text(yaml.safe_dump(_configuration(jobs, folder)))
        with running(command, folder, lambda: _is_ready(url), "prometheus"):
            made = Prometheus(url)
            try:
                yield made
            finally:
                made.close()


def chart_rules() -> list[Any]:
    """The groups of rules that the chart's PrometheusRule has."""
    return [group for made in _rendered() if made["kind"] == "PrometheusRule" for group in made["spec"]["groups"]]


def dashboards() -> dict[str, Any]:
    """The chart's dashboards as Grafana reads them, by the name of their file."""
    return {
        name: json.loads(text)
        for made in _rendered()
        if made["kind"] == "ConfigMap" and "grafana_dashboard" in made["metadata"].get("labels", {})
        for name, text in made["data"].items()
    }


def dashboard_queries() -> dict[str, str]:
    """The queries of all panels, by dashboard, panel and legend; variables have the values of `All`."""
    return {
        f"{dashboard['title']} / {panel['title']} / {target['legendFormat']}": _filled(target["expr"])
        for dashboard in dashboards().values()
        for panel in dashboard["panels"]
        for target in panel["targets"]
    }


def _filled(expression: str) -> str:
    for name, value in _VARIABLES.items():
        expression = expression.replace(name, value)
    assert "$" not in expression, expression
    return expression


def _rendered() -> list[Any]:
    sets = [f"--set=monitoring.{part}.enabled=true" for part in ("alerts", "dashboards")]
    text = helm("template", "streams", str(CHART), "--kube-version=1.34.4", *sets).stdout
    return [made for made in yaml.safe_load_all(text) if made]


def _configuration(jobs: Sequence[Mapping[str, Any]], folder: Path) -> dict[str, Any]:
    return {
        "global": {"scrape_interval": f"{INTERVAL}s", "evaluation_interval": f"{INTERVAL}s"},
        "rule_files": [str(folder / "alerts.yml")],
        "scrape_configs": list(jobs),
    }


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/-/ready", trust_env=False, verify=False).status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False
