"""`streamsapp topology` as a user calls it, as far as it needs nothing but files."""

from __future__ import annotations

import builtins
import json
from pathlib import Path

import pytest
import typer
from click.testing import Result
from typer.testing import CliRunner

from streams_runtime.cli.topology.topology_command import topology

EXAMPLES = Path(__file__).parents[2] / "examples"
FIRST = (EXAMPLES / "first.yaml").read_text()

app = typer.Typer()
app.command()(topology)
runner = CliRunner()


def file(folder: Path, name: str, *changed: tuple[str, str]) -> str:
    """The first application, with texts replaced."""
    text = FIRST
    for old, new in changed:
        assert old in text
        text = text.replace(old, new)
    (folder / name).write_text(text)
    return str(folder / name)


def show(*arguments: str) -> Result:
    return runner.invoke(app, [str(EXAMPLES / "flights.yaml"), *arguments])


def diff(old: str, new: str, *more: str) -> Result:
    return runner.invoke(app, ["--diff", old, new, *more])


@pytest.fixture
def old(tmp_path: Path) -> str:
    return file(tmp_path, "old.yaml")


@pytest.fixture
def renamed(tmp_path: Path) -> str:
    return file(tmp_path, "renamed.yaml", ("store: totals", "store: sums"))


def test_a_compatible_upgrade_ends_with_0(old: str, tmp_path: Path) -> None:
    new = file(tmp_path, "new.yaml", ("topic: totals", "topic: elsewhere"))
    result = diff(old, new)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("compatible: ")


def test_an_incompatible_upgrade_ends_with_3_and_says_what_is_left_behind_and_what_to_do(
    old: str, renamed: str
) -> None:
    result = diff(old, renamed)
    assert result.exit_code == 3
    lines = result.stdout.splitlines()
    assert lines[0].startswith("not compatible: 1 change loses or misreads what is there")
    assert "  store totals: only the old topology has it" in lines
    assert "first-totals-changelog stays on the brokers" in result.stdout
    assert "    do: keep the store's name" in result.stdout
    assert lines.index("Left behind:") < lines.index("New:")
    assert "  store sums: only the new topology has it" in lines


def test_another_application_id_is_refused_whatever_is_allowed(old: str, tmp_path: Path) -> None:
    result = diff(old, file(tmp_path, "other.yaml", ("name: first", "name: second")))
    assert result.exit_code == 3
    assert result.stdout.splitlines()[0].endswith("A cluster refuses it")
    assert "spec.applicationId: was first and is second" in result.stdout


def test_programs_get_the_verdict_the_names_and_each_change(old: str, renamed: str) -> None:
    result = diff(old, renamed, "--output", "json")
    assert result.exit_code == 3
    found = json.loads(result.stdout)
    assert found["compatible"] is False
    assert found["orphaned"] == {"stores": ["totals"], "topics": ["first-totals-changelog"]}
    assert found["new"] == {"stores": ["sums"], "topics": ["first-sums-changelog"]}
    assert [(each["kind"], each["where"]) for each in found["changes"]] == [
        ("orphaned", "store totals"),
        ("new", "store sums"),
    ]
    assert all(set(each) == {"kind", "where", "what", "consequence", "remedy"} for each in found["changes"])


def test_the_mistakes_of_both_files_are_listed_each_with_its_file(tmp_path: Path) -> None:
    one = file(tmp_path, "one.yaml", ("sum(amount)", "sum(amuont)"))
    other = file(tmp_path, "other.yaml", ("format: string", "format: strnig"))
    result = diff(one, other)
    assert result.exit_code == 1
    assert f"{one}: spec.topology.steps[0].aggregate.total: " in result.stdout
    assert f"{other}: spec.topology.sources[0].key.format: " in result.stdout
    said = [json.loads(line) for line in diff(one, other, "--output", "json").stdout.splitlines()]
    assert [each["file"] for each in said] == [one, other]


def test_a_file_that_is_not_there_ends_with_2(old: str, tmp_path: Path) -> None:
    result = diff(old, str(tmp_path / "nowhere.yaml"))
    assert result.exit_code == 2
    assert "there is no file" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--diff", "old"],
        ["file", "--diff", "old", "new"],
        ["--diff", "old", "new", "--output", "mermaid"],
        ["--diff", "old", "new", "--to", "x"],
    ],
)
def test_wrong_usage_ends_with_2(arguments: list[str]) -> None:
    assert runner.invoke(app, arguments).exit_code == 2


def test_a_topology_is_shown_in_every_form() -> None:
    assert "Sub-topology: 1" in show().stdout
    assert show("--output", "mermaid").stdout.startswith("flowchart LR")
    assert json.loads(show("--output", "json").stdout)["applicationId"] == "flights"
    assert "</svg>" in show("--output", "svg").stdout
    assert show("--output", "png").stdout_bytes.startswith(b"\x89PNG\r\n\x1a\n")


@pytest.mark.parametrize("form", ["text", "json", "mermaid", "svg", "png"])
def test_a_file_gets_what_standard_output_would(form: str, tmp_path: Path) -> None:
    result = show("--output", form, "--to", str(tmp_path / "shown"))
    assert (result.exit_code, result.output) == (0, "")
    assert (tmp_path / "shown").read_bytes() == show("--output", form).stdout_bytes


def test_a_file_that_can_t_be_written_ends_with_2_and_its_name(tmp_path: Path) -> None:
    result = show("--to", str(tmp_path / "nowhere" / "shown"))
    assert result.exit_code == 2
    assert "nowhere/shown can't be written: No such file or directory; give another file" in result.stderr


def test_without_the_library_the_picture_is_refused_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *more: object) -> object:
        if name == "pygraphviz":
            raise ModuleNotFoundError(f"No module named {name!r}")
        return real(name, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without)
    result = show("--output", "svg")
    assert result.exit_code == 2
    assert "install streams-operator[drawings], or take --output mermaid" in result.stderr
    assert show("--output", "mermaid").exit_code == 0
