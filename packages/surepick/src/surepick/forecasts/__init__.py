"""What a study will cost before it starts."""

from surepick.forecasts.forecast import advice, compare_settings, forecast, noise_to_draw
from surepick.forecasts.gap import GapForecast, GapRow, forecast_gap
from surepick.forecasts.result import Forecast, ForecastOfRows, ForecastRound, ForecastRow
from surepick.forecasts.scenarios import forecast_ranges
from surepick.forecasts.simulated_studies import forecast_of_rows

__all__ = [
    "Forecast",
    "ForecastOfRows",
    "ForecastRound",
    "ForecastRow",
    "GapForecast",
    "GapRow",
    "advice",
    "compare_settings",
    "forecast",
    "forecast_gap",
    "forecast_of_rows",
    "forecast_ranges",
    "noise_to_draw",
]
