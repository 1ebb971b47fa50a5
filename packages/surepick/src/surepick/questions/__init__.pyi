from .above import Above
from .all_good import AllGood
from .best import BEST
from .by_segment import inquiry_of, lists_of, wrongly_listed
from .feasible import BestFeasible, Constraint, parse_constraint
from .one_of_share import OneOf
from .protocol import Question
from .registry import (
    NAMES,
    QUESTION_OPTIONS,
    asked_of,
    constraints_in,
    constraints_of,
    number_of,
    of_question,
    own_fields,
    own_question,
    parse_question,
    question_class,
    question_name,
    question_names,
    question_spec,
    taken_question,
)
from .top_m import TopM

__all__ = [
    "BEST",
    "NAMES",
    "QUESTION_OPTIONS",
    "Above",
    "AllGood",
    "BestFeasible",
    "Constraint",
    "OneOf",
    "Question",
    "TopM",
    "asked_of",
    "constraints_in",
    "constraints_of",
    "inquiry_of",
    "lists_of",
    "number_of",
    "of_question",
    "own_fields",
    "own_question",
    "parse_constraint",
    "parse_question",
    "question_class",
    "question_name",
    "question_names",
    "question_spec",
    "taken_question",
    "wrongly_listed",
]
