"""Provide sample tables: four from scikit-learn, five generated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from trainer.tree.document import write_atomically

LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))
# indices of the rows of monks-3 whose class is flipped
MONKS_NOISE = (7, 41, 83, 128, 190, 215, 251, 303, 350, 397, 411, 429)


@dataclass(frozen=True)
class Sample:
    """A sample table: slug, title, summary, target, the rows as CSV lines, and the categorical columns."""

    slug: str
    title: str
    summary: str
    target: str
    lines: Callable[[], Iterator[str]]
    categorical: tuple[str, ...] = ()


def _scikit_learn_lines(name: str, target: str) -> Callable[[], Iterator[str]]:
    def lines() -> Iterator[str]:
        from sklearn import datasets  # import here, because scikit-learn loads slowly and only these samples need it

        data = getattr(datasets, f"load_{name}")()
        yield ",".join([*map(str, data.feature_names), target])
        for row, k in zip(data.data, data.target, strict=True):
            yield ",".join([*(f"{value:.12g}" for value in row), str(data.target_names[k])])

    return lines


def _monks(problem: int) -> Callable[[], Iterator[str]]:
    """Return a function that yields the 432 robots of a MONK's problem as CSV lines (Thrun et al., 1991)."""

    def lines() -> Iterator[str]:
        yield "head_shape,body_shape,is_smiling,holding,jacket_color,has_tie,monk"
        shapes = ("round", "square", "octagon")
        smiling = ("yes", "no")
        holding = ("sword", "balloon", "flag")
        colours = ("red", "yellow", "green", "blue")
        for i, robot in enumerate(product(shapes, shapes, smiling, holding, colours, smiling)):
            head, body, _smile, item, colour, _tie = robot
            if problem == 1:
                monk = head == body or colour == "red"
            elif problem == 2:
                firsts = (shapes[0], shapes[0], smiling[0], holding[0], colours[0], smiling[0])
                monk = sum(value == first for value, first in zip(robot, firsts, strict=True)) == 2
            else:
                monk = (colour == "green" and item == "sword") or (colour != "blue" and body != "octagon")
                monk ^= i in MONKS_NOISE
            yield ",".join([*robot, "yes" if monk else "no"])

    return lines


def _tic_tac_toe() -> Iterator[str]:
    """Yield a CSV header and the 958 final boards of games that x began."""
    yield "top_left,top_middle,top_right,middle_left,middle,middle_right,bottom_left,bottom_middle,bottom_right,x_wins"
    for board in product("xob", repeat=9):
        x = board.count("x")
        o = board.count("o")
        if x - o not in (0, 1):  # players take turns, so other boards cannot occur; this skips two thirds of all boards
            continue
        x_lines = sum(all(board[i] == "x" for i in line) for line in LINES)
        o_lines = sum(all(board[i] == "o" for i in line) for line in LINES)
        won_by_x = x_lines > 0 and o_lines == 0 and x == o + 1
        won_by_o = o_lines > 0 and x_lines == 0 and x == o
        is_draw = not x_lines and not o_lines and x == 5 and o == 4
        if won_by_x or won_by_o or is_draw:
            yield ",".join([*board, "yes" if won_by_x else "no"])


def _balance() -> Iterator[str]:
    yield "left_weight,left_distance,right_weight,right_distance,tips"
    for a, b, c, d in product(range(1, 6), repeat=4):
        tips = "balanced"
        if a * b != c * d:
            tips = "left" if a * b > c * d else "right"
        yield f"{a},{b},{c},{d},{tips}"


SAMPLES: tuple[Sample, ...] = (
    Sample("iris", "Iris", "Three kinds of iris by four lengths; 150 rows.", "species", _scikit_learn_lines("iris", "species")),
    Sample("wine", "Wine", "Three growers by thirteen measurements; 178 rows.", "grower", _scikit_learn_lines("wine", "grower")),
    Sample(
        "breast-cancer", "Breast cancer", "Benign or malignant by thirty measurements of cells; 569 rows.",
        "diagnosis", _scikit_learn_lines("breast_cancer", "diagnosis"),
    ),
    Sample("digits", "Digits", "Ten handwritten digits in 64 grey values; 1,797 rows.", "digit", _scikit_learn_lines("digits", "digit")),
    Sample("monks-1", "Monks 1", "A puzzle with a known rule, good for a first look. 432 rows.", "monk", _monks(1)),
    Sample("monks-2", "Monks 2", "A puzzle: exactly two of six properties have their first value. 432 rows.", "monk", _monks(2)),
    Sample("monks-3", "Monks 3", "A puzzle with a known rule and some wrong labels. 432 rows.", "monk", _monks(3)),
    Sample("tic-tac-toe", "Tic-tac-toe end games", "Has x won? All 958 boards at the end of a game.", "x_wins", _tic_tac_toe),
    Sample("balance-scale", "Balance scale", "Which side tips, by weights and distances; 625 rows.", "tips", lambda: _balance()),
)  # fmt: skip


def csv_text(sample: Sample) -> str:
    """Return the sample as the text of a CSV file."""
    return "\n".join(sample.lines()) + "\n"


def write_samples(folder: Path) -> list[Path]:
    """Write each sample as a CSV file into the folder, which is made if needed; return the files.

    A file with other content is never replaced: FileExistsError names it, and nothing is written.
    """
    texts = {folder / f"{sample.slug}.csv": csv_text(sample) for sample in SAMPLES}
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in texts.items():
        if path.exists() and path.read_bytes() != text.encode():
            raise FileExistsError(f"'{path}' exists and holds other rows. Rename it, or choose another folder.")
    for path, text in texts.items():
        write_atomically(path, text.encode())
    return list(texts)
