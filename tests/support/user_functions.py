"""Functions that tests give to topologies, as a user's module has them."""

from __future__ import annotations

from typing import Any

import pandas as pd


def tier(amount: int | None) -> str | None:
    return None if amount is None else "gold" if amount > 10 else "plain"


def parts(text: str | None) -> list[str]:
    return [] if text is None else text.split("-")


def strict(amount: int) -> int:
    if amount + 1 == 14:
        raise ValueError("13 is not served")
    return amount


def picky(amount: int | None) -> int | None:
    if amount == 13:
        raise ValueError("13 is not served")
    return amount


def odd(amount: int | None) -> Any:
    return "text" if amount == 13 else amount


def half(amount: pd.Series) -> pd.Series:
    return amount / 2


def short(amount: pd.Series) -> pd.Series:
    return amount[:0]


def worded(amount: pd.Series) -> pd.Series:
    return amount.map(lambda each: f"{each} pieces")


def broken(amount: pd.Series) -> pd.Series:
    return amount.no_such_thing


class Shop:
    @staticmethod
    def doubled(amount: int) -> int:
        return amount * 2


constant = 3
