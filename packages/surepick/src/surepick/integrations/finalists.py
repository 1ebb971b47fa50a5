"""What the adapters of searches have in common: how often each finalist was measured, and with which mean."""

import secrets
from typing import Any

from surepick.core.records import record
from surepick.studies.closed_loop import Result
from surepick.studies.study import Study

MOST_SEED = 2**31  # every random generator takes a seed below


def fresh_seed() -> int:
    """A number that no other measurement has: it is drawn by the operating system."""
    return secrets.randbelow(MOST_SEED)


@record
class Measured:
    """What was measured of each finalist, by its id as it was given; those without a result are left out."""

    pulls: dict[Any, int]
    means: dict[Any, float]

    @staticmethod
    def of(found: Result) -> "Measured":
        """From the closed rounds of a study; of one on a server nothing."""
        study = found.study
        if not isinstance(study, Study) or study.elsewhere is not None:
            return Measured({}, {})
        seen, sign = study.replay.seen_up_to(study.progress().judged), -1.0 if study.minimize else 1.0
        if seen is None:
            return Measured({}, {})
        ids = study.originals.all_of(study.ids)
        there = [place for place, count in enumerate(seen.counts.tolist()) if count]
        counts, sums = seen.counts.tolist(), seen.sums.tolist()
        return Measured(
            {ids[place]: counts[place] for place in there},
            {ids[place]: sign * sums[place] / counts[place] for place in there},
        )
