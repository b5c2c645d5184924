"""API of runs, below /api/v1/."""

urlpatterns: list = []
