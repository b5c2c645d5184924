"""API of datasets, below /api/v1/."""

urlpatterns: list = []
