"""What is asked of the candidates, beside "which one is the best": one record a question.

Each question is answered by lists, and says in `problem` units what its answer promises. docs/questions.md has the
proofs. A policy's problem holds the question; None there asks for one epsilon-best arm.
"""

from surepick.questions.constraints import Constraint, parse_constraint
from surepick.questions.list_names import ListNames, list_names
from surepick.questions.own import OwnQuestion
from surepick.questions.parsing import (
    QUESTION_OPTIONS,
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
from surepick.questions.records import (
    BEST,
    LISTED,
    NAMES,
    OF_MANY,
    Above,
    AllGood,
    BestFeasible,
    OneOf,
    Question,
    TopM,
)

__all__ = [
    "BEST",
    "LISTED",
    "NAMES",
    "OF_MANY",
    "QUESTION_OPTIONS",
    "Above",
    "AllGood",
    "BestFeasible",
    "Constraint",
    "ListNames",
    "OneOf",
    "OwnQuestion",
    "Question",
    "TopM",
    "constraints_in",
    "constraints_of",
    "list_names",
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
]
