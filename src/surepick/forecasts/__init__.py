"""What a study will cost before it starts."""

from surepick.forecasts.forecast import advice, check_scale_known, compare, forecast
from surepick.forecasts.result import Forecast, ForecastRound, ForecastRow

__all__ = ["Forecast", "ForecastRound", "ForecastRow", "advice", "check_scale_known", "compare", "forecast"]
