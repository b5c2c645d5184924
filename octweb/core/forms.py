"""Provide forms with error messages that name the field and what it accepts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

Says = Callable[[forms.Field, dict[str, Any]], str]


class SaidForm(forms.Form):
    """A form that replaces Django's default messages with messages that name the field and its limits."""

    def add_error(self, field: str | None, error: Any) -> None:
        if field is not None and isinstance(error, ValidationError) and not hasattr(error, "error_dict"):
            error = ValidationError([_error_message(self.fields[field], suberror) for suberror in error.error_list])
        super().add_error(field, error)


def _error_message(field: forms.Field, error: ValidationError) -> ValidationError:
    """Return the error with our message, unless the form or field has its own message."""
    says = SAYS.get(error.code or "")
    if says is None or not _of_django(field, error):
        return error
    return ValidationError(says(field, error.params or {}), code=error.code)


def _of_django(field: forms.Field, error: ValidationError) -> bool:
    """Return whether the message is Django's default.

    Messages of limits come from validators, which our forms do not set.
    """
    defaults = [vars(base).get("default_error_messages", {}) for base in type(field).__mro__]
    known = [messages[error.code] for messages in defaults if error.code in messages]
    return error.code not in ("required", "invalid", "invalid_choice") or error.message in known


def _number(field: Any, params: dict[str, Any]) -> str:
    kind = (
        "a whole number"
        if isinstance(field, forms.IntegerField) and not isinstance(field, forms.FloatField)
        else "a number"
    )
    return f"“{field.label}” needs {kind}{_range(field.min_value, field.max_value)}."


def _range(low: Any, high: Any) -> str:
    if low is not None and high is not None:
        return f" from {low:,} to {high:,}"
    if low is not None:
        return f" of at least {low:,}"
    return "" if high is None else f" of at most {high:,}"


def _invalid(field: Any, params: dict[str, Any]) -> str:
    if isinstance(field, forms.IntegerField):
        return _number(field, params)
    return (
        _required_message(field, params)
        if isinstance(field, forms.FileField)
        else f"The value of “{field.label}” cannot be read. Enter it again."
    )


def _required_message(field: Any, params: dict[str, Any]) -> str:
    if isinstance(field, forms.FileField):
        return "Choose a file first."
    return f"{'Choose' if isinstance(field, forms.ChoiceField) else 'Fill in'} “{field.label}”."


def _choice(field: Any, params: dict[str, Any]) -> str:
    if isinstance(field, forms.ModelChoiceField):
        return f"What was chosen for “{field.label}” is not there any more, or is not yours. Choose again."
    return f"“{str(params.get('value', ''))[:40]}” is not one of the choices of “{field.label}”. Choose one that is listed."


def _long(field: Any, params: dict[str, Any]) -> str:
    return (
        f"“{field.label}” has {params['show_value']:,} characters; the limit is {params['limit_value']:,}. Shorten it."
    )


def _null(field: Any, params: dict[str, Any]) -> str:
    return f"“{field.label}” contains a null character, which cannot be stored. Type it again."


SAYS: dict[str, Says] = {
    "min_value": _number,
    "max_value": _number,
    "max_length": _long,
    "required": _required_message,
    "invalid": _invalid,
    "invalid_choice": _choice,
    "null_characters_not_allowed": _null,
}
