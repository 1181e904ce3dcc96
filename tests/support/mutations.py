"""`make mutations`: does the test that a mutation names fail because of it?

Each file of tests/mutations is a patch with one deliberate defect. Its first lines, which `git apply` passes over, say
what is wrong (`What: …`) and which test catches it (`Test: FILE::FUNCTION`). In a copy of the tracked files each patch
is applied, its test is run, and the patch is taken back. `mutations.py 03-name …` tries some of them only. The exit
code is 1 unless all are caught.
"""

from __future__ import annotations

import argparse
import enum
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests" / "mutations"
_SOURCES = ("operator", "runtime")
_HEADER = re.compile(r"^(What|Test): (\S.*)$", re.MULTILINE)
_TOUCHED = re.compile(r"^\+\+\+ b/(\S+)$", re.MULTILINE)
_LONGEST = 300.0  # seconds of one run of pytest; the mutations' tests take a few
_WHERE = "import streams_operator, streams_runtime as r; print(streams_operator.__file__); print(r.__file__)"
_OUTDATED = (
    "The files that these patches change are other ones by now. Make the same mistake in the present code and write it"
    " down as `git diff` has it; where nobody can make it any more, take another mistake of the same package"
)


@dataclass(frozen=True, slots=True)
class Mutation:
    """A patch by its file's name, and what it says of itself; `what` and `test` are empty where it does not."""

    name: str
    text: str
    what: str
    test: str
    touched: tuple[str, ...]


def mutations(folder: Path = FOLDER) -> list[Mutation]:
    """All mutations, by their names."""
    return [read(patch) for patch in sorted(folder.glob("*.patch"))]


def read(patch: Path) -> Mutation:
    """The mutation of a patch."""
    text = patch.read_text()
    said = dict(_HEADER.findall(text.partition("\ndiff --git ")[0]))
    return Mutation(patch.stem, text, said.get("What", ""), said.get("Test", ""), tuple(_TOUCHED.findall(text)))


def applied(mutation: Mutation, tree: Path, *options: str) -> str | None:
    """`git apply` of the patch in a tree that need not be a repository's; why it can't be, or None."""
    command, env = ["git", "apply", *options], environment(tree)
    done = subprocess.run(command, cwd=tree, env=env, input=mutation.text, capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else done.stderr.strip()


def environment(tree: Path) -> dict[str, str]:
    """Of processes in the tree: they import its modules, write none of their own, and know no repository around it."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return inherited | {
        "CI": "true",  # the same examples each time, and no test that is skipped
        "GIT_CEILING_DIRECTORIES": str(tree.resolve().parent),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join(str(tree / each) for each in (*_SOURCES, "tests/support")),
    }


class Verdict(enum.StrEnum):
    """What becomes of a mutation."""

    CAUGHT = "caught"  # its test fails, as it has to
    SURVIVED = "SURVIVED"
    DOES_NOT_APPLY = "DOES NOT APPLY"
    ERROR = "ERROR"  # its test neither passes nor fails: it is not there, or can't be imported


_VERDICTS: dict[int | None, Verdict] = {0: Verdict.SURVIVED, 1: Verdict.CAUGHT}
"""By pytest's exit code; 1 says that tests were run and some failed."""


@dataclass(frozen=True, slots=True)
class Result:
    """A mutation's verdict after so many seconds. `text`: what processes said, where that explains it."""

    mutation: Mutation
    verdict: Verdict
    seconds: float = 0.0
    text: str = ""

    def __str__(self) -> str:
        lines = [f"{self.verdict:<8}  {self.mutation.name}  {self.seconds:.1f} s", *self.text.splitlines()[-20:]]
        return "\n    ".join(lines)


class Tree:
    """A copy of the tracked files, in which mutations are tried one after the other."""

    def __init__(self, folder: Path) -> None:
        """Makes the copy in the empty folder."""
        self._folder = folder
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
        for name in filter(None, listed.stdout.split("\0")):
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)
        # By the sources' contents, since a patch and its end may have one time and one size.
        options = ("-m", "compileall", "-q", "--invalidation-mode", "checked-hash", *_SOURCES)
        subprocess.run([sys.executable, *options], cwd=folder, check=True)

    def check_imports(self) -> None:
        """Raises RuntimeError if processes in the copy import the modules of another one, such as an installed one."""
        found = subprocess.run(
            [sys.executable, "-c", _WHERE],
            cwd=self._folder,
            env=environment(self._folder),
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        if not all(Path(each).is_relative_to(self._folder) for each in found):
            raise RuntimeError(f"not the copy's modules would be tested, but {', '.join(found)}")

    def run(self, tests: Sequence[str]) -> tuple[int | None, str]:
        """Pytest's exit code for these tests, and what it said; None when it did not end in time."""
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "unshrunk", *tests]
        process = subprocess.Popen(
            command,
            cwd=self._folder,
            env=environment(self._folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            said, _ = process.communicate(timeout=_LONGEST)
        except subprocess.TimeoutExpired:
            return None, f"not over after {_LONGEST:g} s"
        else:
            return process.returncode, said
        finally:
            # It, and what its tests have started: also when this process is told to end.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def judge(self, mutation: Mutation) -> Result:
        """Run the mutation's test with the mutation; the tree is afterwards as it was."""
        began = time.monotonic()
        refusal = applied(mutation, self._folder, "--check") or applied(mutation, self._folder)
        if refusal is not None:
            return Result(mutation, Verdict.DOES_NOT_APPLY, text=refusal)
        code, said = self.run([mutation.test])
        undone = applied(mutation, self._folder, "--reverse")
        if undone is not None:
            raise RuntimeError(f"{mutation.name} can't be taken back: {undone}")
        verdict = _VERDICTS.get(code, Verdict.ERROR)
        return Result(mutation, verdict, time.monotonic() - began, said if verdict is Verdict.ERROR else "")


def chosen(names: Sequence[str], among: Sequence[Mutation]) -> list[Mutation]:
    """Those of these names, by their numbers too; all where no name is given. Raises KeyError for another name."""
    for name in names:
        if not any(name in (each.name, each.name.partition("-")[0]) for each in among):
            raise KeyError(f"no mutation {name!r}; there are: {', '.join(each.name for each in among)}")
    return [each for each in among if not names or {each.name, each.name.partition("-")[0]} & set(names)]


def summary(results: Sequence[Result]) -> list[str]:
    """How many have each verdict, and what to do about those that were not caught."""
    counts = Counter(each.verdict for each in results)
    lines = [", ".join(f"{count} {verdict}" for verdict, count in counts.items())]
    for each in results:
        mutation = each.mutation
        if each.verdict is Verdict.SURVIVED:
            lines.append(f"{mutation.name}: {mutation.test} passes, though {mutation.what} Write a test that does not")
        elif each.verdict is Verdict.ERROR:
            lines.append(f"{mutation.name}: a mutation's test has to run and to fail. Name another test, or mistake")
    outdated = [each.mutation.name for each in results if each.verdict is Verdict.DOES_NOT_APPLY]
    return [*lines, f"{', '.join(outdated)}: {_OUTDATED}"] if outdated else lines


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="mutations by name or number; all without any")
    try:
        wanted = chosen(parser.parse_args().names, mutations())
    except KeyError as unknown:
        parser.error(unknown.args[0])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that copy and processes go too
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="streams-mutations-") as folder:
        tree = Tree(Path(folder).resolve())
        tree.check_imports()
        code, said = tree.run(sorted({each.test for each in wanted}))
        if code != 0:
            print(f"{said}\nwithout any mutation the tests have to pass, and do not: exit code {code}")
            return 1
        print(f"without any mutation all pass  {time.monotonic() - began:.1f} s", flush=True)
        results = []
        for each in wanted:
            results.append(tree.judge(each))
            print(results[-1], flush=True)
    print("\n".join(summary(results)), f"{time.monotonic() - began:.0f} s in all", sep="\n")
    return 0 if all(each.verdict is Verdict.CAUGHT for each in results) else 1


if __name__ == "__main__":
    sys.exit(main())
