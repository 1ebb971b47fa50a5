"""What a study will cost before it starts."""

from surepick.forecasts.forecast import advice, compare, forecast, noise_to_draw
from surepick.forecasts.result import Forecast, ForecastRound, ForecastRow

__all__ = ["Forecast", "ForecastRound", "ForecastRow", "advice", "compare", "forecast", "noise_to_draw"]
