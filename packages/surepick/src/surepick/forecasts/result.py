"""What a forecast says."""

from surepick.core.records import record
from surepick.text import about, html_table


@record
class ForecastRound:
    """What one round is expected to take; of several simulated studies the mean, but the median for `dim`."""

    round: int  # 1, 2, ...
    dim: int  # d, of the embedding; 0 for policies that use no features
    value: float | None  # tau; None without a design, or with a prediction in its place
    misspecification: float  # gamma-tilde(d), in reward units
    bias: float  # of a difference of two arms by misspecification, in reward units; without tau the least
    accuracy: float | None  # t_k, the half-width that it must reach, bias included; None: it has none
    pulls: int  # measurements of this round; 0 of a study that ended before
    total: int  # measurements up to its end
    active: float  # arms left after it: not ruled out, or the candidate and its unsettled rivals
    reached: float  # share of the simulated studies that got so far


@record
class Forecast:
    """What a study is expected to cost, and what to know before paying for it.

    Args:
        rounds: one record a round.
        total: measurements until the policy stops by itself; under a guess the mean of the simulated studies.
        lowest, highest: the cheapest and the most expensive simulated study; equal to `total` in the worst case.
        batches: how often somebody must measure and report before the next batch is known; under a guess the median.
        fewest_batches, most_batches: of the simulated studies.
        rehearsals: how many runs were simulated; 1 for the worst case.
        guess: the forecast is under a guess of the means, not for the worst case.
        epsilon, delta: as in the policy.
        uniform: measurements that sampling all arms equally often would need for the same promise.
        guess_norm: least norm of a reward in the embedding with the means that were guessed (in the least-squares
            sense); None without an embedding or a guess.
        warnings: reasons against this policy here, in plain words.
        believable: no warning says that the certificate would be worthless, or would not come.
        cost: money for all of it, batches included, in the currency of the costs; under a guess the mean of the
            simulated studies. None, as the next three, where nothing has a cost.
        lowest_cost, highest_cost: of the simulated studies.
        uniform_cost: money for sampling all arms equally often, in one batch.
        without_blocks: measurements in studies with the same seeds, if no blocks were declared; None without blocks.
        at_least: simulating ended before a study did: the numbers are less than it takes. None: it did not.
    """

    rounds: tuple[ForecastRound, ...]
    total: int
    lowest: int
    highest: int
    batches: int
    fewest_batches: int
    most_batches: int
    rehearsals: int
    guess: bool
    epsilon: float
    delta: float
    uniform: int
    guess_norm: float | None
    warnings: tuple[str, ...]
    believable: bool
    cost: float | None = None
    lowest_cost: float | None = None
    highest_cost: float | None = None
    uniform_cost: float | None = None
    without_blocks: int | None = None
    at_least: bool | None = None

    @property
    def total_said(self) -> str:
        """The measurements in words: "1,204", "more than 1,204" where simulating ended before."""
        return f"more than {self.total:,}" if self.at_least else f"{self.total:,}"

    @property
    def cost_said(self) -> str:
        """The mean and the range of the money, to four digits: "412.50", "410 (280 to 614)"; "" without costs."""
        if self.cost is None or self.lowest_cost is None or self.highest_cost is None:
            return ""
        if self.lowest_cost == self.highest_cost:
            return about(self.cost)
        return f"{about(self.cost)} ({about(self.lowest_cost)} to {about(self.highest_cost)})"

    @property
    def batches_said(self) -> str:
        """The median and the range in words: "1 batch", "9 (6 to 13) batches"."""
        fewest, most = self.fewest_batches, self.most_batches
        if fewest == most:
            return f"{most:,} batch" + "es" * (most != 1)
        return f"{self.batches:,} ({fewest:,} to {most:,}) batches"

    def __repr__(self) -> str:
        case = "under the guess" if self.guess else "in the worst case"
        spread = "" if self.lowest == self.highest else f" ({self.lowest:,} to {self.highest:,})"
        taken = f"{self.total_said}{spread} measurements in {self.batches_said}"
        return f"<Forecast: {taken} {case}, epsilon {self.epsilon:g}; uniform sampling {self.uniform:,}>"

    def _repr_html_(self) -> str:
        """The cost, the warnings and the rounds, for notebooks."""
        case = "under the guess" if self.guess else "in the worst case"
        paid = f" for {self.cost_said}" if self.cost_said else ""
        caption = f"{self.total_said} measurements in {self.batches_said}{paid} {case}"
        caption += f"; uniform sampling takes {self.uniform:,}"
        warned = html_table((), [("warning", sentence) for sentence in self.warnings]) if self.warnings else ""
        rows = [(row.round, row.dim, row.pulls, row.total, row.active) for row in self.rounds]
        return html_table(("round", "dimension", "measurements", "in all", "arms left"), rows, caption) + warned


@record
class ForecastRow:
    """One line of a comparison."""

    name: str  # of the policy, as given to `compare`
    worst: Forecast | None  # the worst case; None where the policy refuses to run
    guess: Forecast | None  # under the guess of the means; None without one
    refusal: str = ""  # why the policy refuses, "" if it does not

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings of both forecasts, each once."""
        found = [sentence for part in (self.worst, self.guess) if part is not None for sentence in part.warnings]
        return tuple(dict.fromkeys(found))

    @property
    def believable(self) -> bool:
        """It runs, and no warning says that its certificate would be worthless, or would not come."""
        parts = [part for part in (self.worst, self.guess) if part is not None]
        return self.worst is not None and all(part.believable for part in parts)


@record
class ForecastOfRows:
    """What the best of rows in blocks is expected to cost: a short list, then the best of it.

    Args:
        num_rows: K.
        total: measurements in all; the mean of the simulated studies.
        lowest, highest: of the simulated studies.
        selection: measurements for the short list, the mean.
        listed: candidates that the second step compares, the median.
        shortest_list, longest_list: of the simulated studies.
        batches: how often somebody must measure and report, in both steps; the median.
        rehearsals: how many studies were simulated.
        guess: the coefficients were guessed; else they were drawn.
        epsilon, delta: as asked.
        warnings: what the numbers rest on, in plain words.
    """

    num_rows: int
    total: int
    lowest: int
    highest: int
    selection: int
    listed: int
    shortest_list: int
    longest_list: int
    batches: int
    rehearsals: int
    guess: bool
    epsilon: float
    delta: float
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        """The forecast in words."""
        case = "under the guess" if self.guess else "for rewards that were drawn"
        return (
            f"Expect {self.total:,} measurements in {self.batches} batches {case} ({self.lowest:,} to "
            f"{self.highest:,} in {self.rehearsals} simulated studies). {self.selection:,} of them leave some "
            f"{self.listed:,} of {self.num_rows:,} candidates ({self.shortest_list:,} to {self.longest_list:,}); the "
            f"others find one of these within {self.epsilon:g} of the best, with probability {1.0 - self.delta:g}."
        )
