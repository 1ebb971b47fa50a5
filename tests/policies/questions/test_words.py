"""What lists say, in words."""

from together import of_each

from surepick.questions import Above


@of_each(
    ("by", "first", "second"),
    [
        (0.0, "better than the control C, or worse than it by less than 0.1",
         "worse than the control C, or better than it by less than 0.1"),
        (0.1, "better than the control C", "worse than the control C, or better than it by less than 0.2"),
        (0.3, "better than the control C by more than 0.2",
         "worse than the control C, or better than it by less than 0.4"),
        (-0.1, "better than the control C, or worse than it by less than 0.2", "worse than the control C"),
    ],
)  # fmt: skip
def test_what_is_wanted_beside_the_control_is_said_for_large_and_for_small_rewards(by, first, second):
    _, *lists = Above(control="C", by=by).said(0.1)
    assert lists == [f"Each one on the first list is {first}.", f"Each one on the second list is {second}."]
