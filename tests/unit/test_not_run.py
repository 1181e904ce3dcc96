"""A test that did not run is named with its reason, and with CI=true it fails the run."""

from __future__ import annotations

import pytest

REASON = "no kite on this machine"
HEADING = "*not run on this machine, and why*"


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    def run_it(source: str, *, ci: str | None) -> pytest.RunResult:
        monkeypatch.delenv("CI", raising=False)
        if ci is not None:
            monkeypatch.setenv("CI", ci)
        pytester.makeini("[pytest]\nmarkers =\n  integration: x\n  cluster: x\n")
        pytester.makepyfile(test_inner=source)
        return pytester.runpytest_inprocess("-p", "not_run")

    return run_it


SKIPS_ONE = f"""
import pytest

def test_that_passes(): pass

@pytest.mark.skipif(True, reason="{REASON}")
def test_that_can_not_run(): pass
"""


def test_a_skipped_test_is_named_with_its_reason_at_the_end(run):
    result = run(SKIPS_ONE, ci=None)
    result.stdout.fnmatch_lines([HEADING, REASON, "  test_inner.py::test_that_can_not_run"])
    assert result.ret == pytest.ExitCode.OK


def test_with_ci_a_skipped_test_fails_the_run(run):
    result = run(SKIPS_ONE, ci="true")
    result.stdout.fnmatch_lines([HEADING, REASON, "*CI=true: 1 not run*", "*1 passed, 1 skipped*"])
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_with_ci_a_skip_from_inside_a_test_fails_the_run(run):
    result = run(f"import pytest\ndef test_it(): pytest.skip('{REASON}')", ci="true")
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_with_ci_a_file_that_is_skipped_as_a_whole_fails_the_run(run):
    source = f"import pytest\npytest.skip('{REASON}', allow_module_level=True)\ndef test_it(): pass"
    result = run(source, ci="true")
    result.stdout.fnmatch_lines([HEADING, REASON, "  test_inner.py"])
    assert result.ret != pytest.ExitCode.OK


def test_with_ci_a_run_without_skips_is_good(run):
    result = run("def test_it(): pass", ci="true")
    result.stdout.no_fnmatch_line(HEADING)
    assert result.ret == pytest.ExitCode.OK


def test_an_expected_failure_is_no_skip(run):
    result = run("import pytest\n@pytest.mark.xfail\ndef test_it(): assert False", ci="true")
    assert result.ret == pytest.ExitCode.OK


def test_what_a_marker_needs_is_looked_for_before_the_test_starts(run, monkeypatch: pytest.MonkeyPatch):
    import not_run

    monkeypatch.setattr(not_run, "NEEDS", {"cluster": (lambda: None, lambda: REASON)})
    not_run.lack.cache_clear()
    source = """
import pytest

@pytest.fixture
def costly(): raise AssertionError("was started")

@pytest.mark.cluster
def test_that_can_not_run(costly): pass

@pytest.mark.integration
def test_that_can(): pass
"""
    result = run(source, ci=None)
    not_run.lack.cache_clear()
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines([HEADING, REASON, "  test_inner.py::test_that_can_not_run"])


@pytest.mark.parametrize("marker", ["cluster", "e2e"])
def test_a_cluster_that_can_not_be_had_is_named_by_the_program_that_is_missing(
    monkeypatch: pytest.MonkeyPatch, marker: str
):
    import kube_binaries
    import kube_sources
    import not_run

    for variable in (kube_sources.KUBECONFIG_VARIABLE, kube_binaries.ASSETS_VARIABLE):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(kube_sources, "docker_and_kind", lambda: False)
    monkeypatch.setattr(kube_binaries, "find", lambda name: None)
    monkeypatch.setattr(kube_binaries, "_no_apt", lambda: "apt-get needs root")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    reasons = [reason for check in not_run.NEEDS[marker] if (reason := check())]
    assert reasons == ["no etcd: Debian's package etcd-server is not installed, and apt-get needs root"]


@pytest.mark.parametrize("marker", ["cluster", "e2e"])
def test_a_cluster_that_is_given_is_enough(monkeypatch: pytest.MonkeyPatch, marker: str):
    import kube_binaries
    import kube_sources
    import not_run

    monkeypatch.setenv(kube_sources.KUBECONFIG_VARIABLE, "/some/kubeconfig")
    monkeypatch.setattr(kube_binaries, "find", lambda name: None)
    assert [check() for check in not_run.NEEDS[marker]] == [None]


def test_a_node_of_ones_own_needs_root(monkeypatch: pytest.MonkeyPatch):
    import kube_sources
    import not_run

    monkeypatch.delenv(kube_sources.KUBECONFIG_VARIABLE, raising=False)
    monkeypatch.setattr(kube_sources, "docker_and_kind", lambda: False)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    (reason,) = (check() for check in not_run.NEEDS["e2e"])
    assert "needs root on Linux" in (reason or "")
