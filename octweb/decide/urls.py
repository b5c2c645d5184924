"""URLs of decisions, below those of models."""

from django.urls import path

from octweb.decide import public, views

app_name = "decide"
urlpatterns = [
    path("<uuid:pk>/decision/", views.decision_page, name="decision"),
    path("<uuid:pk>/questionnaire/", views.questionnaire, name="questionnaire"),
    path("<uuid:pk>/public/", public.settings, name="public-settings"),
    path("<uuid:pk>/reasons/", views.reasons, name="reasons"),
    path("<uuid:pk>/decision/marks/", views.keep_marks, name="marks"),
]
