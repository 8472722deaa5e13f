"""udom14's algorithm as it is printed, in plain Python, with a switch for each of its two mends.

Sections 3.5 and 5 of Udomlamlert, Hara, Nishio, "Skyline computation under frequent data updates" (2014): one box per
object over consecutive snapshots, SKM and NSKM, `adrm` and `DRM`, PRE with its verification list VL, SKY, POST. The
objects are fixed, and all of them are there at snapshot 0.
"""

from __future__ import annotations

from collections.abc import Mapping

from skytide.reference.batch import Row, dominates, skyline


class LiteralBoxes:
    """Keeps the skyline as the paper says.

    With `strict`, a box dominates another one only if it is better somewhere: Definition 4 lacks it, so that two
    objects which rest on one point prune each other. With `everybody`, DRM is checked whenever a box grows at its upper
    corner: Section 5.2 does so for members of SKM only, though a member of NSKM can be the `adrm` of others.
    """

    def __init__(self, objects: Mapping[int, Row], threshold: int, *, strict: bool, everybody: bool) -> None:
        self._threshold, self._strict, self._everybody = threshold, strict, everybody
        self._points = {one: tuple(row) for one, row in objects.items()}
        self._lower = dict(self._points)
        self._upper = dict(self._points)
        self._false_positives = dict.fromkeys(objects, 0)
        names = list(objects)
        inside = {names[place] for place in skyline([self._points[one] for one in names])}
        # Section 5.1: SKM holds the skyline of the points, and the others hang on who dominated them.
        self.skm = [one for one in names if one in inside]
        self.adrm = {
            one: next(other for other in self.skm if dominates(self._points[other], self._points[one]))
            for one in names
            if one not in inside
        }
        self.skyline = inside

    def _dominates(self, one: int, other: int) -> bool:
        """Definition 4: the upper corner of the one is nowhere above the lower corner of the other."""
        if self._strict:
            return dominates(self._upper[one], self._lower[other])
        return all(high <= low for high, low in zip(self._upper[one], self._lower[other], strict=True))

    def apply(self, updates: Mapping[int, Row]) -> set[int]:
        """One snapshot: the new points of some objects; who is in the skyline then."""
        self._refine(self._to_verify(updates))
        self._calculate()
        self._reconstruct()
        return self.skyline

    def _to_verify(self, updates: Mapping[int, Row]) -> list[int]:
        """Section 5.2, cases 1 and 2: who is to be verified, after the boxes have taken the new points in."""
        sunk, risen = set(), set()
        for one, row in updates.items():
            self._points[one] = tuple(row)
            lower = tuple(map(min, self._lower[one], row))
            upper = tuple(map(max, self._upper[one], row))
            if lower != self._lower[one]:
                sunk.add(one)
            if upper != self._upper[one]:
                risen.add(one)
            self._lower[one], self._upper[one] = lower, upper
        if not self._everybody:
            risen = {one for one in risen if one not in self.adrm}
        return [
            one for one, host in self.adrm.items() if (one in sunk or host in risen) and not self._dominates(host, one)
        ]

    def _refine(self, verified: list[int]) -> None:
        """Each hangs on the first member of SKM that dominates it, or becomes one."""
        for one in verified:
            del self.adrm[one]
            host = next((other for other in self.skm if self._dominates(other, one)), None)
            if host is None:
                self.skm.append(one)
                self._false_positives[one] = 0
            else:
                self.adrm[one] = host

    def _calculate(self) -> None:
        """Section 5.3: the skyline of the points whose boxes are in SKM."""
        self.skyline = {self.skm[place] for place in skyline([self._points[one] for one in self.skm])}

    def _reconstruct(self) -> None:
        """Section 5.4: a box that was a false positive for long starts anew, and may go to NSKM."""
        for one in list(self.skm):
            self._false_positives[one] = 0 if one in self.skyline else self._false_positives[one] + 1
            if self._false_positives[one] < self._threshold:
                continue
            self._false_positives[one] = 0
            self._lower[one] = self._upper[one] = self._points[one]
            host = next((other for other in self.skm if other != one and self._dominates(other, one)), None)
            if host is not None:
                self.skm.remove(one)
                self.adrm[one] = host
