"""Which one is the best? In this question's place problems have None."""

from surepick.questions.protocol import FormChoice

BEST = "best"
FORM = FormChoice(BEST, "Which one is the best?")
WANTED = "single out a candidate that is good enough"  # what measurements are to do
