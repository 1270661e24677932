"""Checks before a panel is asked: the owner's rules, libraries, keys, and where host names lead."""

import os
import socket
from collections.abc import Callable, Mapping, Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from data.errors import BadPanel
from data.schema import now
from jury.address import Kind, in_house, kind_of, kind_of_address
from jury.egress import WHERE, Egress, allowed, egress_of, named_by_owner, priced
from jury.panel import Juror, Panel
from jury.providers.registry import lacking_library

BLANK = "YOUR-"  # what a panel that ships leaves to be filled in
ELSEWHERE = ("private", "public")  # Azure and Amazon have private endpoints, by https
Resolve = Callable[[str, int], Sequence[str]]


def addresses_of(host: str, port: int) -> list[str]:
    """Return the addresses that a host's name has now, none if it cannot be looked up."""
    try:
        entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return sorted({str(entry[4][0]) for entry in entries})


def admit(panel: Panel, environment: Mapping[str, str] = os.environ) -> Panel:
    """Return a panel at the prices that count, if it may be asked from this server.

    Raises
    ------
    BadPanel
        Names the first juror that may not be asked, and the line that would allow it.
    BadFile
        If the owner's file of rules cannot be read.
    """
    egress = egress_of(environment)
    for juror in panel.juror:
        if why := allowed(juror, egress):
            raise BadPanel(f"panel {panel.name}, {why}")
    return with_counted_prices(panel, egress)


def with_counted_prices(panel: Panel, egress: Egress | None = None) -> Panel:
    """Return a panel at the prices that count, whether or not it may be asked from this server."""
    egress = egress or egress_of()
    jurors = tuple(priced(juror, egress, now()) for juror in panel.juror)
    return panel.model_copy(update={"juror": jurors})


def price_notices(panel: Panel) -> list[str]:
    """Return a sentence for each juror whose panel gives a price that does not count here."""
    lines = []
    for juror, counting in zip(panel.juror, with_counted_prices(panel).juror, strict=True):
        if juror.usd_per_million_in is not None and counting != juror:
            prices = (counting.usd_per_million_in, counting.usd_per_million_out)
            own = f"{juror.usd_per_million_in:g}, {juror.usd_per_million_out:g}"
            listed = "the price list's" if prices[0] is None else "{:g}, {:g}".format(*prices)
            lines.append(
                f"juror {juror.name}: the panel's price {own} does not count at {juror.place}: "
                f"{listed} does; who owns this server may set it in {WHERE}"
            )
    return lines


def api_keys(
    panel: Panel, environment: Mapping[str, str] = os.environ, resolve: Resolve = addresses_of
) -> dict[str, str]:
    """Return each juror's key from the environment; "none" where a local server needs none.

    Raises
    ------
    BadPanel
        As `admit`; and if a variable that a juror names is not set, a library that its provider
        needs is not installed, a place is still to be filled in, or a host's name leads where no
        juror is.
    """
    for juror in panel.juror:
        blank = [n for n in ("base_url", "project", "deployment") if BLANK in getattr(juror, n)]
        why = lacking_library(juror.provider, juror.auth)
        if blank:
            why = (
                f"{blank[0]} {getattr(juror, blank[0])!r} is still to be filled in: copy the panel and "
                f"write yours where it says {BLANK}"
            )
        if why:
            raise BadPanel(f"panel {panel.name}, juror {juror.name}: {why}")
    admit(panel, environment)
    for juror in panel.juror:
        by_name, why = named_by_owner(juror, egress_of(environment)), ""
        if juror.api_key_env and not environment.get(juror.api_key_env):
            why = (
                f"the environment variable {juror.api_key_env} is not set; put the key for {juror.host} "
                'in it (api_key_env = "" where the server needs none)'
            )
        if why := why or _led_elsewhere(juror, resolve, by_name):
            raise BadPanel(f"panel {panel.name}, juror {juror.name}: {why}")
    return {juror.name: environment.get(juror.api_key_env) or "none" for juror in panel.juror}


def _led_elsewhere(juror: Juror, resolve: Resolve, by_name: bool) -> str:
    """Return where a host's name leads that is no place for a juror, empty if it does not.

    A name over plain http has to lead into the house; over https it may lead anywhere but to
    link-local addresses, and to this machine only if the owner has `named` it. Where a proxy is
    asked, that looks the name up, not we.
    """
    parts = urlsplit(juror.base_url)
    if juror.simulated or kind_of(juror.host) != "name" or _by_proxy(juror):
        return ""
    plain = parts.scheme == "http"
    for address in resolve(juror.host, parts.port or (80 if plain else 443)):
        kind = kind_of_address(ip_address(address.split("%")[0]))
        fine = in_house(kind) if plain else kind in ELSEWHERE or (by_name and kind == "loopback")
        if not fine:
            return f"the name {juror.host} leads to {address}, which is {_to_do(plain, kind)}"
    return ""


def _to_do(plain: bool, kind: Kind) -> str:
    """Return why nothing is sent where a name leads, and what to do about it."""
    if plain:
        return "not in the house: nothing goes there by plain http; write https, or mend the name"
    if kind == "loopback":
        return (
            "this machine: nothing is sent there by a name that the server's owner has not put "
            f"under [hosts] in {WHERE}; mend the name, or write the address in base_url"
        )
    return "no place of a model server: nothing is sent there; have the name mended"


def _by_proxy(juror: Juror) -> bool:
    encrypted = juror.base_url.startswith("https:")
    proxies = getproxies().keys() & {"https", "all"}
    return encrypted and bool(proxies) and not proxy_bypass(juror.host)
