"""URLs of the pages of recorded decisions, below those of models."""

from django.urls import path

from octweb.decisions import pages

app_name = "records"
urlpatterns = [
    path("<uuid:pk>/decisions/", pages.decision_list, name="list"),
    path("<uuid:pk>/decisions/<uuid:decision>/", pages.recorded_decision, name="decision"),
    path("<uuid:pk>/decisions/keep/", pages.keep, name="keep"),
    path("<uuid:pk>/decisions/erase/", pages.erase_person, name="erase-person"),
    path("<uuid:pk>/decisions/<uuid:decision>/erase/", pages.erase, name="erase"),
    path("<uuid:pk>/decisions/<uuid:decision>/letter/", pages.letter, name="letter"),
    path("<uuid:pk>/decisions/<uuid:decision>/letter.pdf", pages.letter_pdf, name="letter-pdf"),
]
