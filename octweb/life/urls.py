"""URLs of the forms on a model's Life page."""

from django.urls import path

from octweb.life import page

app_name = "life"
urlpatterns = [
    path("<uuid:pk>/life/alarms/<int:alarm>/close/", page.close_alarm, name="close"),
    path("<uuid:pk>/life/limits/", page.set_limit, name="limits"),
    path("<uuid:pk>/life/look/", page.look_now, name="look"),
]
