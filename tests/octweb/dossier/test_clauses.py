"""Tables by clause: each point names evidence that the document has, or says that a person must write it."""

from __future__ import annotations

import pytest
from django.core.checks import run_checks
from rest_framework.exceptions import ValidationError

from octweb.dossier.clauses import KEYS, SECTIONS, TABLES, clause_tables, open_clauses
from octweb.dossier.models import ModelDossier
from octweb.dossier.texts import TEXTS
from octweb.jobs.models import RunStatus
from octweb.oversight.actions import state_oversight
from octweb.registry.lifecycle import actions as registry
from octweb.registry.models import State
from tests.conftest import ROOT


def record(texts=(), *, measured=True, **about):
    """Return the members of a dossier's record that decide on the points."""
    return {
        "about": {"purpose": {TEXTS[name]: "Written." for name in texts}} | about,
        "performance": {"unseen": {"rows": 9} if measured else None, "cross_validation": None},
        "calibration": [{}] if measured else [],
        "stability": None,
    }


def points(found, key="ai-act"):
    return {
        point["clause"]: point for table in clause_tables(found) if table["key"] == key for point in table["clauses"]
    }


def test_points_name_known_texts_and_sections_of_the_document():
    templates = {path.stem[1:]: path.read_text() for path in (ROOT / "templates/dossier/document").glob("_*.html")}
    for name, (title, _) in SECTIONS.items():
        assert f'id="{name}"' in templates[name]
        assert f"<h2>{title}" in templates[name]
    for table in TABLES:
        assert table.source
        for clause in table.clauses:
            assert clause.sections or clause.texts, clause
            assert {*clause.sections} <= {*SECTIONS}
            assert {*clause.texts} <= {*TEXTS}


def test_clause_table_lists_missing_texts_until_all_are_written():
    missing = open_clauses(clause_tables(record()))
    assert "Annex IV 5" in missing["ai-act"]
    assert "Annex IV 1(c)" not in missing["ai-act"]
    assert open_clauses(clause_tables(record(TEXTS))) == {key: [] for key in KEYS}


def test_one_text_closes_exactly_the_points_that_need_it():
    before = {*open_clauses(clause_tables(record()))["ai-act"]}
    after = {*open_clauses(clause_tables(record(["risks"])))["ai-act"]}
    assert before - after == {"Annex IV 5"}
    assert points(record(["risks"]))["Annex IV 3"]["unwritten"] == ["Known weakness"]


def test_figures_that_were_not_evaluated_are_no_evidence():
    point = points(record(TEXTS, measured=False))["Annex IV 2(g)"]
    assert point["missing"] == ["5 Performance", "6 Calibration by leaf", "8 Review"]
    assert point["sections"] == []
    assert points(record(TEXTS))["Annex IV 2(g)"]["missing"] == ["8 Review"]


@pytest.mark.parametrize(
    ("about", "state"), [({}, "records"), ({"recording": "counts"}, "records"), ({"recording": "full"}, "evidence")]
)
def test_logs_are_evidence_only_if_each_answer_is_recorded(about, state):
    assert points(record(**about))["Article 12"]["state"] == state


@pytest.mark.parametrize(("days", "state"), [(30, "records"), (183, "evidence")])
def test_logs_of_less_than_six_months_are_no_evidence(days, state):
    found = points(record(recording="full", record_keep_days=days))
    assert (found["Article 19"]["state"], found["Article 12"]["state"]) == (state, "evidence")


@pytest.mark.django_db
def test_policy_prevents_approval_until_the_texts_are_written(model, staff, settings):
    settings.REQUIRED_CLAUSES = ("ai-act",)
    registry.ask_for_approval(model, by=model.owner)
    with pytest.raises(ValidationError, match="only with a dossier by ai-act"):
        registry.approve(model, by=staff, reason="All the same.")
    job = ModelDossier.objects.create(
        owner=model.owner, model=model, status=RunStatus.SUCCEEDED, file="dossiers/a.zip",
        summary={"open_clauses": {"ai-act": ["Annex IV 5"], "sr-26-2": ["Governance, inventory"]}},
    )  # fmt: skip
    with pytest.raises(ValidationError, match="Annex IV 5") as refused:
        registry.approve(model, by=staff, reason="All the same.")
    assert "Governance" not in str(refused.value)
    ModelDossier.objects.filter(pk=job.pk).update(summary={"open_clauses": {"ai-act": []}})
    assert registry.approve(model, by=staff, reason="All the same.").state == State.APPROVED


def test_unknown_table_in_the_policy_is_a_configuration_error(settings):
    assert "octweb.E301" not in [error.id for error in run_checks()]
    settings.REQUIRED_CLAUSES = ("gdpr",)
    assert "octweb.E301" in [error.id for error in run_checks()]


@pytest.mark.django_db
def test_texts_are_drafted_until_a_person_wrote_some(model, client, owner):
    state_oversight(model, by=owner, values={"purpose": "Sort flowers.", "outcome_days": 30})
    client.force_login(owner)
    page = client.get(f"/models/{model.pk}/dossier/panel/").content.decode()
    assert ">Sort flowers.</textarea>" in page
    assert "Outcomes are watched 30 days after the answer." in page
    assert "drafted from what is known" in page
    ModelDossier.objects.create(owner=owner, model=model, said={"plan": "Mine."}, status=RunStatus.SUCCEEDED)
    page = client.get(f"/models/{model.pk}/dossier/panel/").content.decode()
    assert "Sort flowers." not in page
    assert ">Mine.</textarea>" in page
