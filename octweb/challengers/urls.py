"""URLs of the challenger forms on a model's Life page."""

from django.urls import path

from octweb.challengers import page

app_name = "challengers"
urlpatterns = [
    path("<uuid:pk>/challenger/", page.name_challenger, name="name"),
    path("<uuid:pk>/challenger/end/", page.end_challenge, name="end"),
    path("<uuid:pk>/challenger/promote/", page.promote, name="promote"),
    path("<uuid:pk>/life/price/", page.find_price, name="price"),
    path("<uuid:pk>/life/price/stop/", page.stop_price, name="stop-price"),
]
