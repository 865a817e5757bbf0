"""A hook for toold: replaces personal data in arguments and results by a word in brackets.

It finds email addresses, IBANs, card numbers, US social security numbers and telephone numbers by their form. Names and
postal addresses have no fixed form, so they stay. Copy the file, and adapt FORMS:

    [hooks.redact]
    command = ["python3", "redact_personal_data.py"]
"""

import json
import re
import sys
from typing import Any


def is_card(text: str) -> bool:
    """Whether the digits of a text are a card number (ISO/IEC 7812: 13 to 19 digits, with Luhn's check digit)."""
    digits = [int(char) for char in text if char.isdigit()]
    doubled = (digit * 2 - 9 * (digit > 4) for digit in digits[-2::-2])
    return 13 <= len(digits) <= 19 and (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def is_iban(text: str) -> bool:
    """Whether a text is an IBAN (ISO 13616: the rearranged digits modulo 97 are 1)."""
    plain = text.replace(" ", "").upper()
    rearranged = plain[4:] + plain[:4]
    return 15 <= len(plain) <= 34 and int("".join(str(int(char, 36)) for char in rearranged)) % 97 == 1


FORMS = [
    ("[email]", re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+"), None),
    ("[iban]", re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b"), is_iban),
    ("[card]", re.compile(r"(?<!\d)\d(?:[ -]?\d){12,18}(?!\d)"), is_card),
    ("[ssn]", re.compile(r"(?<!\d)\d{3}-\d{2}-\d{4}(?!\d)"), None),
    ("[phone]", re.compile(r"(?<![\w.])(?<!\d )(?:\+|00)\d(?:[ ().-]{0,2}\d){6,14}(?!\d)"), None),
]
"""For each form: the replacement, the pattern, and an additional check."""


def redacted_text(text: str) -> str:
    """The text without personal data."""
    for word, form, certain in FORMS:
        text = form.sub(lambda found: word if certain is None or certain(found[0]) else found[0], text)  # noqa: B023
    return text


def redacted(value: Any) -> Any:
    """The value without personal data in its texts. Images and other files stay unchanged."""
    if isinstance(value, str):
        return redacted_text(value)
    if isinstance(value, list):
        return [redacted(item) for item in value]
    if isinstance(value, dict):
        is_file = value.get("type") in ("image", "audio")
        return {
            redacted_text(name): item if name == "blob" or (is_file and name == "data") else redacted(item)
            for name, item in value.items()
        }
    return value


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """The hook's answer to a question."""
    part = "arguments" if question["event"] == "before" else "result"
    changed = redacted(question[part])
    return {} if changed == question[part] else {part: changed}


def main() -> None:
    for line in sys.stdin:
        question = json.loads(line)
        print(json.dumps({"id": question["id"], **answer(question)}), flush=True)  # noqa: T201 - the answer


if __name__ == "__main__":
    main()
