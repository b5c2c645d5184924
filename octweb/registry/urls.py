"""Pages of registry."""

app_name = "registry"
urlpatterns: list = []
