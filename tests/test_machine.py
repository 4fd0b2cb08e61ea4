"""What is said of the machine."""

from helpers.machine import machine


def test_the_machine_is_described_without_its_name():
    about = machine()
    assert set(about) == {"system", "processor", "cores"}
    assert about["cores"] >= 1
