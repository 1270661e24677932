"""Two guarantees that chance does not give a table: one connected whole, and equal loads."""

from collections.abc import Iterable, Sequence

from annotate.balance import Move, Table


def groups(blocks: Iterable[Sequence[int]], raters: int) -> list[int]:
    """Return a group number for each rater: the same for all linked by shared responses."""
    parent = list(range(raters))

    def root(rater: int) -> int:
        while parent[rater] != rater:
            parent[rater] = parent[parent[rater]]
            rater = parent[rater]
        return rater

    for block in blocks:
        for rater in block[1:]:
            parent[root(rater)] = root(block[0])
    return [root(rater) for rater in range(raters)]


def connect(table: Table) -> int:
    """Join all raters into one group, wherever there are readings enough: n(k - 1) >= r - 1.

    In each step a rater whom a response can spare without splitting its group trades
    places with a rater of another group, which makes one group of two. Such a rater
    exists as long as there are two groups and readings enough: the graph of raters and
    responses then has more edges than a forest can have. Returns the number of steps.
    """
    steps = 0
    while move := _joining(table):
        table.exchange(*move)
        steps += 1
    return steps


def _joining(table: Table) -> Move | None:
    blocks = table.all_readers()
    group = groups(blocks, table.raters)
    home = {group[free[0]]: response for response, free in enumerate(table.free) if free}
    if len(home) < 2:
        return None
    for response, block in enumerate(blocks):
        for rater in table.free[response] if len(block) > 1 else []:
            without = [*blocks[:response], [one for one in block if one != rater]]
            if len(set(groups(without + blocks[response + 1 :], table.raters))) == len(set(group)):
                other = next(there for each, there in home.items() if each != group[rater])
                return response, [rater], other, table.free[other][:1]
    return None


def level(table: Table, raters: Sequence[int]) -> None:
    """Pass free readings on until no chain of raters could make the loads more equal.

    A chain moves one reading from its first rater to the second, one from the second to
    the third, and so on: only the loads of its two ends change.
    """
    mine: dict[int, list[int]] = {rater: [] for rater in raters}
    for response, free in enumerate(table.free):
        for rater in free:
            mine[rater].append(response)
    while chain := _chain(table, mine):
        for giver, response, taker in chain:
            table.remove(giver, response)
            table.place(taker, response)
            mine[giver].remove(response)
            mine[taker].append(response)


Chain = list[tuple[int, int, int]]


def _chain(table: Table, mine: dict[int, list[int]]) -> Chain | None:
    """Return (giver, response, taker) steps that bring two loads nearer, or None."""
    by_load = sorted(mine, key=lambda rater: table.load[rater])
    for giver in reversed(by_load):
        if table.load[giver] - table.load[by_load[0]] < 2:
            return None
        came = _reachable(table, mine, giver)
        for taker in by_load:
            if table.load[giver] - table.load[taker] >= 2 and taker in came:
                return _steps(came, giver, taker)
    return None


def _reachable(table: Table, mine: dict[int, list[int]], giver: int) -> dict[int, tuple[int, int]]:
    """Return, for each rater that a chain from the giver reaches, the step that gets there."""
    came: dict[int, tuple[int, int]] = {}
    queue, unseen = [giver], set(mine) - {giver}
    for rater in queue:
        for response in mine[rater]:
            if not unseen:
                return came
            for taker in sorted(unseen.difference(table.readers(response))):
                came[taker] = (rater, response)
                unseen.remove(taker)
                queue.append(taker)
    return came


def _steps(came: dict[int, tuple[int, int]], giver: int, taker: int) -> Chain:
    """Walk back from the taker to the giver; the steps are in the order to take them."""
    steps = []
    while taker != giver:
        rater, response = came[taker]
        steps.append((rater, response, taker))
        taker = rater
    return steps
