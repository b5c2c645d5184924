"""Pages of serving."""

app_name = "serving"
urlpatterns: list = []
