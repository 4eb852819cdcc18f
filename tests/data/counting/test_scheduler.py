"""Which scheduler is called: one that the caller names, over TLS or on this computer."""

from functools import partial

import pytest

from dpviz.data.counting.files import read_points, read_trips
from dpviz.data.counting.scheduler import RUNS_CODE, Scheduler, scheduler_of_app
from tests.data.reading.files import PLANE, TOWNS, refused, text

SAFE = "tcp://127.0.0.1:1 127.8.9.10:1 tcp://[::1]:1 ws://localhost:1 LOCALHOST:1 tls://10.0.0.5:8786 wss://far.org:65535"
FAR = "10.0.0.5 far.org localhost.far.org 127.0.0.1.far.org 0.0.0.0 127.1 2130706433 [::] [fe80::1] [::ffff:7f00:1]"
NONE = "here tcp:// http://127.0.0.1:1 inproc://127.0.0.1:1 ucx://127.0.0.1:1 TCP://127.0.0.1:1 tcp://127.0.0.1 tcp://me@127.0.0.1:1"
MORE = "tcp://[::1%lo]:1 tcp://127.0.0.1:0 tcp://127.0.0.1:65536 tcp://h:1/x"


@pytest.mark.parametrize("address", SAFE.split())
def test_this_computer_and_tls_are_safe(address):
    assert Scheduler(address=address).address == (address if "://" in address else f"tcp://{address}")


@pytest.mark.parametrize("host", FAR.split())
@pytest.mark.parametrize("protocol", ["", "tcp://", "ws://"])
def test_elsewhere_without_tls_is_refused_unless_insecure(protocol, host):
    message = refused(Scheduler, address=f"{protocol}{host}:1")
    assert RUNS_CODE in message
    assert "--insecure-address" in message
    assert Scheduler(address=f"{protocol}{host}:1", insecure=True)


@pytest.mark.parametrize("address", [*NONE.split(), *MORE.split(), "tcp://a b:1", "tcp://h:1\n", "", 5, b"h:1"])
def test_what_is_no_address_is_refused(address):
    assert "address must be that of a Dask scheduler" in refused(Scheduler, address=address, insecure=True)


def test_python_has_the_same_rule():
    table = text("lon,lat\n1,2\n", "a.csv")
    for read in (partial(read_points, domain=PLANE), partial(read_trips, regions=TOWNS)):
        assert RUNS_CODE in refused(read, table, address="tcp://far.org:1")


def test_the_app_is_given_one_when_it_is_started():
    assert scheduler_of_app({}) is None
    assert scheduler_of_app({"DPVIZ_DASK_ADDRESS": "tls://h:1"}) == Scheduler(address="tls://h:1")
    assert RUNS_CODE in refused(scheduler_of_app, {"DPVIZ_DASK_ADDRESS": "tcp://h:1"})
    assert scheduler_of_app({"DPVIZ_DASK_ADDRESS": "tcp://h:1", "DPVIZ_DASK_INSECURE": "1"}).insecure
    assert "must be 1" in refused(scheduler_of_app, {"DPVIZ_DASK_INSECURE": "yes"})
