"""Where is the air worst, if not every sensor can be trusted?

Every sensor reads heat and dust once in ten minutes. A reading is true with a probability that sinks with the sensor's
battery. A place counts if no *true* reading of the last ten minutes shows more of one and no less of the other. So a
broken sensor with wild values neither wins nor hides the others.
"""

import numpy as np

import skytide as sk

SENSORS, MINUTES, BROKEN = 60, 120, 13
ALMOST_SURE = 0.8
random = np.random.default_rng(5)
place = random.normal([24, 30], [4, 8], (SENSORS, 2))
battery = 1 - random.exponential(0.1, SENSORS).clip(0, 0.9)
battery[BROKEN] = 0.05  # and it reports whatever comes to its mind

window = sk.UncertainWindow(sk.Preference(maximize=["heat", "dust"]), duration=10, thresholds=[0.02, ALMOST_SURE])
alarms = []
for minute in range(MINUTES):
    sensors = np.arange(minute % 10, SENSORS, 10)
    values = place[sensors] + random.normal(0, [1, 3], (len(sensors), 2))
    values[sensors == BROKEN] = 90, 400
    rows = {"heat": values[:, 0].round(1), "dust": values[:, 1].round(1)}
    ids = [f"s{sensor:02}" for sensor in sensors]
    changes = window.extend(rows, times=np.full(len(ids), minute), ids=ids, probabilities=battery[sensors])
    alarms += [*changes, *window.advance(minute)]
alarms = [change for change in alarms if change.threshold == ALMOST_SURE]

print(f"{len(alarms)} times in two hours a place became almost surely one of the worst, or ceased to be. The last:")
for time, sign, sensor, _ in alarms[-6:]:
    print(f"  minute {time}  {sign} {sensor}")

print("\nNow, the most probable first:")
for sensor, probability in window.query():
    note = "   (the broken one)" if sensor == f"s{BROKEN}" else ""
    print(f"  {sensor}  {'#' * round(40 * probability):40} {probability:4.0%}{note}")
