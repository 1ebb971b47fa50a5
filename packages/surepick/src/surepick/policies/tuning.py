"""What steers in several wings: each number once. None of it can make an answer wrong, only dear.

Source: ours, unless a line says otherwise; chosen on instances other than those of benchmarks/ (docs/decisions/0008).
"""

from surepick.estimators import e_values, posterior

# Bets: docs/certified-elimination.md, lines 4 and 12.
HEURISTIC_KAPPA = e_values.HEURISTIC_KAPPA  # of the bet that promises most
LEAST_SLACK = e_values.LEAST_SLACK  # of a margin; where bias leaves less, the rival is bias-limited
HEURISTIC_CLOSING = 0.15  # units of evidence that matching a flow may cost
MOST_STARTS = 40  # of a process: their weights halve (line 13), until a new one is worth nothing

# Leads as guesses have them, lowered or raised by part of their standard errors.
HEURISTIC_CAUTION = posterior.HEURISTIC_CAUTION  # by which leads are lowered where pulls are planned
HEURISTIC_OPENING_CAUTION = 1.0  # ... and where the end of the opening is decided
HEURISTIC_LEAST_MARGIN = posterior.HEURISTIC_LEAST_MARGIN  # of a comparison's margin: what it is at least

# Batches.
HEURISTIC_BATCH = 0.2  # of the pulls still to come ...
HEURISTIC_LEAST_BATCH = 0.02  # ... but at least this share of the pulls so far, and at most all of them again
HEURISTIC_REPEATS = 5  # of each arm where scales are unknown: the least that give a useful bound
MOST_CHECK_PULLS = 64  # that show a lack of fit

# Candidates and dimensions.
HEURISTIC_SWITCH = 0.8  # another candidate must be predicted to cost less than this share
HEURISTIC_DIMENSION = 0.8  # a dimension in which a design takes long must be predicted to cost less than this share
NEGLIGIBLE_BIAS = 0.1  # of epsilon

# Work.
MANY_DIRECTIONS = 48  # from which a design ...
HEURISTIC_MANY = 3000  # ... of more arms takes seconds: then the first one compares all with a central arm
HEURISTIC_GRID = 40  # shares of the candidate that are tried
MOST_AT_ONCE = posterior.MOST_AT_ONCE  # entries that are formed of a grid
