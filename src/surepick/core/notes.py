"""What a user should know while a computation goes on: records of the logger "surepick", silent unless listened to.

The command line prints them on standard error (`cli/output.py`); a program attaches a handler of its own.
"""

from __future__ import annotations

import logging

LOG = logging.getLogger("surepick")
LOG.addHandler(logging.NullHandler())
LONG = 20.0  # seconds; what takes longer is announced


def announce(seconds: float, sentence: str) -> None:
    """Say that a computation will take long, if it will.

    Args:
        seconds: an estimate of what is still to come; also an attribute of the record.
        sentence: why; how long is added.
    """
    if seconds >= LONG:
        LOG.info("%s About %s to go.", sentence, spoken(seconds), extra={"seconds": seconds})


def spoken(seconds: float) -> str:
    """A duration in words, as exact as an estimate is: "40 s", "5 min", "2 h"."""
    if seconds < 100.0:
        return f"{10 * round(seconds / 10)} s"
    return f"{round(seconds / 60)} min" if seconds < 5400.0 else f"{round(seconds / 3600)} h"
