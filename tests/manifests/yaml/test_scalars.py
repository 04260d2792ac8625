import pytest

from gpuyard.manifests.yaml.scalars import readings, resolve_as_kubectl


# What `kubectl label --local -o json` 1.32 prints for each plain scalar.
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-4", 0.0001),
        ("1e4", 10000),
        ("5.", 5),
        (".5", 0.5),
        ("+.5", 0.5),
        ("1.0", 1),
        ("1.5_5", 1.55),
        ("08", 8),
        ("014", 12),
        ("-014", -12),
        ("0o14", 12),
        ("0O14", 12),
        ("0b11", 3),
        ("+0b11", 3),
        ("0x1F", 31),
        ("-0x1f", -31),
        ("-00008", -8),
        ("1_000", 1000),
        ("+_1", 1),
        ("0x_1", 1),
        ("12345678901234567890", 12345678901234567000.0),
        ("1e300", 1e300),
        ("-9223372036854775808", -(2**63)),
        ("y", True),
        ("On", True),
        ("OFF", False),
        ("n", False),
        ("~", None),
        ("Null", None),
        ("", None),
        ("tRue", "tRue"),
        ("12:30:45", "12:30:45"),
        ("2024-01-01", "2024-01-01"),
        ("=", "="),
        ("<<", "<<"),
        ("0x", "0x"),
        ("0o8", "0o8"),
        ("0b12", "0b12"),
        ("_1", "_1"),
        ("._1", "._1"),
        ("1e400", "1e400"),
        ("NaN", "NaN"),
        (".", "."),
        ("+", "+"),
        ("9" * 5000, "9" * 5000),
    ],
)
def test_kubectl_reads(text: str, value: object):
    found = resolve_as_kubectl(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("text", [".inf", "-.Inf", "+.INF", ".nan", ".NaN"])
def test_kubectl_refuses_what_json_cannot_hold(text: str):
    with pytest.raises(ValueError, match="is no number that JSON can hold"):
        resolve_as_kubectl(text)


@pytest.mark.parametrize(
    ("text", "meanings"),
    [
        ("web", ["text"]),
        ("v1", ["text"]),
        ("1.2.3", ["text"]),
        ("10.0.0.0/16", ["text"]),
        ("64Gi", ["text"]),
        ("7d", ["text"]),
        ("--depth", ["text"]),
        (".", ["text"]),
        ("١٢", ["text"]),
        ("5432", ["the number 5432"]),
        ("0", ["the number 0"]),
        ("0xd", ["the number 13"]),
        ("9223372036854775807", ["the number 9223372036854775807"]),
        ("2001-12-14T21:59:43.10Z", ["a date", "text"]),
        ("-3", ["the number -3"]),
        ("0x1f", ["the number 31"]),
        ("1.34", ["the number 1.34"]),
        ("1.5e+3", ["the number 1500"]),
        ("007", ["the number 7"]),
        ("TRUE", ["true"]),
        ("False", ["false"]),
        ("~", ["empty"]),
        (".inf", ["the number inf"]),
        ("y", ["true", "text"]),
        ("N", ["false", "text"]),
        ("no", ["false", "text"]),
        ("On", ["true", "text"]),
        ("1e3", ["the number 1000", "text"]),
        ("1.5e3", ["the number 1500", "text"]),
        ("+.5", ["the number 0.5", "text"]),
        ("08", ["the number 8", "text"]),
        ("014", ["the number 12", "the number 14"]),
        ("0o14", ["the number 12", "text"]),
        ("0b11", ["the number 3", "text"]),
        ("-0x1f", ["the number -31", "text"]),
        ("1_000", ["the number 1000", "text"]),
        ("1_0.5", ["the number 10.5", "text"]),
        ("12:30:45", ["the number 45045", "text"]),
        ("1:30", ["the number 90", "text"]),
        ("1:30.5", ["the number 90.5", "text"]),
        ("2024-01-01", ["a date", "text"]),
        ("2024-01-01 10:00:00", ["a date", "text"]),
        ("=", ["an error", "text"]),
        ("<<", ["an error", "text"]),
        ("12e5432", ["the number inf", "text"]),
    ],
)
def test_what_readers_see(text: str, meanings: list[str]):
    assert readings(text) == meanings


def test_not_a_number_is_one_reading():
    assert readings(".nan") == ["the number nan"]
