"""Prints the part of .requirements.lock, hashes and all, that the named parts of pyproject.toml need.

Arguments: extras of the project (`operator`, `runtime`), or `build` for what a build without downloads needs;
the project's own dependencies come with every extra. The parents that the lock names under each package are
followed, so nothing is looked up anywhere.
"""

import re
import sys
import tomllib
from pathlib import Path

_ENTRY = re.compile(r"^([A-Za-z0-9._-]+)==.*(?:\n[ #].*)*", re.MULTILINE)
_NAME = re.compile(r"[A-Za-z0-9._-]+")
# pyspark comes as a source package of the older kind; these build it.
_OLDER_BUILD_TOOLS = ("pip", "setuptools", "wheel")


def part_of(lock: str, project: str, parts: list[str]) -> str:
    """The entries of `lock` for `parts` of the pyproject.toml text, in their order.

    Raises KeyError with the name of a part or a package that is not there.
    """
    entries = {_normal(found[1]): found[0] for found in _ENTRY.finditer(lock)}
    children: dict[str, set[str]] = {}
    for name, text in entries.items():
        for parent in _parents(text):
            children.setdefault(parent, set()).add(name)
    wanted: set[str] = set()
    to_do = _roots(tomllib.loads(project), parts)
    while to_do:
        name = to_do.pop()
        if name not in wanted:
            wanted.add(name)
            to_do += children.get(name, ())
    if absent := wanted - entries.keys():
        raise KeyError(f"not in the lock: {', '.join(sorted(absent))}. Run `make lock`")
    return "\n".join(text for name, text in entries.items() if name in wanted) + "\n"


def _roots(project: dict, parts: list[str]) -> list[str]:
    extras = project["project"]["optional-dependencies"]
    named: list[str] = []
    for part in parts:
        if part == "build":
            named += [*_OLDER_BUILD_TOOLS, *project["build-system"]["requires"]]
        elif part in extras:
            named += project["project"]["dependencies"] + extras[part]
        else:
            raise KeyError(f"no extra {part!r} in pyproject.toml, which has {', '.join(extras)}")
    return [_normal(_NAME.match(each)[0]) for each in named]


def _parents(entry: str) -> list[str]:
    comments = [line.strip().removeprefix("#").strip() for line in entry.splitlines() if line.strip().startswith("#")]
    words = [comment.removeprefix("via").strip() for comment in comments]
    return [_normal(word) for word in words if word and " " not in word]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    root = Path(__file__).parent.parent
    texts = ((root / name).read_text() for name in (".requirements.lock", "pyproject.toml"))
    sys.stdout.write(part_of(*texts, sys.argv[1:]))
