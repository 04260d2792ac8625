from decimal import Decimal

import pytest

from gpuyard.manifests.quantity import (
    add_resources,
    format_bytes,
    format_count,
    format_resource,
    is_bytes,
    parse_quantity,
    parse_resources,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", "0"),
        ("4", "4"),
        ("2.5", "2.5"),
        (".5", "0.5"),
        ("5.", "5"),
        ("+3", "3"),
        ("-3", "-3"),
        ("500m", "0.5"),
        ("250u", "0.00025"),
        ("7n", "0.000000007"),
        ("1k", "1000"),
        ("100M", "100000000"),
        ("1.5G", "1500000000"),
        ("1T", "1000000000000"),
        ("1P", "1000000000000000"),
        ("1E", "1000000000000000000"),
        ("1Ki", "1024"),
        ("64Gi", "68719476736"),
        ("0.5Gi", "536870912"),
        ("2Ti", "2199023255552"),
        ("1e3", "1000"),
        ("1E3", "1000"),
        ("5e-1", "0.5"),
        ("12E+2", "1200"),
        (8, "8"),
        (0.1, "0.1"),
        (1e-7, "0.0000001"),
    ],
)
def test_parse(text: str | float, value: str):
    assert parse_quantity(text) == Decimal(value)


def test_exbibytes():
    assert parse_quantity("1Ei") == 2**60


@pytest.mark.parametrize("text", ["\u0663", "1e9999999999"])
def test_what_should_be_no_quantity(text: str):
    with pytest.raises(ValueError, match="a quantity is a number"):
        parse_quantity(text)


@pytest.mark.parametrize(
    "text",
    [
        *[
            "",
            " ",
            "1 Gi",
            "Gi",
            "1GiB",
            "1K",
            "1kk",
            "1e",
            "1e3m",
            "5e-1Gi",
            "1,000",
            "1_000",
            "0x10",
            ".",
            "+",
            "--1",
        ],
        *["1\n", "inf", "nan", float("nan"), float("inf")],
    ],
)
def test_what_is_no_quantity(text: str | float):
    with pytest.raises(
        ValueError, match=r"^a quantity is a number with an optional unit: 500m, 4, 2\.5, 100M, 64Gi, 2Ti$"
    ):
        parse_quantity(text)


@pytest.mark.parametrize(
    ("value", "text"), [("4", "4"), ("4.0", "4"), ("0", "0"), ("0.5", "500m"), ("1.0001", "1001m"), ("1E+3", "1000")]
)
def test_counts(value: str, text: str):
    assert format_count(Decimal(value)) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [("0", "0"), ("1", "1"), ("1000", "1000"), ("1024", "1Ki"), ("1536", "1536"), ("1572864", "1536Ki"),
     ("68719476736", "64Gi"), ("2199023255552", "2Ti"), ("1.5", "2")],
)  # fmt: skip
def test_bytes(value: str, text: str):
    assert format_bytes(Decimal(value)) == text


@pytest.mark.parametrize("text", ["64Gi", "2Ti", "1536Mi", "5120Mi", "2400Gi", "1"])
def test_bytes_come_back_as_the_same_amount(text: str):
    assert parse_quantity(format_bytes(parse_quantity(text))) == parse_quantity(text)


@pytest.mark.parametrize(
    ("resource", "expected"),
    [("memory", True), ("ephemeral-storage", True), ("storage", True), ("hugepages-2Mi", True), ("cpu", False),
     ("nvidia.com/gpu", False), ("vpc.amazonaws.com/efa", False), ("pods", False)],
)  # fmt: skip
def test_which_resources_are_bytes(resource: str, expected: bool):
    assert is_bytes(resource) is expected


def test_resources_are_added_key_by_key():
    one = parse_resources({"cpu": "500m", "memory": "1Gi"})
    other = parse_resources({"cpu": 1, "nvidia.com/gpu": "8"})
    total = add_resources([one, other, {}])
    assert total == {"cpu": Decimal("1.5"), "memory": Decimal(2**30), "nvidia.com/gpu": Decimal(8)}
    assert {key: format_resource(key, value) for key, value in total.items()} == {
        "cpu": "1500m",
        "memory": "1Gi",
        "nvidia.com/gpu": "8",
    }
    assert one == parse_resources({"cpu": "500m", "memory": "1Gi"})
    assert add_resources([]) == {}
