"""All pages, in one list."""

from __future__ import annotations

from fastapi import APIRouter

from surepick_server.pages import login, new_study, study
from surepick_server.pages import study as documents
from surepick_server.pages import study as measuring
from surepick_server.pages import study as overview
from surepick_server.pages import study as owning

PAGES: tuple[APIRouter, ...] = tuple(
    part.router for part in (login, login, overview, new_study, study, measuring, owning, documents, login)
)
