"""Pages of runs."""

app_name = "runs"
urlpatterns: list = []
