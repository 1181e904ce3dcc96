"""What a page tells its reader to do, as steps; and whether a command printed what the page says."""

from __future__ import annotations

import pytest
from document_steps import TypeCommand, WriteFile, fits, replaced, steps_of

PAGE = """\
Make a folder.

```console
$ mkdir shop && cd shop
```

Orders are in `orders.csv`:

```csv
customer,amount
ada,1
```

A block that is no file, though `orders.csv` is in the text before it.

```yaml
a: 1
```

```console
$ wc -l orders.csv
2 orders.csv
$ ls
orders.csv
```
"""


def test_a_page_is_read_as_files_and_commands_in_order_with_their_places():
    assert list(steps_of(PAGE, "page.md")) == [
        TypeCommand("page.md:4", "mkdir shop && cd shop"),
        WriteFile("page.md:9", "orders.csv", "customer,amount\nada,1\n"),
        TypeCommand("page.md:21", "wc -l orders.csv", "2 orders.csv"),
        TypeCommand("page.md:23", "ls", "orders.csv"),
    ]


@pytest.mark.parametrize(
    ("expected", "printed", "fit"),
    [
        ("", "", True),
        ("", "something\n", False),
        ("one\ntwo", "one  \ntwo\n", True),
        ("one", "one\ntwo\n", False),
        ("3 records in … s", "3 records in 0.2 s\n", True),
        ("3 records in … s", "4 records in 0.2 s\n", False),
        ("…\ntwo\n…", "one\ntwo\n", True),
        ("…\ntwo\n…", "one\n", False),
        ("a.b", "axb\n", False),
    ],
)
def test_dots_stand_for_what_varies_and_nothing_else_does(expected, printed, fit):
    assert fits(expected, printed) is fit


def test_only_commands_that_read_are_typed_again():
    assert TypeCommand("", "streamsapp query totals all").only_reads
    assert not TypeCommand("", "streamsapp produce orders orders.csv").only_reads


def test_other_words_are_put_into_commands_and_outputs():
    step = TypeCommand("", "curl localhost:8080", "at 8080")
    assert replaced(step, {"8080": "1234"}) == TypeCommand("", "curl localhost:1234", "at 1234")
