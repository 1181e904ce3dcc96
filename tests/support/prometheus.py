"""A real Prometheus over the operator and instances, with the chart's rules; the queries of its dashboards."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import yaml
from helm import CHART, helm
from kube_binaries import program
from kube_cluster import Cluster
from kube_process import LOOPBACK, free_port, running

_SECONDS = 10.0
_VARIABLES = {
    "$namespace": ".*",
    "$application_id": ".*",
    "$client_id": ".*",
    "$__rate_interval": "1m",
}


@dataclass(frozen=True)
class Target:
    """A pod whose port 8080 has metrics, and the labels that a ServiceMonitor or PodMonitor gives its series."""

    namespace: str
    pod: str
    labels: Mapping[str, str]


class Prometheus:
    """One that runs."""

    def __init__(self, url: str) -> None:
        self._http = httpx.Client(base_url=f"{url}/api/v1", timeout=_SECONDS, trust_env=False)

    def query(self, expression: str) -> list[Any]:
        """The series that it gives at this moment. Raises AssertionError when Prometheus refuses the expression."""
        answer = self._http.get("/query", params={"query": expression})
        assert answer.status_code == httpx.codes.OK, (expression, answer.text)
        found: list[Any] = answer.json()["data"]["result"]
        return found

    def firing(self) -> set[str]:
        """The names of the alerts that fire."""
        return {row["metric"]["alertname"] for row in self.query('ALERTS{alertstate="firing"}')}

    def ever_fired(self, seconds: int) -> set[str]:
        """The names of the alerts that have fired within that time."""
        found = self.query(f'max_over_time(ALERTS{{alertstate="firing"}}[{seconds}s])')
        return {row["metric"]["alertname"] for row in found}

    def close(self) -> None:
        """Free its connections."""
        self._http.close()


@contextmanager
def prometheus(cluster: Cluster, targets: Sequence[Target], folder: Path) -> Iterator[Prometheus]:
    """Prometheus while the block runs. It reaches pods through the API server, every five seconds."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "alerts.yml").write_text(yaml.safe_dump({"groups": chart_rules()}))
    (folder / "token").write_text(cluster.token)
    (folder / "prometheus.yml").write_text(yaml.safe_dump(_configuration(cluster, targets, folder)))
    port = free_port()
    command = (
        program("prometheus"),
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={LOOPBACK}:{port}",
    )
    url = f"http://{LOOPBACK}:{port}"
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


def _configuration(cluster: Cluster, targets: Sequence[Target], folder: Path) -> dict[str, Any]:
    address = urlsplit(cluster.url)
    return {
        "global": {"scrape_interval": "5s", "evaluation_interval": "5s"},
        "rule_files": [str(folder / "alerts.yml")],
        "scrape_configs": [
            {
                "job_name": f"{target.namespace}/{target.pod}",
                "scheme": address.scheme,
                "metrics_path": f"/api/v1/namespaces/{target.namespace}/pods/{target.pod}:8080/proxy/metrics",
                "honor_labels": True,
                "authorization": {"credentials_file": str(folder / "token")},
                "tls_config": {"insecure_skip_verify": True},
                "static_configs": [
                    {"targets": [address.netloc], "labels": {"pod": target.pod, **target.labels}},
                ],
            }
            for target in targets
        ],
    }


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/-/ready", trust_env=False).status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False
