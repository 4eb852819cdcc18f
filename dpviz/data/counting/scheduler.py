"""The address of a Dask scheduler: who may set it, and which addresses dpviz connects to."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from dpviz.errors import InputError

RUNS_CODE = "the operator of the scheduler can run code on this computer"
ADDRESS_VARIABLE, INSECURE_VARIABLE = "DPVIZ_DASK_ADDRESS", "DPVIZ_DASK_INSECURE"
ADDRESS_REFUSED = (
    f"An address of a Dask scheduler is never taken from a configuration: {RUNS_CODE}. Leave address out; if you trust the scheduler, name"
    f" it on the command line with --address, or for the app in the environment variable {ADDRESS_VARIABLE}."
)
_ADDRESS = re.compile(r"(?:(tcp|tls|ws|wss)://)?([A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})", re.ASCII)
_ENCRYPTED = ("tls", "wss")


@dataclass(frozen=True, kw_only=True)
class Scheduler:
    """A running Dask scheduler. Its operator sees the private data, including what the workers spill to disk, and can run code here.

    Its address comes from the user who starts the program, never from a file or a page.

    Attributes:
        address: such as tls://10.0.0.5:8786; without a protocol it is tcp://. For tls:// and wss:// Dask's configuration names the
            certificates.
        insecure: whether dpviz may connect to another computer without encryption; then anyone on the network path can pose as
            the scheduler.

    Raises:
        InputError: the address is not valid, or is on another computer without encryption and without `insecure`.
    """

    address: str
    insecure: bool = False

    def __post_init__(self) -> None:
        match = _ADDRESS.fullmatch(self.address) if isinstance(self.address, str) else None
        if match is None or not 0 < int(match[3]) < 2**16:
            raise InputError("address must be that of a Dask scheduler, such as 'tls://10.0.0.5:8786'.")
        protocol, host, port = match[1] or "tcp", match[2], match[3]
        object.__setattr__(self, "address", f"{protocol}://{host}:{port}")  # Dask's configuration could give it another protocol
        if not (protocol in _ENCRYPTED or self.insecure or _is_this_computer(host)):
            raise InputError(
                f"The address of the Dask scheduler is not encrypted, and {RUNS_CODE}, as can anyone on the network path: use tls://."
                " Unencrypted, only addresses of this computer (127.0.0.1, [::1], localhost) are called, unless you insist:"
                f" --insecure-address, for the app {INSECURE_VARIABLE}=1, in Python insecure_address=True."
            )


def _is_this_computer(host: str) -> bool:
    """Return whether a host is the loopback interface; other spellings, such as 0.0.0.0, 127.1 and ::ffff:127.0.0.1, are not accepted."""
    if host.lower() == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return address.is_loopback and getattr(address, "ipv4_mapped", None) is None


def scheduler_at(address: str | None, *, insecure: bool) -> Scheduler | None:
    """Return the scheduler at an address; None without one.

    Raises:
        InputError: as `Scheduler`.
    """
    return None if address is None else Scheduler(address=address, insecure=insecure)


def scheduler_of_app(environment: Mapping[str, str] = os.environ) -> Scheduler | None:
    """Return the scheduler in the environment variables with which the app was started; None without one.

    Raises:
        InputError: as `Scheduler`, or INSECURE_VARIABLE is neither 0 nor 1.
    """
    insecure = environment.get(INSECURE_VARIABLE, "0")
    if insecure not in ("0", "1"):
        raise InputError(f"{INSECURE_VARIABLE} must be 1, or be left out.")
    return scheduler_at(environment.get(ADDRESS_VARIABLE) or None, insecure=insecure == "1")
