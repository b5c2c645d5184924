"""List the words for missing values, units and currencies."""

# ruff: noqa: SIM905 (long lists of short words)

from __future__ import annotations

# lower-case words that mean "missing" only in columns whose other cells are numbers, dates or times
MISSING_WORDS = frozenset(
    """- -- --- – — . .. ... … * / x? n.a. n.a na n/a #n/a <na> nan nil none null unknown unkn. unk missing undefined void tbd
    n.d. n.d nd n/d k.a. k.a unbekannt inconnu desconocido #div/0! #value! #ref! #name? #num! #null! #wert! #bezug! (missing)
    (unknown) (null) (none) (blank) [null] <null> <none> nat <nat> \\n""".split()
) | frozenset({"not available", "not applicable", "not known", "not measured", "no data", "keine angabe", "no answer"})

CURRENCIES = (
    "€ $ £ ¥ ₹ ₩ ₽ ₺ ₫ ₪ ₴ ฿ US$ A$ C$ EUR USD GBP JPY CHF CNY INR CAD AUD NZD SEK NOK DKK PLN CZK HUF RUB TRY BRL MXN KRW ZAR "
    "Fr. kr zł Kč"
).split()
UNITS = (
    "% ‰ ° °C °F kg g mg µg μg ug ng t lb lbs oz km m dm cm mm µm μm nm mi mile miles yd ft in ha m² m2 m^2 km² km2 cm² cm2 mm² "
    "sqm sqft m³ m3 m^3 cm³ cm3 l L dl dL cl ml mL µl hl s sec min h hr hrs ms µs d day days week weeks month months yr yrs year years "
    "hour hours minute minutes second seconds km/h kmh mph m/s kn Hz kHz MHz GHz W kW MW GW Wh kWh MWh J kJ MJ cal kcal V kV mV A mA "
    "Ah mAh Ω kΩ N kN Nm Pa hPa kPa MPa bar mbar psi mmHg bpm kB KB MB GB TB MiB GiB bit kbit/s Mbit/s dB lx lm cd mol mmol µmol "
    "mmol/l mmol/L mg/dl mg/dL g/dl g/dL mg/l mg/L g/l g/L µg/l µg/L U/l U/L IU IE ppm ppb hp PS rpm l/100km kg/m² kg/m2 g/cm³ pts px pcs"
).split()


def _by_lower(words: list[str]) -> dict[str, str]:
    """Map lower-case spellings to units if only one unit has them: 'KG' is kg, but 'MW' and 'mW' stay distinct."""
    spellings: dict[str, list[str]] = {}
    for word in words:
        spellings.setdefault(word.lower(), []).append(word)
    return {lower: forms[0] for lower, forms in spellings.items() if len(forms) == 1}


KNOWN_UNITS = {word: word for word in (*CURRENCIES, *UNITS)}
_LOWER = _by_lower([*CURRENCIES, *UNITS])


def unit_of(text: str) -> str | None:
    """Return the unit or currency that `text` names; None for any other text."""
    return KNOWN_UNITS.get(text) or _LOWER.get(text.lower())


def is_currency(unit: str) -> bool:
    """Return whether a known unit is a currency, which may precede a number."""
    return unit in CURRENCIES


def is_missing_word(word: str) -> bool:
    """Return whether a word in a column of numbers means "missing"."""
    return word.lower() in MISSING_WORDS
