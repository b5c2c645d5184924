"""API of registry, below /api/v1/."""

urlpatterns: list = []
