"""Filters as LDAP understands them: what the server can sort out, it does.

The server's answer may hold too much, never too little; what is left over is sorted out by the same
comparison that every back end uses. So letters, missing attributes and signs of numbers, which LDAP
sees with other eyes, make no difference between directories.
"""

from __future__ import annotations

from falconmq.directory.ldap_values import CLASSES, MAPPED, Mapped, encode_time
from falconmq.directory.schema import Attribute, Kind, ObjectTable
from falconmq.directory.tables import USER
from falconmq.manager.directory_backend import AttributeFilter, FilterOperator, Filters

_LISTS = (Kind.GUIDS, Kind.NAMES, Kind.DIGESTS)
_ORDER = {
    FilterOperator.GREATER_THAN: ">=",
    FilterOperator.GREATER_THAN_OR_EQUAL: ">=",
    FilterOperator.LESS_THAN: "<=",
    FilterOperator.LESS_THAN_OR_EQUAL: "<=",
}


def server_filter(table: ObjectTable, filters: Filters) -> str:
    """The filter that goes to the server."""
    conditions = [class_condition(table.type_name)]
    for expression in filters:
        mapped = MAPPED[table.type_name].get(expression.name)
        if mapped is not None:
            attribute = table.find(expression.name)
            condition = _condition(attribute, mapped, expression)
            if condition:
                conditions.append(condition)
    return conditions[0] if len(conditions) == 1 else f"(&{''.join(conditions)})"


def class_condition(type_name: str) -> str:
    condition = f"(objectClass={CLASSES[type_name]})"
    if type_name == USER:  # to LDAP a computer is a user
        return f"(&{condition}(!(objectClass=computer)))"
    return condition


def escaped(value: bytes) -> str:
    """Any bytes as a value in a filter (RFC 4515); binary ones would match nothing else (E2)."""
    return "".join(
        chr(byte) if chr(byte).isascii() and chr(byte).isalnum() else f"\\{byte:02x}"
        for byte in value
    )


def _condition(attribute: Attribute, mapped: Mapped, expression: AttributeFilter) -> str:
    if expression.operator is FilterOperator.EQUALS:
        return _equality(attribute, mapped, expression.value)
    sign = _ORDER.get(expression.operator)
    if sign and attribute.kind is Kind.TIME and isinstance(expression.value, int):
        return f"({mapped.ldap_name}{sign}{encode_time(expression.value).decode()})"
    return ""


def _equality(attribute: Attribute, mapped: Mapped, value: object) -> str:
    if attribute.kind is Kind.SECURITY:
        return ""
    if attribute.kind in _LISTS and not isinstance(value, list):
        value = [value]
    parts = [f"({mapped.ldap_name}={escaped(item)})" for item in mapped.encode(attribute, value)]
    if value == mapped.value_when_missing(attribute):
        absent = f"(!({mapped.ldap_name}=*))"
        return f"(|{''.join(parts)}{absent})" if parts else absent
    return "".join(parts)
