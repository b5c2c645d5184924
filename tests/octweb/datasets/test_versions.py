"""New versions of a data set: the same columns, the differences, and repeated training."""

from __future__ import annotations

import io

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from octweb.datasets import actions, versions
from octweb.datasets.models import Dataset
from octweb.jobs.models import RunStatus
from octweb.runs import actions as runs
from octweb.runs.models import TrainingRun
from tests.octweb.datasets.files import stored_files
from trainer.errors import DataError

pytestmark = pytest.mark.django_db
FIRST = "size,colour,class\n" + "".join(f"{i % 10},{'rg'[i % 2]},{'pq'[i % 3 == 0]}\n" for i in range(60))


@pytest.fixture
def first(owner, media):
    file = io.BytesIO(FIRST.encode())
    return actions.create(owner=owner, file=file, source_name="a.csv", name="Boxes", target="class")


def version(first, text):
    return versions.new_version(first, owner=first.owner, file=io.BytesIO(text.encode()), source_name="b.csv")


def test_the_same_file_has_no_differences(first):
    made = version(first, FIRST)
    assert (made.version, made.previous, made.name) == (2, first, "Boxes, version 2")
    assert versions.changes(made) == []
    assert version(made, FIRST).name == "Boxes, version 3"
    assert version(first, FIRST).name == "Boxes, version 4"


def test_differences_are_reported(first):
    rows = FIRST.replace("9,", "90,").replace(",r,", ",x,", 4).splitlines()
    made = version(first, "\n".join(rows[:41]) + "\n")
    found = {c.where: (c.before, c.now) for c in versions.changes(made)}
    assert found["rows"] == ("60", "40")
    assert found["size"][1].startswith("0 to 90")
    assert found["colour"] == ("–", "x (4 rows)")


def test_preview_shows_differences_and_stores_nothing(first, media, client, client_of, owner):
    before = stored_files(media)
    changed = FIRST.replace("9,", "90,").replace(",r,", ",x,", 4)
    address = f"/api/v1/datasets/{first.pk}/versions/"
    body = {"file": SimpleUploadedFile("b.csv", changed.encode()), "dry_run": "true"}
    found = client_of(owner).post(address, body, format="multipart")
    assert found.status_code == 200
    made = {d["where"]: (d["before"], d["now"]) for d in found.json()["differences"]}
    assert made["colour"] == ("–", "x (4 rows)")
    assert (found.json()["rows"], found.json()["problems"]) == (60, [])
    client.force_login(owner)
    page = reverse("datasets:version", args=[first.pk])
    for headers, has_form in (({}, True), ({"HX-Request": "true"}, False)):
        body = {"file": SimpleUploadedFile("b.csv", changed.encode()), "compare": "1"}
        text = client.post(page, body, headers=headers).content.decode()
        assert "x (4 rows)" in text
        assert ('type="file"' in text) == has_form
    grams = "\n".join(
        ",".join([f"{int(a) * 1000}" if a.isdigit() else a, *rest])
        for a, *rest in (line.split(",") for line in FIRST.splitlines())
    )
    body = {"file": SimpleUploadedFile("b.csv", grams.encode()), "compare": "1"}
    assert "divided by 1000" in client.post(page, body).content.decode()
    assert Dataset.objects.count() == 1
    assert stored_files(media) == before


def test_renamed_category_of_equal_count_is_a_difference(owner, media):
    text = "size,colour,class\n" + "".join(f"{i % 10},{'rgbw'[i % 4]},{'pq'[i % 3 == 0]}\n" for i in range(80))
    first = actions.create(owner=owner, file=io.BytesIO(text.encode()), source_name="a.csv", name="B", target="class")
    made = version(first, text.replace(",w,", ",white,"))
    assert {c.where: (c.before, c.now) for c in versions.changes(made)} == {
        "colour": ("w (20 rows)", "white (20 rows)")
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda i, size, colour, label: f"{size * 1000},{colour},{label}",
            "Column 'size' had 0 to 9 and has 0 to 9,000: divided by 1000",
        ),
        (lambda i, size, colour, label: f"{size},{'red' if colour == 'r' else 'green'},{label}", "'green' for 'g'"),
        (
            lambda i, size, colour, label: f"{size},{colour},{label}ass",
            "'pass' for 'p'",
        ),
    ],
    ids=["unit", "categories", "classes"],
)
def test_changed_form_is_reported_before_storing(first, client, media, change, words):
    lines = [change(i, i % 10, "rg"[i % 2], "pq"[i % 3 == 0]) for i in range(60)]
    text = "\n".join(["size,colour,class", *lines])
    before = stored_files(media)
    with pytest.raises(versions.ChangedForms) as refused:
        version(first, text)
    assert any(words in problem for problem in refused.value.problems), refused.value.problems
    assert (Dataset.objects.count(), stored_files(media)) == (1, before)
    client.force_login(first.owner)
    address = reverse("datasets:version", args=[first.pk])
    page = client.post(address, {"file": SimpleUploadedFile("b.csv", text.encode())}).content.decode()
    assert "in another form" in page
    assert 'name="as_it_is"' in page
    response = client.post(address, {"file": SimpleUploadedFile("b.csv", text.encode()), "as_it_is": "on"})
    assert response.status_code == 302
    assert Dataset.objects.count() == 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("red", "green", ""), "'red' for 'r'"),
        (("1", "2"), "has none of the words that it had before; it has"),
    ],
    ids=["with empty cells", "with codes"],
)
def test_recoded_categories_are_reported(first, words, sentence):
    lines = [f"{i % 10},{words[i % len(words)]},{'pq'[i % 3 == 0]}" for i in range(60)]
    with pytest.raises(versions.ChangedForms) as refused:
        version(first, "\n".join(["size,colour,class", *lines]))
    assert any(sentence in problem for problem in refused.value.problems), refused.value.problems


def codes(count, form):
    """Return a table with `count` categories, and its rows under other codes."""
    return "code,size,class\n" + "".join(
        f"{form(i % count)},{i * i % 17},{'pq'[i % 3 == 0]}\n" for i in range(3 * count)
    )


@pytest.mark.parametrize(
    ("count", "sentence"),
    [(40, "has none of the words that it had before; it has"), (300, "has hardly any of the 300 words")],
)
def test_recoding_of_many_categories_is_reported(owner, media, count, sentence):
    file = io.BytesIO(codes(count, "place {}".format).encode())
    before = actions.create(owner=owner, file=file, source_name="a.csv", name="Places", target="class")
    with pytest.raises(versions.ChangedForms, match=sentence):
        version(before, codes(count, "K{}".format))
    assert version(before, codes(count, lambda i: f"place {i + count // 4}")).version == 2


def test_few_known_categories_are_no_recoding(owner, media):
    """A small version has a few of many categories, so the stored sample of them may have none of these."""
    file = io.BytesIO(codes(1000, "place {}".format).encode())
    before = actions.create(owner=owner, file=file, source_name="a.csv", name="Places", target="class")
    for part in range(4):
        assert version(before, codes(5, lambda i, part=part: f"place {100 * part + i}")).version == 2 + part


def test_long_texts_are_not_kept_for_the_comparison(owner, media):
    """Lists of data sets read all profiles, so these must stay small."""
    text = codes(40, lambda i: f"place {i} " + "x" * 2000)
    before = actions.create(owner=owner, file=io.BytesIO(text.encode()), source_name="a.csv", name="T", target="class")
    column = before.profile["columns"][0]
    assert "words" not in column
    assert len(column["sketch"]) == 40
    assert version(before, text).version == 2
    with pytest.raises(versions.ChangedForms, match="has hardly any of the 40 words"):
        version(before, text.replace("place", "K"))


def test_part_in_another_unit_is_reported(owner, media):
    def table(factor):
        cells = [(40 + i * 37 % 61) * (factor if i % 2 else 1) for i in range(120)]
        return "kg,class\n" + "".join(f"{cell},{'pq'[i % 3 == 0]}\n" for i, cell in enumerate(cells))

    file = io.BytesIO(table(1).encode())
    before = actions.create(owner=owner, file=file, source_name="a.csv", name="Weights", target="class")
    with pytest.raises(versions.ChangedForms, match=r"Column 'kg': 60 of 120 numbers .* look like the others times 10"):
        version(before, table(10))


def test_dropped_and_duplicate_rows_are_differences(first):
    rows = FIRST.splitlines()
    made = version(first, "\n".join([*rows, ",r,p", "1,,q", rows[1], rows[1]]) + "\n")
    found = {c.where: (c.before, c.now) for c in versions.changes(made)}
    repeated = first.profile["duplicate_rows"]
    assert found["rows with empty cells"] == ("0", "2")
    assert found["rows that repeat another"] == (str(repeated), str(repeated + 2))


def test_repeated_parsing_has_no_counts_of_former_file(owner, media):
    text = "size;class\n" + "".join(f"{i % 10},5 kg;{'pq'[i % 3 == 0]}\n" for i in range(60))
    dataset = actions.create(
        owner=owner, file=io.BytesIO(text.encode()), source_name="a.csv", name="Boxes", target="class"
    )
    assert any("all 60 values" in note for note in dataset.profile["notes"])
    after = version(dataset, "".join(text.splitlines(True)[:41]))
    assert after.rows == 40
    assert any("'size' is read as" in note and "as in the version before" in note for note in after.profile["notes"])
    assert not any("60" in note for note in after.profile["notes"])


def test_columns_may_stand_in_another_order(first):
    lines = [line.split(",") for line in FIRST.splitlines()]
    made = version(first, "\n".join(",".join([c, a, b]) for a, b, c in lines) + "\n")
    assert made.target == "class"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda text: text.replace("size,colour", "sizes,tint", 1),
            "Missing: size, colour. New: sizes, tint. If 'sizes' is 'size' by another name, give it the old name",
        ),
        (lambda text: text.replace("size,", "width,", 1), "Missing: size. New: width. If only names have changed"),
        (lambda text: text.replace(",class", ",class2", 1), "If 'class2' is 'class' by another name"),
        (
            lambda text: "\n".join(line.split(",", 1)[1] for line in text.splitlines()),
            "Missing: size. Add what is missing to the file, or upload it as a separate data set",
        ),
        (
            lambda text: "\n".join(f"{line},{'more' if i == 0 else i % 2}" for i, line in enumerate(text.splitlines())),
            "New: more. Take what is new out of the file",
        ),
    ],
)
def test_other_columns_are_refused_and_nothing_is_stored(first, media, change, words):
    before = stored_files(media)
    with pytest.raises(DataError, match=words):
        version(first, change(FIRST))
    assert Dataset.objects.count() == 1
    assert stored_files(media) == before


def test_each_column_that_is_missing_or_new_is_named_on_the_page(client, first):
    client.force_login(first.owner)
    file = io.BytesIO(FIRST.replace("size,colour", "sizes,tint", 1).encode())
    file.name = "b.csv"
    page = client.post(reverse("datasets:version", args=[first.pk]), {"file": file}).content.decode()
    for words in (
        "perhaps &#x27;sizes&#x27; is its new name",
        "&#x27;colour&#x27; is missing.",
        "&#x27;tint&#x27; is new.",
    ):
        assert words in page


def test_missing_split_column_is_named_as_in_the_file(owner, media):
    rows = "".join(f"2024-0{1 + i % 9}-{10 + i % 18},{i % 7},{'pq'[i % 3 == 0]}\n" for i in range(60))
    file = io.BytesIO(f"day,size,class\n{rows}".encode())
    dataset = actions.create(owner=owner, file=file, source_name="a.csv", name="Days", target="class")
    assert version(dataset, f"day,size,class\n{rows}").version == 2
    with pytest.raises(DataError, match=r"Missing: day\. New: date\. "):
        version(dataset, f"date,size,class\n{rows}")


def test_by_page_and_the_same_trained_again(client, first, owner, stranger):
    run = runs.enqueue(owner=owner, dataset=first, method="cart", parameters={"depth": 3})
    TrainingRun.objects.update(status=RunStatus.SUCCEEDED)
    client.force_login(owner)
    url = reverse("datasets:version", args=[first.pk])
    file = io.BytesIO(FIRST.replace("3,", "33,").encode())
    file.name = "b.csv"
    answer = client.post(url, {"file": file})
    made = Dataset.objects.exclude(pk=first.pk).get()
    text = client.get(answer.url).content.decode()
    assert "Train the same again" in text
    assert "There is a newer version" in client.get(reverse("datasets:detail", args=[first.pk])).content.decode()
    client.post(reverse("runs:on", args=[run.pk, made.pk]))
    again = TrainingRun.objects.get(dataset=made)
    assert (again.method, again.parameters["depth"], again.name) == ("cart", 3, "Boxes, version 2, CART, depth 3")
    bad = io.BytesIO(b"a,b\n1,2\n")
    bad.name = "bad.csv"
    assert client.post(url, {"file": bad}).status_code == 200
    client.force_login(stranger)
    assert client.get(url).status_code == 404
    assert client.post(reverse("runs:on", args=[run.pk, made.pk])).status_code == 404


def test_version_is_stored_with_its_predecessor_or_not_at_all(first, monkeypatch):
    inserted = []
    insert = actions.insert
    monkeypatch.setattr(actions, "insert", lambda dataset: (inserted.append(dataset.previous), insert(dataset)))
    assert version(first, FIRST).previous == first
    assert inserted == [first]


def test_versions_over_the_api_and_the_same_run_again(first, owner, client):
    client.force_login(owner)
    address = f"/api/v1/datasets/{first.pk}/versions/"
    grown = FIRST + "3,r,p\n"
    answer = client.post(address, {"file": SimpleUploadedFile("b.csv", grown.encode())})
    assert answer.status_code == 201
    made = answer.json()
    assert (made["version"], made["previous"]) == (2, str(first.pk))
    assert {"where": "rows", "before": "60", "now": "61"} in made["differences"]
    assert [v["version"] for v in client.get(f"/api/v1/datasets/{made['id']}/versions/").json()] == [2, 1]
    run = runs.enqueue(owner=owner, dataset=first, method="cart", parameters={"depth": 2})
    again = f"/api/v1/runs/{run.pk}/again/"
    body = {"dataset": made["id"]}
    assert client.post(again, body, content_type="application/json").status_code == 409  # the run has not ended
    TrainingRun.objects.filter(pk=run.pk).update(status=RunStatus.SUCCEEDED)
    repeated = client.post(again, body, content_type="application/json")
    assert repeated.status_code == 201
    assert repeated.json()["dataset"] == made["id"]
    assert repeated.json()["parameters"]["depth"] == 2


def test_api_refuses_version_in_other_unit_unless_confirmed(first, owner, client):
    client.force_login(owner)
    lines = [f"{i % 10 * 1000},{'rg'[i % 2]},{'pq'[i % 3 == 0]}\n" for i in range(60)]
    text = "size,colour,class\n" + "".join(lines)

    def send(**form):
        file = SimpleUploadedFile("b.csv", text.encode())
        return client.post(f"/api/v1/datasets/{first.pk}/versions/", {"file": file, **form})

    refused = send()
    assert refused.status_code == 422
    assert "divided by 1000" in refused.json()["detail"]
    assert "as_it_is" in refused.json()["detail"]
    assert Dataset.objects.count() == 1
    assert send(as_it_is="true").status_code == 201


def test_version_before_is_listed_only_if_visible(first, staff, client):
    """An administrator stores a version of the owner's data set, and later loses the administrator role."""
    made = versions.new_version(first, owner=staff, file=io.BytesIO(FIRST.encode()), source_name="b.csv")
    address = f"/api/v1/datasets/{made.pk}/versions/"
    client.force_login(staff)
    assert [v["version"] for v in client.get(address).json()] == [2, 1]
    staff.is_staff = False
    staff.save()
    assert [v["version"] for v in client.get(address).json()] == [2]
    assert str(first.pk) not in client.get(reverse("datasets:detail", args=[made.pk])).content.decode()


def test_versions_of_other_owners_are_404(first, stranger, client):
    client.force_login(stranger)
    address = f"/api/v1/datasets/{first.pk}/versions/"
    assert client.get(address).status_code == 404
    assert client.post(address, {"file": SimpleUploadedFile("b.csv", FIRST.encode())}).status_code == 404
