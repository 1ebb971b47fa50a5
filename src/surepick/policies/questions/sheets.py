"""The evidence of every comparison that a question needs: sheets of e-processes, one process an arm."""

from __future__ import annotations

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, freeze, record

NUMBER = -1  # as the centre of a comparison: a number that is known


@record
class Bet:
    """What a batch bets on, decided from the past: one comparison of many arms with one centre.

        low      evidence against "h_i - h_c > margin":  that arm i is not above the centre by more
        high     evidence against "h_c - h_i > margin":  that arm i is not below it by more

    Args:
        sheet: name of the sheet that it is written on.
        centre: c, an arm, or NUMBER.
        margin: in reward units, of any sign.
        high: the second of the two.
        arms: whose processes bet, shape (K,).
        needs: what the evidence of each arm still lacks, shape (K,); bets need not promise much more.
        start: log of the weight with which a new sheet begins, at most 0.
        bold: where the arms share nothing, bets are as high as promises most: guesses of means that are drawn towards
            their centre are caution enough. Else bets are a share of that.
        quantity: what is compared: 0 the reward, l the quantity of the l-th constraint.
    """

    sheet: str
    centre: int
    margin: float
    high: bool
    arms: BoolArray
    needs: FloatArray
    start: float = 0.0
    bold: bool = False
    quantity: int = 0

    def __post_init__(self) -> None:
        freeze(self, arms=np.bool_, needs=np.float64)


@record
class Sheet:
    """One e-process for each arm, all against nulls of one kind.

    Args:
        name: which kind.
        values: log of each process now, shape (K,).
        peaks: log of the largest that each has been, shape (K,).
    """

    name: str
    values: FloatArray
    peaks: FloatArray

    def __post_init__(self) -> None:
        freeze(self, values=np.float64, peaks=np.float64)

    def after(self, gains: FloatArray) -> Sheet:
        """The sheet after one more batch."""
        values = self.values + gains
        return Sheet(self.name, values, np.maximum(self.peaks, values))


Sheets = tuple[Sheet, ...]


def sheet_of(sheets: Sheets, name: str, num_arms: int, start: float = 0.0) -> Sheet:
    """The sheet of that name; a new one where there is none."""
    found = next((one for one in sheets if one.name == name), None)
    return Sheet(name, np.full(num_arms, start), np.full(num_arms, start)) if found is None else found


def written(sheets: Sheets, sheet: Sheet) -> Sheets:
    """The sheets with that one in the place of its former self, or added."""
    if all(one.name != sheet.name for one in sheets):
        return (*sheets, sheet)
    return tuple(sheet if one.name == sheet.name else one for one in sheets)
