"""How a name becomes a policy: its class, its parts and its options. Other packages give theirs by an entry point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib import import_module
from typing import Any

from surepick.core.arms import Arms
from surepick.errors import InvalidInput
from surepick.policies.parts import OPTIONS_OF, MakeParts, embedding_options
from surepick.questions import (
    BEST,
    NAMES,
    Above,
    AllGood,
    Question,
    TopM,
    constraints_of,
    own_fields,
    question_name,
    taken_question,
)

ANY_OTHER = "*"  # stands for the questions of other packages
EVERY_QUESTION = (BEST, *NAMES, ANY_OTHER)


@dataclass(frozen=True, slots=True)
class PolicySpec:
    """How a name becomes a policy. The entry point of another package in `surepick.policies` gives one.

    Args:
        path: of the class, "module:Class", a record with `problem` and `spec`; it is loaded when a policy is made.
        parts: (arms, options) -> what it is made of beside the problem and its own options: one of the functions of
            `surepick.policies.parts`, of which `nothing` is for policies that look at the number of arms only,
            `features` for those that take vectors, `linear`, `kernel` and `independent` for those with an embedding.
        summary: one line for people who choose.
        paper: the options that give the literal choices of its source.
        rule: how the dimension of a round is chosen, where that is an option.
        defaults: values that differ from those of the records.
        set: fields that the name decides, which are no options.
        hidden_defaults: options with a usual value that says nothing, which a spec does not name.
        evidence: values of the option "evidence" that stand for another class, with its path.
        listed: its own options, as words, where the class cannot be loaded without torch; "": read from the records.
        questions: the names of those that it answers; ANY_OTHER among them: those of other packages, too.
    """

    path: str
    parts: MakeParts
    summary: str
    paper: Mapping[str, Any] = field(default_factory=dict)
    rule: type[Any] | None = None
    defaults: Mapping[str, Any] = field(default_factory=dict)
    set: Mapping[str, Any] = field(default_factory=dict)
    hidden_defaults: Mapping[str, Any] = field(default_factory=dict)
    evidence: Mapping[str, str] = field(default_factory=dict)
    listed: str = ""
    questions: tuple[str, ...] = (BEST,)

    def record(self, kind: str | None = None) -> type[Any]:
        """The class; torch is loaded only for those that need it.

        Args:
            kind: the value of "evidence"; None: the usual one.
        """
        module, _, name = (self.path if kind is None else self.evidence[kind]).partition(":")
        found: type[Any] = getattr(import_module(module), name)
        return found

    def own_options(self) -> tuple[str, ...]:
        """What a user may set of the policy and its rule."""
        return (*(["evidence"] if self.evidence else []), *(tuple(self.listed.split()) or self.record_fields()))

    def record_fields(self) -> tuple[str, ...]:
        """The fields of the policy and its rule, but for what they are made of."""
        ours = {"problem", "embedding", "features", "network", "rule", "spec", *self.set}
        records = [self.record(), *map(self.record, self.evidence), *([self.rule] if self.rule else [])]
        names = [each.name for one in records for each in fields(one) if each.init and each.name not in ours]
        return tuple(dict.fromkeys(names))

    def options(self, given: Mapping[str, Any]) -> tuple[str, ...]:
        """All options, those of the problem and of the parts included, and of what `given` names of other packages."""
        asked = [each.name for name in self.questions if name in NAMES for each in fields(NAMES[name])]
        question = ("question", *asked, *own_fields(given.get("question"))) if asked else ()
        parts = (*OPTIONS_OF.get(self.parts, ()), *embedding_options(self.parts, given))
        return tuple(dict.fromkeys(("gap_bound", *self.own_options(), *parts, *question)))


def asked_question(name: str, spec: PolicySpec, given: dict[str, Any]) -> Question | None:
    """The question that the options ask of a policy; its options are taken out of them.

    Raises:
        InvalidInput: there is no such question, or the policy does not answer it.
    """
    question = None if spec.questions == (BEST,) else taken_question(given)
    check_answered(name, spec, question_name(question))
    return question


def for_each_segment(name: str, spec: PolicySpec, arms: Arms, question: Question | None) -> Question | None:
    """The question, where arms have segments: the best of each segment is one of its 1 best.

    Raises:
        InvalidInput: the policy or the question has no segments.
    """
    if arms.segments is None:
        return question
    if "lists" not in spec.evidence:
        raise InvalidInput(
            f"{name} answers for the whole list and not for each segment: leave segments out, or take "
            "certified-independent, certified-linear or certified-kernel."
        )
    if question is None:
        return TopM(1)
    if isinstance(question, Above) and question.errors == "discovery":
        raise InvalidInput(
            "errors='discovery' promises a share of the whole list, not of each segment's: leave segments out, or take "
            "errors='family'."
        )
    if constraints_of(question):
        raise InvalidInput(
            "constraints are not asked of segments, so far: leave segments out, or make a study of each."
        )
    if not isinstance(question, (Above, TopM, AllGood)):
        raise InvalidInput(
            f"question {question_name(question)!r} is not asked of segments, so far: leave segments out, or make a "
            "study of each."
        )
    return question


def check_answered(name: str, spec: PolicySpec, asked: str) -> None:
    """Refuse a question that a policy does not answer.

    Raises:
        InvalidInput: it is none of its own.
    """
    if asked not in spec.questions and (asked in EVERY_QUESTION or ANY_OTHER not in spec.questions):
        known = " or ".join(map(repr, spec.questions))
        raise InvalidInput(
            f"{name} answers question {known}, not {asked!r}; certified-independent answers every question."
        )


def refuse_beside_lists(
    name: str, hidden_defaults: Mapping[str, Any], given: Mapping[str, Any], *, allowed: tuple[str, ...] = ()
) -> None:
    """Refuse options of the best arm's evidence where the question is another one, but for those allowed.

    Raises:
        InvalidInput: one of them says something.
    """
    said = [
        option
        for option, usual in hidden_defaults.items()
        if option not in allowed and given.get(option, usual) not in (usual, None)
    ]
    if said:
        raise InvalidInput(f"{name} takes {said[0]} for question 'best' only, so far; leave {said[0]} out.")
