"""What a study will cost before it starts."""

from surepick.forecast.prediction import advice, compare, forecast
from surepick.forecast.result import Forecast, ForecastRound, ForecastRow

__all__ = ["Forecast", "ForecastRound", "ForecastRow", "advice", "compare", "forecast"]
