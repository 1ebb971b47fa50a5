"""The notes that reading a table gives."""

import warnings

from surepick.tables import TableWarning


def noted(read, *words: str):
    """What was read, and that exactly these notes were given."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = read()
    assert len(caught) == len(words), [str(one.message) for one in caught]
    for one, part in zip(caught, words, strict=True):
        assert one.category is TableWarning
        assert part in str(one.message)
    return found
