"""API of serving, below /api/v1/."""

urlpatterns: list = []
