"""Message bodies: what the bytes of a body mean to the applications at both ends."""

from falconmq.body.describe import describe_body
from falconmq.body.text import body_text
from falconmq.body.variant import (
    BodyType,
    BodyValue,
    body_type_name,
    decode_variant,
    encode_variant,
)
from falconmq.body.xml_formatter import XmlValue, decode_xml, encode_xml

__all__ = [
    "BodyType",
    "BodyValue",
    "XmlValue",
    "body_text",
    "body_type_name",
    "decode_variant",
    "decode_xml",
    "describe_body",
    "encode_variant",
    "encode_xml",
]
