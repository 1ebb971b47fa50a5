"""The routes under /api/v1. Each says who may call it and what of a study its answer rests on (`routing.py`)."""
