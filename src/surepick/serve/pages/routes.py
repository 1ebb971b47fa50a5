"""All pages, in one list."""

from __future__ import annotations

from fastapi import APIRouter

from surepick.serve.pages import documents, login, measuring, new_study, openid, overview, owning, study, tokens

PAGES: tuple[APIRouter, ...] = tuple(
    part.router for part in (login, openid, overview, new_study, study, measuring, owning, documents, tokens)
)
