"""Addresses of jurors: how they may be written, and whether they are local, private or public."""

import re
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Literal
from urllib.parse import urlsplit

Address = IPv4Address | IPv6Address
Kind = Literal["name", "loopback", "private", "public", "never"]
LOOPBACK = [ip_network(network) for network in ("127.0.0.0/8", "::1/128")]
PRIVATE = [
    ip_network(network) for network in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")
]
NEVER = [
    ip_network(network)
    for network in (
        "169.254.0.0/16",  # link-local; clouds tell a machine its credentials there
        "fe80::/10",
        "fec0::/10",
        "fd00:ec2::254/128",  # the same at Amazon and Google by IPv6
        "fd20:ce::254/128",
        "100.100.100.200/32",  # the same at Alibaba, Azure and Oracle
        "168.63.129.16/32",
        "192.0.0.192/32",
        "0.0.0.0/8",  # "here", which systems take for the loopback
        "::/128",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "ff00::/8",
    )
]
CARRIERS = [
    ip_network(network) for network in ("64:ff9b::/96", "::/96")
]  # an IPv4 address in the last bits
LABEL = r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?"
NAME = re.compile(rf"{LABEL}(?:\.{LABEL})*")
NUMBER = re.compile(r"(?:.*\.)?(?:\d+|0x[0-9a-f]*)")  # 127.1, 0x7f.1, 2130706433: odd spellings
PATH = re.compile(r"[A-Za-z0-9._~:@!$+,=/-]*")
PLAIN = re.compile(r"[!-~]+")


def fault(base_url: str) -> str:
    """Return what is wrong with an address that has a scheme and a host, empty if nothing is."""
    parts = urlsplit(base_url)
    host = (parts.hostname or "").lower()
    if "#" in base_url:
        return "holds a fragment (#); leave it out"
    if not PLAIN.fullmatch(base_url) or not PATH.fullmatch(parts.path):
        return "holds a sign that no address of a model server needs; write letters, digits and . _ - / :"
    if any(step in (".", "..") for step in parts.path.split("/")):
        return 'holds a step "." or ".." in its path; write the path itself'
    return _fault_of_host(host)


def _fault_of_host(host: str) -> str:
    kind = kind_of(host)
    if kind == "never":
        return (
            f"{host} is link-local, a cloud's own service for its machines, or no place of one "
            "server: texts and keys never go there"
        )
    if kind == "name" and not NAME.fullmatch(host):
        return "holds a host that is neither a plain name nor an address; write a name in ASCII"
    if kind == "name" and NUMBER.fullmatch(host):
        return "holds an IPv4 address in an odd spelling; write four decimal numbers"
    return ""


def kind_of(host: str) -> Kind:
    """Return the kind of a host by its text alone: `localhost` is loopback, any other name is a name."""
    if host == "localhost":
        return "loopback"
    try:
        return kind_of_address(ip_address(host))
    except ValueError:
        return "name"


def kind_of_address(address: Address) -> Kind:
    """Return the kind of an address; an IPv6 address that embeds an IPv4 one has the kind of that."""
    if _within(address, NEVER):
        return "never"
    if _within(address, LOOPBACK):
        return "loopback"
    carried = _carried(address)
    if carried is not None:
        return kind_of_address(carried)
    return "private" if _within(address, PRIVATE) else "public"


def in_house(kind: Kind) -> bool:
    """Return whether an address is on this machine or on a private network."""
    return kind in ("loopback", "private")


def canonical(host: str) -> str:
    """Return a host in its canonical form: lower case, IPv6 short and in brackets."""
    bare = host.strip("[]").lower()
    try:
        address = ip_address(bare)
    except ValueError:
        return bare
    return f"[{address}]" if address.version == 6 else str(address)


def _within(address: Address, networks: list) -> bool:  # type: ignore[type-arg]
    return any(address.version == network.version and address in network for network in networks)


def _carried(address: Address) -> IPv4Address | None:
    if not isinstance(address, IPv6Address):
        return None
    if address.ipv4_mapped or address.sixtofour:
        return address.ipv4_mapped or address.sixtofour
    if address.teredo:
        return address.teredo[1]
    return IPv4Address(int(address) & 0xFFFFFFFF) if _within(address, CARRIERS) else None
