"""Warnings about a policy, before anything is measured."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from surepick.core.records import FloatArray
from surepick.embeddings import ArmEmbedding, NeuralTangentKernel, unit_rows_with_norm
from surepick.embeddings.base import tail_sums
from surepick.forecasts.result import ForecastRound
from surepick.forecasts.simulated_studies import EQUAL_STUDIES, SimulatedStudy
from surepick.linalg.factorisations import symmetric_spectrum, thin_svd
from surepick.policies.base import Policy, caveats_of
from surepick.policies.model_checks import largest_gap_under_norm, norm_bound_uninformative

EPS = float(np.finfo(np.float64).eps)
KERNEL_SHARE = 1e-3  # of the neural tangent kernel's trace: what may be left out
MOST_IN_KERNEL = 3000  # arms; the kernel's spectrum takes K^3
BATCHES_OVER = "budget-exhausted"  # the verdict where they do not suffice
BIAS_SHARE = 0.3  # of a round's accuracy; beyond, the round takes more than twice the pulls


def forecast_price_of_blocks(name: str, total: int, without: int, *, guess: bool) -> str:
    """What blocks cost where they have no effects, as a sentence."""
    case = "Under the guess" if guess else "In the worst case"
    more = 100.0 * (total / max(without, 1) - 1.0)
    share = "as many" if abs(more) < 0.5 else f"{abs(more):.0f} % {'more' if more > 0.0 else 'fewer'}"
    return (
        f"{case} blocks take {total:,} measurements where no {name} has an effect of its own, and {without:,} without "
        f"blocks in simulated studies with the same seeds: {share}."
    )


def guess_in_embedding(policy: Policy[Any], means: FloatArray) -> tuple[float | None, float]:
    """(least norm whose reward is nearest to the means, root mean square of the residual, the least error of any)."""
    embedding = policy.traits.embedding
    if embedding is None:
        return None, 0.0
    whole = embedding.at(embedding.max_dim)
    if not whole.structured:
        return None, 0.0
    left, singular, _ = thin_svd(whole.features)
    kept = singular > max(whole.features.shape) * np.finfo(np.float64).eps * singular[0]
    coordinates = left[:, kept].T @ means
    misfit = means - left[:, kept] @ coordinates
    return float(np.sqrt(np.sum((coordinates / singular[kept]) ** 2))), float(np.sqrt(np.mean(misfit**2)))


@dataclass(frozen=True, slots=True)
class Doubts:
    """What a forecast finds against a policy."""

    policy: Policy[Any]
    runs: tuple[SimulatedStudy, ...]
    rounds: tuple[ForecastRound, ...]
    guess: FloatArray | None
    guess_norm: float | None
    misfit: float

    @property
    def embedding(self) -> ArmEmbedding | None:
        traits = self.policy.traits
        return traits.embedding if traits.stops != "never" and traits.uses_features else None

    @property
    def norm_matters(self) -> bool:
        """Some round leaves directions out, so that its widths rest on the norm bound."""
        return any(row.misspecification > 0.0 for row in self.rounds)

    def fatal(self) -> list[str]:
        """Why the certificate would be worthless, or would not come."""
        found = [*self._endless(), *self._batches_over(often=True), *self._not_certified()]
        if self.embedding is None:
            return [*found, *self._wrong()]
        plain = [*self._collapsed(self.embedding), *(self._no_gap(self.embedding) if self.norm_matters else [])]
        found = [*self._endless(), *plain] if plain and self.guess is None else [*found, *plain]
        return [*found, *self._guess_contradicts(self.embedding), *self._wrong()]

    def mild(self, total: int, uniform: int) -> list[str]:
        """What makes it expensive, or rests on more than the table."""
        found = [*caveats_of(self.policy), *self._network_dimension(), *self._batches_over(often=False)]
        if self.embedding is not None:
            found += [*self._no_compression(self.embedding), *self._bias_eats()]
            found += [] if self.norm_matters else [*self._no_gap(self.embedding)]
        if not self.policy.traits.narrows and self.guess is None:
            found.append(
                "This policy adapts to the data, so no worst case is proved. 'At worst' is the most expensive of "
                f"{EQUAL_STUDIES} simulated studies in which all candidates are equal."
            )
        if total > uniform > 0:
            case = "In the worst case" if self.guess is None else "Under the guess"
            fewer = "" if self.guess is not None else " Where some are worse than others it usually takes fewer."
            found.append(f"{case} it takes more measurements than uniform sampling.{fewer}")
        return found

    def _network_dimension(self) -> Iterator[str]:
        """How much a wide network could compress these arms, for policies that use one."""
        features, depth = self.policy.traits.features, self.policy.traits.network_depth
        if features is None or depth == 0 or len(features) > MOST_IN_KERNEL or not features.any(axis=1).all():
            return
        rows = unit_rows_with_norm(features)
        gram = NeuralTangentKernel(depth, "H").gram(rows, rows)
        share, values = KERNEL_SHARE * float(np.trace(gram)), symmetric_spectrum(gram).values
        rounding = EPS * (len(values) * float(values[0]) + 16.0 * float(np.abs(values).sum()))
        dim = 1 + int(np.argmax(tail_sums(np.maximum(values, 0.0) + rounding)[1:] <= share))
        yield (
            f"Neural effective dimension: {dim} of {len(features)}. So many directions hold all but a thousandth of "
            "the arms' tangent kernel (a very wide network, inputs normalised); the fewer, the more a network can save."
        )

    def _endless(self) -> Iterator[str]:
        if self.policy.traits.stops == "never":
            yield "It never stops by itself and never certifies: the forecast only shows what its first rounds take."
            return
        hopeless = [run.hopeless for run in self.runs if run.hopeless]
        if hopeless:
            yield f"It may never stop, and was ended{self._times(hopeless)}: {hopeless[0]}"
        cut = [run.cut for run in self.runs if run.cut]
        if cut:
            yield f"The forecast was cut short {cut[0]} ({len(cut)} of {len(self.runs)} runs): it will cost more."

    def _times(self, found: Sequence[object]) -> str:
        """In how many studies, "" in the only one."""
        return "" if len(self.runs) == 1 else f" in {len(found)} of {len(self.runs)} simulated studies"

    def _batches_over(self, *, often: bool) -> Iterator[str]:
        """How often the batches that are allowed do not suffice: more than half of the time under a guess, or not."""
        over = sum(run.verdict == BATCHES_OVER for run in self.runs)
        if over and often == (self.guess is not None and 2 * over > len(self.runs)):
            where = f"In {over} of {len(self.runs)} simulated studies"
            where = "If all candidates are equal" if self.guess is None else where
            yield f"{where}, the batches that are allowed end before anything is certified; more batches would help."

    def _not_certified(self) -> Iterator[str]:
        ended = [run for run in self.runs if not run.cut and not run.hopeless and run.verdict != BATCHES_OVER]
        doubtful = [run for run in ended if run.verdict != "certified"]
        if self.policy.traits.stops != "never" and doubtful:
            alarms = [alarm for _, row in doubtful[0].rounds for alarm in row.alarms]
            reason = f"{alarms[-1]}." if alarms else doubtful[0].reason
            yield f"The verdict would be '{doubtful[0].verdict}'{self._times(doubtful)}: {reason}"

    def _collapsed(self, embedding: ArmEmbedding) -> Iterator[str]:
        first = self.rounds[0] if self.rounds and embedding.num_distinct > 2 else None
        if first is None or first.dim >= embedding.max_dim:
            return
        if first.dim <= 1 or (first.value is not None and first.value < 1.0):
            yield (
                f"Round 1 would tell {embedding.num_distinct} different candidates apart in {first.dim} of "
                f"{embedding.max_dim} directions (design value {first.value:.3g}). That is suspiciously little: if "
                "the norm bound is too small, the answer is worthless."
            )

    def _no_gap(self, embedding: ArmEmbedding) -> Iterator[str]:
        """The norm bound alone says that nearly any arm will do."""
        if embedding.num_distinct >= 2 and norm_bound_uninformative(embedding, self.policy.problem.epsilon):
            largest = f"no two candidates differ by more than {largest_gap_under_norm(embedding):.3g}"
            yield (
                f"Norm bound {embedding.norm_bound:g} means that {largest}: too little to rest an answer on, so as "
                "little as possible is left out. If you expect larger differences, it is too small."
            )

    def _guess_contradicts(self, embedding: ArmEmbedding) -> Iterator[str]:
        if self.guess is None or self.guess_norm is None:
            return
        bound = embedding.norm_bound
        if self.misfit > embedding.misspecification(embedding.max_dim) + 0.1 * self.policy.problem.epsilon:
            yield (
                f"No reward of the declared kind comes closer to the guessed means than {self.misfit:.3g} (root mean "
                "square): if the guess is right, the embedding is not."
            )
        elif self.norm_matters and bound is not None and self.guess_norm > bound * (1.0 + 1e-6):
            yield (
                f"The guessed means need norm {self.guess_norm:.3g}, more than the norm bound {bound:g}: one of the "
                "two is wrong (noise in a guess adds to its norm)."
            )

    def _wrong(self) -> Iterator[str]:
        if self.guess is None or self.policy.traits.stops == "never" or self.policy.problem.question is not None:
            return
        best, epsilon = self.guess.max(), self.policy.problem.epsilon + 1e-9 * np.max(np.abs(self.guess))
        wrong = sum(bool(best - self.guess[run.recommended] > epsilon) for run in self.runs)
        if wrong > max(0.25, 3.0 * self.policy.problem.delta) * len(self.runs):
            yield f"The answer was wrong in {wrong} of {len(self.runs)} simulated studies under the guess."

    def _no_compression(self, embedding: ArmEmbedding) -> Iterator[str]:
        least = min((row.dim for row in self.rounds), default=0)
        if least >= embedding.num_distinct > 2:
            yield (
                f"The embedding compresses nothing: it needs {self.rounds[0].dim} dimensions for "
                f"{embedding.num_distinct} different candidates, so the features save nothing beyond ruling out the "
                "bad ones early."
            )

    def _bias_eats(self) -> Iterator[str]:
        if not self.rounds:
            return
        last = self.rounds[-1]
        share = last.bias / (self.policy.problem.epsilon if last.accuracy is None else last.accuracy)
        if share <= BIAS_SHARE or any(run.hopeless for run in self.runs):
            return
        factor = 1.0 / (1.0 - min(share, 0.999)) ** 2
        if last.accuracy is not None:
            what = f"In the last round misspecification uses {share:.0%} of the accuracy, so that round costs "
            what += f"{factor:.1f} times as much"
        elif share < 1.0:
            what = f"Misspecification uses {share:.0%} of epsilon, so it costs {factor:.1f} times as much to decide "
            what += "candidates that are as good as the best"
        else:
            what = f"Misspecification is {share:.1f} times epsilon, so candidates that are as good as the best cannot "
            what += "be decided"
        yield f"{what}; a larger dimension or a smaller valid norm bound would help."
