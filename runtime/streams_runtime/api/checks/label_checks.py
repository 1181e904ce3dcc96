"""Keys of labels and annotations, which Kubernetes calls qualified names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from streams_runtime.api.reading.field_paths import under
from streams_runtime.api.spec.selectors_spec import LabelSelectorSpec
from streams_runtime.errors import Mistake

OURS = "streamsoperator.io"
"""The prefix of labels and annotations by which operator and pods know each other."""
OUR_LABELS = ("app.kubernetes.io/managed-by", "app.kubernetes.io/name")
"""Labels that the operator sets, beside those with the prefix OURS."""
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_PREFIX = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_REMEDY = "use at most 63 letters, digits, and - _ or . between them; a prefix before / is a domain's name"


def key_mistakes(at: str, keys: Iterable[str]) -> Iterator[Mistake]:
    """Keys that no label and no annotation can have."""
    for key in keys:
        if not is_key(key):
            yield Mistake(under(at, key), f"found the key {key!r}, which is no qualified name", _REMEDY)


def is_key(key: str) -> bool:
    """Whether a label can have this key."""
    prefix, slash, name = key.rpartition("/")
    return _NAME.fullmatch(name) is not None and (not slash or _PREFIX.fullmatch(prefix) is not None)


def ours_mistakes(at: str, keys: Iterable[str], more: Iterable[str] = ()) -> Iterator[Mistake]:
    """Keys that are the operator's, and `more` of them."""
    for key in keys:
        prefix = key.rpartition("/")[0]
        if prefix == OURS or prefix.endswith(f".{OURS}") or key in more:
            yield Mistake(under(at, key), f"{key} is set by the operator", "leave it out, or take another key")


def selector_mistakes(at: str, selector: LabelSelectorSpec) -> Iterator[Mistake]:
    """What no selector can ask for."""
    yield from key_mistakes(f"{at}.matchLabels", selector.match_labels)
    for index, each in enumerate(selector.match_expressions):
        field = f"{at}.matchExpressions[{index}]"
        if not is_key(each.key):
            yield Mistake(f"{field}.key", f"found {each.key!r}, which is no qualified name", _REMEDY)
        lists = each.operator in ("In", "NotIn")
        if lists and not each.values:
            yield Mistake(f"{field}.values", f"is missing beside {each.operator}", "list the values")
        if not lists and each.values:
            yield Mistake(f"{field}.values", f"is given beside {each.operator}", "leave it out")
