"""The reader accepts old Western European files without a question, and guesses no other encoding."""

from __future__ import annotations

import io

import numpy as np
import pytest

from trainer.data.formats.file_bytes import decode
from trainer.data.formats.read_file import read_table
from trainer.data.parsing import ParsingChoices
from trainer.data.reader import load, load_for_model
from trainer.errors import DataError
from trainer.prediction.predict_file import predict_file
from trainer.training.run import TrainRequest, train

WESTERN = {
    "german": "Größe (m²);Körpertemperatur in °C;Straße;Übergewicht;»Männer«;für 5 €;MÜNCHEN",
    "french": "âge;élève créée;œuvre;l’été;où;Noël;n° 5;ÉCOLE;déçu – à peine;naïve",
    "spanish": "año;¿cuántos?;niño;pingüino;1ª;2º;ESPAÑA;¡sí!;según",
    "portuguese": "ação;não;São João;coração;três;AÇÃO",
    "nordic": "år;ålder;øl;Åse;sjö;værelse;KØBENHAVN;päivää;þú",
    "catalan": "col·legi;això;ç",
    "signs": "±5 %;10–20;x²;½;§ 3;µg;“quoted”",
}
OTHERS = {
    "polish": ("cp1250", "łódź;źródło;ąę;żółć;miesiąc;płeć;województwo łódzkie"),
    "czech": ("cp1250", "příliš;žluťoučký;kůň;věk;město"),
    "russian": ("cp1251", "Москва;возраст;да;нет"),
    "greek": ("cp1253", "ηλικία;πόλη;ναι;όχι"),
    "koi8": ("koi8-r", "Москва;возраст;да;нет"),
    "dos": ("cp850", "Größe;für;Männer;über;Straße"),
    "mac": ("mac-roman", "Größe;für;Männer;später;Straße;natürlich"),
    "japanese": ("shift-jis", "年齢;性別;はい;いいえ"),
    "chinese": ("gbk", "年龄;性别;是;否;北京"),
    "korean": ("euc-kr", "나이;성별;예;아니오"),
}


@pytest.mark.parametrize("text", WESTERN.values(), ids=WESTERN)
def test_western_text_is_read(text):
    found = decode(f"id\n1;{text}\n".encode("cp1252"), None)
    assert found.utf8.decode() == f"id\n1;{text}\n"
    assert found.encoding == "cp1252"
    assert found.sure < 1
    assert "line 2" in found.reason


@pytest.mark.parametrize(("encoding", "text"), OTHERS.values(), ids=OTHERS)
def test_other_encodings_are_not_guessed(encoding, text):
    with pytest.raises(DataError, match="not valid utf-8"):
        decode(f"id\n1;{text}\n".encode(encoding), None)
    assert decode(f"id\n1;{text}\n".encode(encoding), encoding).sure == 1


def test_bytes_that_are_no_text_are_refused():
    rng = np.random.default_rng(5)
    for size in (50, 500, 5_000):
        with pytest.raises(DataError):
            decode(b"a,b\n" + rng.integers(1, 256, size, np.uint8).tobytes(), None)


def test_guessed_encoding_is_reported_and_stored_for_the_model(tmp_path):
    path = tmp_path / "old.csv"
    path.write_bytes("Größe;class\n1,5;ja\n2,5;nein\n3,5;ja\n4,5;nein\n".encode("cp1252"))
    table, _, report = load(path, target="class")
    assert table.names == ("Größe",)
    assert [note for note in report.reading_notes if "cp1252" in note and "“Größe” in line 1" in note]
    assert not [note for note in load(path, target="class", encoding="cp1252")[2].reading_notes if "cp1252" in note]


def test_parsing_rules_of_training_override_guesses(tmp_path):
    """In cp1250 and in cp1252 the byte 0xe1 is á, and 0xf5 is ő here and õ there."""
    path = tmp_path / "hungarian.csv"
    path.write_bytes("nap;class\nelső;a\nmásodik;b\nelső;a\nmásodik;b\n".encode("cp1250"))
    assert read_table(path).columns[0][0].as_py() == "elsõ"
    table, labels, _ = load(path, target="class", given=ParsingChoices(encoding="cp1250"))
    rows = load_for_model(path, table.schema, target="class", classes=labels.classes, reading=table.reading)
    assert not rows.unknown


def test_guess_is_noted_with_predictions(tmp_path):
    path = tmp_path / "old.csv"
    path.write_bytes("Größe;class\n1,5;für\n2,5;für\n3,5;wider\n4,5;wider\n".encode("cp1252"))
    table, labels, _ = load(path, target="class")
    model = train(TrainRequest(table=table, labels=labels, method="cart", parameters={"depth": 2})).model
    summary = predict_file(model, path, io.StringIO())
    assert summary.correct == summary.known == 4
    assert any("As Western European Windows (cp1252) it has “Größe”" in note for note in summary.notes)
