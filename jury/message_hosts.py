"""Where messages of alarms may go: hosts that the server's owner allows by the rules that jurors have.

A vendor's own host is no place for one: only what the owner's file lists, or a host in the house.
"""

import json
from urllib.parse import urlsplit

from jury.address import canonical, in_house, kind_of
from jury.egress import PORTS, WHERE, Egress, may_take_key, rule_at


def webhook_refusal(address: str, key: str, egress: Egress) -> str:
    """Return why nothing may be posted to an address with the key of a variable, "" if it may.

    Parameters
    ----------
    address : with scheme and host
    key : name of a variable, "" for none
    """
    parts = urlsplit(address)
    if parts.scheme not in PORTS or not parts.hostname:
        return f"webhook {address}: write https:// and a host"
    host, port = parts.hostname, parts.port or PORTS[parts.scheme]
    names = _names(host, port)
    rule = rule_at(names, host, egress, {})
    shown = names[1] if port == PORTS[parts.scheme] else names[0]
    keys = f"keys = {json.dumps([key])}" if key else ""
    if rule is None:
        return f"webhook: nothing may go to {shown}; {_to_do(shown, keys)}"
    plain_names = kind_of(host) == "name" and rule.http is True
    if parts.scheme == "http" and not (plain_names or in_house(kind_of(host))):
        return f"webhook: {shown} over plain http, which anybody on the way can read; write https"
    if key and not may_take_key(key, rule, egress, host):
        return f"webhook_key_env {key}: that key may not go to {shown}; {_to_do(shown, keys)}"
    return ""


def mail_refusal(host: str, port: int, egress: Egress) -> str:
    """Return why no alarm may be sent by a mail server, "" if it may."""
    names = _names(host, port)
    if rule_at(names, host, egress, {}) is not None:
        return ""
    return f"mail server: alarms may not go to {names[0]}; {_to_do(names[0], '')}"


def _names(host: str, port: int) -> tuple[str, str]:
    return f"{canonical(host)}:{port}", canonical(host)


def _to_do(place: str, keys: str) -> str:
    line = f"{json.dumps(place)} = {{ {keys} }}".replace("{  }", "{}")
    return f"who owns this server allows it in {WHERE}, under [hosts]: {line}"
