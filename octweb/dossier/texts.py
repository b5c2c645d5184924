"""Name the texts of a dossier that people write."""

from __future__ import annotations

# text → label in the document, and help of the command line
BASIC = {
    "meant_for": ("Meant for", "what the model is meant for"),
    "not_meant_for": ("Not meant for", "what it must not be used for"),
    "weakness": ("Known weakness", "what is known to go wrong"),
    "contact": ("Contact", "who answers questions"),
}
FURTHER = {
    "users": ("Users", "who uses the answers"),
    "population": ("Population", "which persons or cases it is used for"),
    "responsible": ("Responsible person", "who answers for the model"),
    "setting": ("Where it runs", "which programs and devices call it, and how they are protected"),
    "sources": ("Source and dates of the data", "how and when the rows were collected"),
    "sensitive": ("Sensitive columns", "which columns describe protected groups, and why they are used or left out"),
    "oversight": ("Oversight by people", "who watches the answers, and how one is changed or stopped"),
    "risks": ("Risks", "which risks are known, and what is done about them"),
    "plan": ("Plan for the time in use", "what is watched, how often, and who acts"),
    "standards": ("Standards and declarations", "which standards were applied, and which declarations exist"),
}
TYPED = BASIC | FURTHER
TEXTS = {name: label for name, (label, _) in TYPED.items()}
