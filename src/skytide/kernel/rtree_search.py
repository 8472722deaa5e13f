"""Searches in the main-memory R-tree: emptiness, range, largest key, and what no other point dominates.

After Tao and Papadias, Section 5 (Figs 9 and 11), and the constrained skyline of Papadias et al. (BBS) for `exposed`.
Where the paper is loose we are strict: a point must be better in one coordinate, so equal points never count, and a box
decides by itself only if one whole face of dimension d - 1 lies in the region and one coordinate is strictly better
there. The paper sorts the entries of an emptiness test by overlapped volume; volumes vanish on ties and overflow with
infinities, and the face test already ends most searches, so entries are taken as they come. The search for the largest
key goes depth-first, largest key first, which visits hardly more nodes than a heap and has none to keep.
All of them are d-sided; each costs O(d) vector comparisons per node visited.
"""

from __future__ import annotations

import numpy as np

from skytide.kernel.rtree_lanes import (
    LANES,
    highest_bit,
    keys_eq,
    keys_gt,
    lanes_le,
    lanes_lt,
    lanes_weakly_better,
    lanes_weakly_worse,
    lean,
    lowest_bit,
    part,
)
from skytide.kernel.rtree_nodes import LEVEL, NONE, ROOT, SIZE, TESTS, VISITS, Tree


@part
def _faces_inside(t: Tree, node: int, bits: int, q: np.ndarray) -> int:
    """Of these entries of an inner node those with a point that surely dominates q.

    A box has a point on each of its faces. The face at the lower end of coordinate j lies in the region when all other
    upper ends do; its point is strictly better if lo[j] < q[j], or if another upper end is.
    """
    d = q.size
    outside, twice, low_better, face_better = 0, 0, 0, 0
    for k in range(d):
        offset = (node * d + k) * LANES
        fails = ~lanes_le(t.hi, offset, q[k])
        below = lanes_lt(t.lo, offset, q[k])
        twice |= outside & fails
        outside |= fails
        low_better |= below
        face_better |= lanes_lt(t.hi, offset, q[k]) | (fails & below)
    return bits & ~twice & ((~outside & low_better) | (outside & face_better))


@lean
def any_dominates(t: Tree, q: np.ndarray) -> bool:
    """Whether some point dominates q: the emptiness test of Fig. 9."""
    d = q.size
    visits, tests, found = 0, 0, False
    t.stack[0] = t.head[ROOT]
    top = 1
    while top > 0 and not found:
        top -= 1
        node = t.stack[top]
        visits += 1
        used = (1 << t.inner[node, SIZE]) - 1
        bits = used & lanes_weakly_better(t.lo, node * d * LANES, LANES, q)
        if bits == 0:
            continue
        found = _faces_inside(t, node, bits, q) != 0
        if found:
            break
        above_leaves = t.inner[node, LEVEL] == 1
        while bits != 0:
            child = t.kids[node * LANES + lowest_bit(bits)]
            bits &= bits - 1
            if not above_leaves:
                t.stack[top] = child
                top += 1
                continue
            visits += 1
            tests += t.leaf[child, SIZE]
            inside = ((1 << t.leaf[child, SIZE]) - 1) & lanes_weakly_better(t.points, child * d * LANES, LANES, q)
            if inside != 0 and inside & ~lanes_weakly_worse(t.points, child * d * LANES, LANES, q) != 0:
                found = True
                break
    t.head[VISITS] += visits
    t.head[TESTS] += tests
    return found


@lean
def dominated(t: Tree, q: np.ndarray, out: np.ndarray) -> int:
    """Write the slots of points that q dominates; gives how many. Ends early when fewer than LANES places are left.

    The caller takes what was found out of the tree and asks again until the answer is 0 or leaves more places.
    """
    d = q.size
    visits, tests, found = 0, 0, 0
    t.stack[0] = t.head[ROOT]
    top = 1
    while top > 0 and found <= out.size - LANES:
        top -= 1
        node = t.stack[top]
        visits += 1
        bits = ((1 << t.inner[node, SIZE]) - 1) & lanes_weakly_worse(t.hi, node * d * LANES, LANES, q)
        above_leaves = t.inner[node, LEVEL] == 1
        while bits != 0:
            child = t.kids[node * LANES + lowest_bit(bits)]
            bits &= bits - 1
            if not above_leaves:
                t.stack[top] = child
                top += 1
                continue
            if found > out.size - LANES:
                break
            visits += 1
            tests += t.leaf[child, SIZE]
            inside = ((1 << t.leaf[child, SIZE]) - 1) & lanes_weakly_worse(t.points, child * d * LANES, LANES, q)
            if inside != 0:
                inside &= ~lanes_weakly_better(t.points, child * d * LANES, LANES, q)
            while inside != 0:
                out[found] = t.slots[child * LANES + lowest_bit(inside)]
                found += 1
                inside &= inside - 1
    t.head[VISITS] += visits
    t.head[TESTS] += tests
    return found


# -- the largest key ---------------------------------------------------------------------------------------------------


@part
def _covered(t: Tree, node: int, bits: int, q: np.ndarray) -> int:
    """Of these entries those whose every point dominates q: no upper end outside, and one strictly better."""
    d = q.size
    inside, better = bits, 0
    for k in range(d):
        offset = (node * d + k) * LANES
        inside &= lanes_le(t.hi, offset, q[k])
        better |= lanes_lt(t.hi, offset, q[k])
    return inside & better


@part
def _push_by_key(t: Tree, base: int, bits: int, top: int) -> int:
    """Stack the children of these entries so that the one with the largest key comes off first."""
    bottom = top
    while bits != 0:
        entry = base + lowest_bit(bits)
        bits &= bits - 1
        at = top
        while at > bottom and t.largest[t.stack[at - 1]] > t.largest[entry]:
            t.stack[at] = t.stack[at - 1]
            at -= 1
        t.stack[at] = entry
        top += 1
    return top


@part
def _slot_of_key(t: Tree, entry: int, key: int) -> int:
    """A point with this largest key below an inner entry. O(height)."""
    node = entry // LANES
    level = t.inner[node, LEVEL]
    child = t.kids[entry]
    while level > 1:
        lane = lowest_bit(((1 << t.inner[child, SIZE]) - 1) & keys_eq(t.largest, child * LANES, key))
        child = t.kids[child * LANES + lane]
        level -= 1
    lane = lowest_bit(((1 << t.leaf[child, SIZE]) - 1) & keys_eq(t.keys, child * LANES, key))
    return int(t.slots[child * LANES + lane])


@lean
def last_dominator(t: Tree, q: np.ndarray, floor: int) -> int:
    """The slot with the largest key above `floor` among points that dominate q, or NONE: the search of Fig. 11."""
    d = q.size
    visits, tests, best, slot, cover = 1, 0, floor, NONE, NONE
    # The stack holds inner entries; the root's are judged like those of any node.
    node, top = t.head[ROOT], np.int64(0)
    while True:
        used = ((1 << t.inner[node, SIZE]) - 1) & keys_gt(t.largest, node * LANES, best)
        bits = used & lanes_weakly_better(t.lo, node * d * LANES, LANES, q)
        if bits != 0:
            whole = _covered(t, node, bits, q)
            bits &= ~whole
            while whole != 0:
                entry = node * LANES + lowest_bit(whole)
                whole &= whole - 1
                if t.largest[entry] > best:
                    best, cover = t.largest[entry], entry
            top = _push_by_key(t, node * LANES, bits & keys_gt(t.largest, node * LANES, best), top)
        node = NONE
        while top > 0 and node == NONE:
            top -= 1
            entry = t.stack[top]
            if t.largest[entry] <= best:
                continue
            visits += 1
            child = t.kids[entry]
            if t.inner[entry // LANES, LEVEL] > 1:
                node = child
                continue
            tests += t.leaf[child, SIZE]
            inside = ((1 << t.leaf[child, SIZE]) - 1) & lanes_weakly_better(t.points, child * d * LANES, LANES, q)
            inside &= keys_gt(t.keys, child * LANES, best)
            if inside != 0:
                inside &= ~lanes_weakly_worse(t.points, child * d * LANES, LANES, q)
            while inside != 0:
                at = child * LANES + lowest_bit(inside)
                inside &= inside - 1
                if t.keys[at] > best:
                    best, slot, cover = t.keys[at], t.slots[at], NONE
        if node == NONE:
            break
    t.head[VISITS] += visits
    t.head[TESTS] += tests
    return slot if cover == NONE else _slot_of_key(t, cover, best)


# -- what nobody else dominates ----------------------------------------------------------------------------------------


@part
def _push_by_corner(t: Tree, node: int, bits: int, top: int) -> int:
    """Stack the entries so that the box nearest to the best corner comes off first; the order is advice only."""
    d, bottom = t.weights.size, top
    while bits != 0:
        lane = lowest_bit(bits)
        bits &= bits - 1
        near = 0.0
        for k in range(d):
            near += t.weights[k] * t.lo[(node * d + k) * LANES + lane]
        at = top
        while at > bottom and t.work[t.work.size - LANES + at - 1 - bottom] < near:
            t.work[t.work.size - LANES + at - bottom] = t.work[t.work.size - LANES + at - 1 - bottom]
            t.stack[at] = t.stack[at - 1]
            at -= 1
        t.work[t.work.size - LANES + at - bottom] = near
        t.stack[at] = node * LANES + lane
        top += 1
    return top


@part
def _shielded(found: np.ndarray, size: int, corner: np.ndarray) -> bool:
    """Whether a point found so far dominates the corner. `found` is laid out like leaves, filled up with NaN."""
    d = corner.size
    for block in range((size + LANES - 1) // LANES):
        inside = lanes_weakly_better(found, block * d * LANES, LANES, corner)
        if inside != 0 and inside & ~lanes_weakly_worse(found, block * d * LANES, LANES, corner) != 0:
            return True
    return False


@part
def _keep(found: np.ndarray, out: np.ndarray, size: int, corner: np.ndarray, slot: int) -> int:
    """Add a point that no found one dominates, and drop those that it dominates; gives the new size."""
    d = corner.size
    for block in range((size + LANES - 1) // LANES - 1, -1, -1):
        worse = lanes_weakly_worse(found, block * d * LANES, LANES, corner)
        if worse != 0:
            worse &= ~lanes_weakly_better(found, block * d * LANES, LANES, corner)
        # From the last lane to the first, so that the point that closes a gap is never itself to be dropped.
        while worse != 0:
            lane = highest_bit(worse)
            worse ^= 1 << lane
            size -= 1
            out[block * LANES + lane] = out[size]
            for k in range(d):
                end = (size // LANES * d + k) * LANES + size % LANES
                found[(block * d + k) * LANES + lane] = found[end]
                found[end] = np.nan
    for k in range(d):
        found[(size // LANES * d + k) * LANES + size % LANES] = corner[k]
    out[size] = slot
    return size + 1


@lean
def exposed(
    rest: Tree, sky: Tree, q: np.ndarray, floor: int, corner: np.ndarray, found: np.ndarray, out: np.ndarray
) -> int:
    """The skyline of the points of `rest` that q dominates, have a key above `floor` and no point of `sky` dominates.

    Writes at most out.size slots, none of which dominates another; the caller moves them to `sky` and asks again until
    nothing is left. `corner` holds d numbers, `found` d for each place of `out`.
    """
    d = q.size
    size, visits, tests = 0, 0, 0
    for i in range(found.size):
        found[i] = np.nan
    node, top = rest.head[ROOT], np.int64(0)
    while True:
        visits += 1
        bits = ((1 << rest.inner[node, SIZE]) - 1) & keys_gt(rest.largest, node * LANES, floor)
        bits &= lanes_weakly_worse(rest.hi, node * d * LANES, LANES, q)
        top = _push_by_corner(rest, node, bits, top)
        node = NONE
        while top > 0 and node == NONE:
            top -= 1
            entry = rest.stack[top]
            for k in range(d):
                corner[k] = rest.lo[(entry // LANES * d + k) * LANES + entry % LANES]
            tests += size
            if _shielded(found, size, corner) or any_dominates(sky, corner):
                continue
            child = rest.kids[entry]
            if rest.inner[entry // LANES, LEVEL] > 1:
                node = child
                continue
            visits += 1
            tests += rest.leaf[child, SIZE]
            bits = ((1 << rest.leaf[child, SIZE]) - 1) & keys_gt(rest.keys, child * LANES, floor)
            bits &= lanes_weakly_worse(rest.points, child * d * LANES, LANES, q)
            if bits != 0:
                bits &= ~lanes_weakly_better(rest.points, child * d * LANES, LANES, q)
            while bits != 0 and size < out.size:
                lane = lowest_bit(bits)
                bits &= bits - 1
                for k in range(d):
                    corner[k] = rest.points[(child * d + k) * LANES + lane]
                tests += size
                if not _shielded(found, size, corner) and not any_dominates(sky, corner):
                    size = _keep(found, out, size, corner, np.int64(rest.slots[child * LANES + lane]))
            if size == out.size:
                top = np.int64(0)
        if node == NONE:
            break
    rest.head[VISITS] += visits
    rest.head[TESTS] += tests
    return size
