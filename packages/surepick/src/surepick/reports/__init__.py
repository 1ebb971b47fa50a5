"""Figures and pages for people. The only importer of plotting packages, and only when something is drawn."""

from surepick.reports.figure_page import forecast_figure

__all__ = ["forecast_figure"]
