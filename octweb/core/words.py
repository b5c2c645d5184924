"""Define the glossary words that pages use with a special meaning.

Pages underline these words with dots, and show the definition.
"""

from __future__ import annotations

GLOSSARY = {
    "approved": "An administrator has looked at the model and let it be used: everyone with a token can call it. Serving it under a name is a step of its own.",
    "best tree so far": "The tree with the highest objective that a search has found so far. Papers call it the incumbent.",
    "bound": "A number that no tree of the search space can exceed. It falls while the search goes on; where it meets the best tree so far, that tree is proved optimal.",
    "claim": "What was proved about a tree, and over which search space: proved optimal, a gap, some of its questions or small subtrees proved, or nothing (heuristic). A claim is about the training rows, not about new ones.",
    "confusion matrix": "A table of rows by actual class and by answer. On the diagonal, the answer is right.",
    "cross-validation": "The rows are divided into folds; each fold is predicted by a tree that was trained on the others. So every row is predicted once by a tree that had not seen it.",
    "depth": "The largest number of questions on a path from the first question to an answer.",
    "error floor": "The share of rows that no tree can get right, because rows with equal values have different classes.",
    "fold": "One of the equal parts into which cross-validation divides the rows.",
    "fingerprint": "A number made from the rows and columns that a model was trained on. Other rows give another number.",
    "gap": "How far a better tree could be above the best one found: (bound − objective) / objective. 0 % means proved optimal.",
    "held-out rows": "Rows that take no part in training. The share of them that a tree gets right says how well it will do on new rows.",
    "heuristic": "Built step by step, without a proof of how close the tree is to the best one.",
    "least cost": "No tree of the search space costs less on the training rows, by the costs that were stated for its answers. Accuracy was not searched for.",
    "leaf": "An end of the tree. All rows that arrive there get the same answer.",
    "leaf penalty": "What a leaf costs, as a share of the rows. Each extra leaf must get at least this share of rows right that would otherwise be wrong.",
    "nested folds": "Cross-validation around a choice: the choice is made again without each fold, and measured on that fold, so nothing is measured on rows that influenced the choice.",
    "objective": "What a method makes as large as possible: the share of training rows that are right, minus the penalty for leaves.",
    "proved optimal": "No tree of the search space has a higher objective; objective and bound agree.",
    "question": "What a tree asks in one place, such as “age ≤ 30?”. The answers yes and no lead to the next places.",
    "recall": "The share of the rows of a class that a tree finds. For the class in question it is also called sensitivity.",
    "search space": "All trees that a method chooses from: which questions a tree may ask, and how large it may be.",
    "sensitivity": "The share of the positive rows that a tree finds.",
    "served": "Its name answers with this version: programs that call the name get it, until another version is served.",
    "specificity": "The share of the other rows that a tree does not take for positive.",
    "standard error": "How much a mean over folds would vary if it were measured again. Two trees whose means differ by less are about equally good.",
    "unseen rows": "Rows that a tree was not trained on: held-out rows, or each fold for the tree trained on the other folds.",
    "version": "Models with the same name are numbered. The name without a number answers with one of them at a time.",
}


def sentence(word: str) -> str:
    """Return the definition of a word. Raises KeyError for an unknown word."""
    return GLOSSARY[word]
