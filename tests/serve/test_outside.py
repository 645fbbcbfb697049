"""wrk's report is read as it is written."""

from __future__ import annotations

import pytest

from fewer.bench.outside import Outside, read

REPORT = """Running 1s test @ http://127.0.0.1:8191/v1/cellfree/predict
  1 threads and 64 connections
  Latency Distribution
     50%    6.21ms
     99%   {slow}
  4321 requests in 1.00s, 2.41MB read
{wrong}Requests/sec:   4318.21
Transfer/sec:      2.41MB
"""


@pytest.mark.parametrize(("slow", "seconds"), [("812.00us", 0.000812), ("18.30ms", 0.0183), ("1.20s", 1.2)])
def test_rates_and_percentiles_are_read_in_their_units(slow: str, seconds: float) -> None:
    assert read(REPORT.format(slow=slow, wrong="")) == Outside(4318.21, pytest.approx(seconds), 0)


def test_what_went_wrong_is_counted() -> None:
    wrong = "  Socket errors: connect 1, read 2, write 0, timeout 4\n  Non-2xx or 3xx responses: 30\n"
    assert read(REPORT.format(slow="1.00ms", wrong=wrong)).wrong == 37
    with pytest.raises(ValueError, match="cannot be read"):
        read("unable to connect")
