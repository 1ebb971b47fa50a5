"""What tests in a browser share."""

from pathlib import Path

AXE = (Path(__file__).parents[1] / "browser/vendor/axe.min.js").read_text(encoding="utf-8")
IDS = ["light", "medium", "dark roast, with a very long name that has to be broken somewhere on a telephone"]
MEANS = dict(zip(IDS, (0.1, 0.4, 2.0), strict=True))
