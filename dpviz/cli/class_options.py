"""The options of `dpviz app --class`: the names of the server, where it listens, and its limits."""

from __future__ import annotations

import argparse
import ipaddress
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from dpviz.errors import SettingError

CODE_VARIABLE = "DPVIZ_CLASS_CODE"
SHORTEST_CODE = 10  # characters
SESSIONS, MOST_SESSIONS = 60, 1000
LEAST_MEMORY = 512  # MiB: with less, the first page would be refused
_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,62})?(\.[a-z0-9]([a-z0-9-]{0,62})?)*")
_NOT_ALONE = (
    "--{option} is for a class, which shows samples only: dpviz app --class --host NAME. Without --class the app listens on 127.0.0.1 only,"
    " since it has no login: whoever reaches it reads files and spends budgets with your rights. From another computer, use an SSH tunnel."
)
_NO_HOST = (
    "A class needs the name or the address of this server, as its browsers will write it: dpviz app --class --host 192.168.1.20. The app"
    " answers to no other name."
)


@dataclass(frozen=True, kw_only=True)
class ClassOptions:
    """What `dpviz app --class` was started with.

    Attributes:
        hosts: names and addresses to which the server answers, as browsers write them, without a port; the first one is printed.
        listen: address of this computer on which it listens; empty for the one that the first host leads to.
        sessions: pages that can be open at once.
        memory: MiB that the server may use; None for three quarters of the computer's, or of its container's.
        public: paths of configurations of public data, which become samples of the class.
    """

    hosts: tuple[str, ...]
    listen: str = ""
    sessions: int = SESSIONS
    memory: int | None = None
    public: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.hosts:
            raise SettingError(_NO_HOST)
        for host in self.hosts:
            if not (_NAME.fullmatch(host) or is_address(host)):
                raise SettingError(f"--host takes a name or address without a port, such as lab.example.org or 192.168.1.20, not {host!r}.")
        if self.listen and not is_address(self.listen):
            raise SettingError("--listen takes an address of this computer, such as 192.168.1.20, or 0.0.0.0 for all of them.")
        if not 1 <= self.sessions <= MOST_SESSIONS:
            raise SettingError(f"--sessions takes a whole number from 1 to {MOST_SESSIONS:,}.")
        if self.memory is not None and self.memory < LEAST_MEMORY:
            raise SettingError(f"--memory takes a number of MiB, at least {LEAST_MEMORY}.")

    @classmethod
    def of(cls, arguments: argparse.Namespace) -> Self | None:
        """Return the options among parsed arguments; None without --class.

        Raises:
            SettingError: an option of a class without --class, a class without a host, or a value that does not fit.
        """
        given = {name: getattr(arguments, name) for name in ("host", "listen", "sessions", "memory", "public")}
        if not arguments.as_class:
            for option, value in given.items():
                if value is not None:
                    raise SettingError(_NOT_ALONE.format(option=option))
            return None
        hosts = tuple(dict.fromkeys(_plain(host) for host in arguments.host or ()))
        sessions = SESSIONS if arguments.sessions is None else arguments.sessions
        public = tuple(str(Path(path).absolute()) for path in arguments.public or ())
        return cls(hosts=hosts, listen=_plain(arguments.listen or ""), sessions=sessions, memory=arguments.memory, public=public)

    def words(self) -> list[str]:
        """Return the options as words of a command line, for the app's own process."""
        memory = [] if self.memory is None else [f"--memory={self.memory}"]
        hosts = [f"--host={host}" for host in self.hosts]
        public = [f"--public={path}" for path in self.public]
        return ["--class", *hosts, f"--listen={self.address()}", f"--sessions={self.sessions}", *memory, *public]

    def address(self) -> str:
        """Return the address to listen on.

        Raises:
            SettingError: the first host leads to no address.
        """
        if self.listen:
            return self.listen
        try:
            return str(socket.getaddrinfo(self.hosts[0], None, type=socket.SOCK_STREAM)[0][4][0])
        except OSError:
            raise SettingError(
                f"{self.hosts[0]} leads to no address here. Say where to listen: --listen 0.0.0.0 for all addresses of this computer,"
                " --listen 127.0.0.1 behind a proxy on it."
            ) from None


def add_class_arguments(command: argparse.ArgumentParser) -> None:
    """Add the options of a class to the command that starts the app."""
    group = command.add_argument_group("a class on one server (see the Help page, Hosting)")
    group.add_argument("--class", dest="as_class", action="store_true", help="samples only: no files, no Curate, no ledger; needs --host")
    group.add_argument("--host", metavar="NAME", action="append", help="name or address of this server in browsers; may be given again")
    group.add_argument("--listen", metavar="ADDRESS", help="where to listen (default: the address that NAME leads to)")
    group.add_argument("--sessions", type=int, metavar="N", help=f"pages open at once (default {SESSIONS})")
    group.add_argument("--public", metavar="FILE", action="append", help="TOML that names public data, a sample; may be given again")
    group.add_argument("--memory", type=int, metavar="MIB", help="no new run above it (default: three quarters of the memory)")


def read_code(environment: Mapping[str, str]) -> str | None:
    """Return the code that an environment variable gives a class, in lower case; None if there is none.

    Raises:
        SettingError: it is too short, or has other signs than letters, digits and hyphens.
    """
    code = environment.get(CODE_VARIABLE, "").strip().lower()
    if code and (len(code) < SHORTEST_CODE or not re.fullmatch("[a-z0-9-]+", code)):
        raise SettingError(f"{CODE_VARIABLE} takes at least {SHORTEST_CODE} letters, digits and hyphens.")
    return code or None


def is_address(text: str) -> bool:
    """Return whether a text is an IP address.

    >>> is_address("192.168.1.20"), is_address("lab.example.org")
    (True, False)
    """
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _plain(host: str) -> str:
    """Return a name or address in lower case, without the dot at its end and the brackets of IPv6."""
    return host.strip().lower().rstrip(".").removeprefix("[").removesuffix("]")
