"""``[quotas.NAME]`` in toold.toml: what is refused, and how."""

import pytest
from toold.daemon.config.quota_settings import QuotaSettingsError, read_quotas


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ("10", "tables of toold.toml"),
        ({"a b": {"calls_per_day": 1}}, "name is 1 to 64"),
        ({"q": {}}, "q: .*set calls_per_minute, calls_per_day or both"),
        ({"q": {"calls_per_minute": 0}}, "q: calls_per_minute"),
        ({"q": {"calls_per_minute": 10_001}}, "q: calls_per_minute"),
        ({"q": {"calls_per_day": 1, "tools": []}}, "q: tools"),
        ({"q": {"calls_per_day": 1, "tols": ["x"]}}, "q: .*tols.*did you mean"),
        (
            {"q": {"calls_per_day": 1, "principals": ["local", "ci"]}},
            "q: .*ci is not a principal; write token:ci",
        ),
        ({f"q{number}": {"calls_per_day": 1} for number in range(101)}, "at most 100"),
    ],
)
def test_invalid_quotas(tables: object, message: str) -> None:
    """The error names the quota and the key."""
    with pytest.raises(QuotaSettingsError, match=message):
        read_quotas(tables)
